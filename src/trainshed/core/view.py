"""Views: buckets as folders below /gcs. The values, the rules, and the ports.

The backends implement `Views`; `control/outputs.py`, `control/resume.py` and the backends use the rest. Every
job has a view. It is made before the first replica starts where the job names /gcs, else when a program first
looks for it, where the backend can notice that. It shows the objects as they were then, with names as paths.
What programs write there is only theirs until it is stored (control/outputs.py). Pure except for the
protocols.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from trainshed.core.jobs.job import JobSpec

ROOT = "/gcs"
S3_ROOT = "/s3"  # the same under another name, where the backend has containers
SCHEME = "gs://"
S3 = "s3://"  # another scheme for the same bucket, where this server has it
LONGEST_NAME = 1024  # bytes of an object's
LOCAL = "TRAINSHED_LOCAL_PATHS"  # set by a job that wants AIP_* as paths below /gcs
MOST = 10_000  # objects of all buckets the job does not name, and of each bucket it names, that are shown
_START = r"(?:(?<=://)|(?<![\w.~})*/-]))"  # of a word: other paths may have a folder called gcs
_ROOT = re.compile(_START + r"/(?:gcs|s3)(?![\w.-])")
_NAMED = re.compile(
    rf"(?:{_START}/(?:gcs|s3)/|gs://)" r"([a-z0-9][a-z0-9._-]*[a-z0-9])((?:/[^\s'\";,|&<>()*?\[{$]*)?)(.?)"
)
_BY_PATH = re.compile(rf"{_START}/(?:gcs|s3)/" r"([a-z0-9][a-z0-9._-]*[a-z0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a replica sees below /gcs."""

    project: str
    # The buckets that the job names, with the prefixes it names in them. Of a large one only these prefixes
    # are shown. Other buckets are shown while all of them together are small.
    named: Mapping[str, tuple[str, ...]]
    by_path: frozenset[str] = frozenset()  # those named as a path: they are fetched if not on this disk
    label: str = ""  # runs with the same label see each other's files
    lazy: bool = False  # the job does not name /gcs: make it when a program looks for it
    begin: bool = False  # views of other labels are stored: those that no run uses may be removed
    # Variables that get a local path instead of the gs:// address of the same place.
    paths: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOutView:
    """The result of laying out a view."""

    buckets: tuple[str, ...]
    missing: tuple[str, ...] = ()  # named, but not on this server
    partial: tuple[str, ...] = ()  # too large to be shown whole
    unfetched: tuple[str, ...] = ()  # kept elsewhere and too large to be fetched: shown empty
    unpathable: int = 0  # objects whose names cannot be paths


class ViewSource(Protocol):
    """Lays the objects of buckets out as folders.

    1. below `folder` there is one folder per bucket, each object a file at its name's path, whole.
    2. it is a snapshot: what happens to the buckets later does not change it.
    3. with `copies` the files of buckets the job names may be written to, and all those of a lazy view. Any
       other file may be the object's own and must not be.
    4. buckets that the job does not name are there only where `others` asks for them.
    5. nothing blocks the event loop.
    """

    async def lay_out(self, view: View, folder: str, *, copies: bool, others: bool = True) -> LaidOutView: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that programs of a job made or changed in its view, as last seen."""

    bucket: str
    name: str
    path: str
    size: int
    stamp: str  # it differs after every change of the file
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file of a job that was stored: its stamp, and the object that was made."""

    bucket: str
    name: str
    stamp: str
    size: int
    crc32c: str
    generation: int
    manifest: bool = False
    gone: bool = False  # it was removed again


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewScan:
    """What programs of a job have written."""

    files: tuple[Written, ...] = ()
    unnamed: tuple[str, ...] = ()  # paths that cannot be names of objects
    outside: tuple[str, ...] = ()  # files beside the buckets


class Views(Protocol):
    """An ability of a backend: shows buckets to programs as folders, and tells what they wrote there.

    1. scan shows every regular file written and still there, the newest where it was written twice.
    2. read gives a file's bytes as of its stamp; Conflict where it was changed or is gone.
       tail gives bytes of it as it is now.
    3. what note has kept is told by notes, also by the next server; a torn end is passed over.
    4. remove of the backend forgets the view; until then it stays, whatever happens to its programs.
    5. what keep was asked for outlives the view, until discard.
    6. nothing blocks the event loop.
    """

    def view_of(self, job: str) -> str | None:
        """The label of the job's view; None where it has none."""
        ...

    async def scan(self, job: str) -> ViewScan: ...

    def read(self, file: Written) -> AsyncIterator[bytes]: ...

    async def tail(self, file: Written, offset: int, most: int) -> bytes:
        """The bytes from `offset` on, `most` of them at most; Conflict where the file is gone."""
        ...

    async def shows(self, job: str, bucket: str, name: str) -> bool:
        """False only where its programs have removed the file. True where the view is gone."""
        ...

    async def note(self, job: str, stored: Sequence[Stored]) -> None: ...

    async def notes(self, job: str) -> tuple[Stored, ...]: ...

    async def keep(self, job: str) -> str:
        """Keep what was written and not stored when the view is removed. Returns the path for people.

        Empty where it cannot be kept.
        """
        ...

    def kept(self, job: str) -> str:
        """The path of what was kept of removed views; empty where there is nothing."""
        ...

    async def discard(self, job: str) -> None:
        """Remove what was kept: the job is deleted."""
        ...

    def on_want(self, hint: Callable[[str], None]) -> None:
        """Call hint(job) when a program waits for a view. Call this before the backend starts."""
        ...

    def wants(self, job: str) -> bool:
        """Whether a program has looked for the job's lazy view. Stays true."""
        ...

    async def make(self, job: str, view: View) -> None:
        """Make the lazy view that a program waits for. NotYet while it is being made."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Storing:
    """Whether what a job wrote is stored; else how far it is, or what cannot be stored."""

    done: bool = True
    message: str = ""
    fault: str = ""


STORED = Storing()


def named_buckets(spec: JobSpec) -> dict[str, tuple[str, ...]]:
    """The buckets and paths that a job names in its command, arguments, variables and output."""
    named: dict[str, dict[str, None]] = {}
    for text in _texts(spec):
        for bucket, path, next_letter in _NAMED.findall(text):
            # Before a pattern or a variable only the folders are certain.
            sure = path.rpartition("/")[0] if next_letter and next_letter in "*?[{$" else path
            named.setdefault(bucket, {})[sure.strip("/")] = None
    return {bucket: tuple(paths) for bucket, paths in named.items()}


def buckets_by_path(spec: JobSpec) -> frozenset[str]:
    """The buckets that a job names as paths below /gcs or /s3."""
    return frozenset(item[1] for text in _texts(spec) for item in _BY_PATH.finditer(text))


def _texts(spec: JobSpec) -> Iterator[str]:
    yield spec.output
    for pool in spec.pools:
        yield from pool.command
        yield from pool.args
        yield from (value for _, value in pool.env)


def wants_view(spec: JobSpec) -> bool:
    """Whether the job needs its view from the start: it names /gcs, or has an output in a bucket.

    For any other job a view is made only when a program looks for it, so other jobs pay nothing.
    """
    if spec.output.startswith((SCHEME, ROOT + "/")):
        return True
    for pool in spec.pools:
        for text in pool.command:
            if _names_root(text):
                return True
        for text in pool.args:
            if _names_root(text):
                return True
        for name, value in pool.env:
            if name == LOCAL or _names_root(value):
                return True
    return False


def _names_root(text: str) -> bool:
    return (ROOT in text or S3_ROOT in text) and _ROOT.search(text) is not None


def place_fault(uri: str) -> str:
    """Why results cannot be stored there; empty where they can."""
    if any(ord(item) < 32 or 127 <= ord(item) < 160 or 0xD800 <= ord(item) < 0xE000 for item in uri):
        return "must not have control characters."
    scheme = next((item for item in (SCHEME, S3, ROOT + "/") if uri.startswith(item)), None)
    if scheme is None:
        return ""
    bucket, _, name = uri.removeprefix(scheme).partition("/")
    if not bucket:
        return f"must name a bucket, as in {SCHEME}BUCKET/PATH."
    if name and any(part in ("", ".", "..") for part in name.removesuffix("/").split("/")):
        return "must not have an empty, '.' or '..' part between slashes."
    if len(name.encode()) > LONGEST_NAME:
        return f"must have at most {LONGEST_NAME} bytes after the bucket, not {len(name.encode())}."
    return ""


def address(text: str) -> tuple[str, str] | None:
    """The bucket and the name in gs://BUCKET/NAME, or in s3://BUCKET/NAME."""
    if not text.startswith((SCHEME, S3)):
        return None
    bucket, _, name = text[len(SCHEME) :].partition("/")
    return (bucket, name) if bucket else None


def local_path(uri: str, root: str = ROOT) -> str:
    """gs://BUCKET/NAME as a path below the root of a view."""
    return f"{root}/{uri.removeprefix(SCHEME)}"

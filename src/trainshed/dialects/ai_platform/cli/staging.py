"""Code from this machine into a bucket: packages are built, hashed, and uploaded under their hash.

    gs://STAGING/JOB/SHA256/trainer-0.0.0.tar.gz, or below <job-dir>/packages where no bucket is given

What is in a bucket already is passed through; it stands first, as with gcloud. Where no job comes of it, what
was new there is removed again, but never what somebody else may have put there or uses.
"""

import hashlib
import re
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trainshed.cli import python_project
from trainshed.cli.ai.grammar import Misspelt
from trainshed.cli.failure import CommandFailed
from trainshed.client import ApiError, ClientError, Unreachable
from trainshed.client.storage import StorageClient
from trainshed.dialects.ai_platform.cli import sdist

PAUSES = (0.1, 0.3, 1.0)  # seconds between tries
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://")
_BUCKET = re.compile(r"gs://([^/]+)/?")
_FOLDER = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]+)(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StagingPlace:
    """Where packages go: a bucket, and what their names begin with."""

    bucket: str
    prefix: str


def place(bucket: str | None, job_dir: str | None, job: str) -> StagingPlace | None:
    """The place the flags name. Raises Misspelt where one of them names no bucket."""
    folder = _FOLDER.fullmatch(job_dir) if job_dir else None
    if job_dir and folder is None and not job_dir.startswith("/"):
        raise Misspelt("--job-dir", f"Must begin with 'gs://' and name a bucket, or be a path: [{job_dir}]")
    if bucket:
        match = _BUCKET.fullmatch(bucket)
        if match is None:
            raise Misspelt(
                "--staging-bucket",
                f"Must be a valid bucket of the form [gs://somebucket]: [{bucket}]",
            )
        return StagingPlace(match[1], job)
    if folder is None or folder[1] != "gs":
        return None
    return StagingPlace(folder[2], "/".join(filter(None, ((folder[3] or "").rstrip("/"), "packages"))))


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object that was not there before we put it."""

    bucket: str
    name: str
    generation: str

    @property
    def uri(self) -> str:
        return f"gs://{self.bucket}/{self.name}"


@contextmanager
def taken_back(storage: StorageClient, used: Callable[[], Collection[str]]) -> Generator[list[NewObject]]:
    """A list for what is uploaded in here. Where the server refuses what comes of it, that is removed, unless
    a job uses it. Where it did not answer, or with an error of its own, there may be a job.
    """
    fresh: list[NewObject] = []
    try:
        yield fresh
    except (CommandFailed, ApiError) as error:
        if fresh and (isinstance(error, CommandFailed) or error.code < 500):
            with suppress(ClientError):  # what went wrong first is told
                _remove(fresh, storage, used())
        raise


def _remove(fresh: Sequence[NewObject], storage: StorageClient, used: Collection[str]) -> None:
    for item in fresh:
        if item.uri not in used:
            with suppress(ApiError):  # 412: somebody has put the same there since, and counts on it
                storage.delete(item.bucket, item.name, item.generation)


def staged(
    packages: Sequence[str],
    path: str | None,
    to: StagingPlace | None,
    storage: StorageClient,
    fresh: list[NewObject],
) -> list[str]:
    """The URIs of all packages, those of this machine uploaded; what was not there before is noted."""
    remote = [package for package in packages if _REMOTE.match(package)]
    local = [Path(package) for package in packages if not _REMOTE.match(package)]
    for file in local:
        if not file.is_file():
            raise CommandFailed(
                f"[{file}] is not a file: --packages takes sdists, wheels and gs:// addresses"
            )
    if not local and not path:
        return remote
    if to is None:
        raise CommandFailed(
            "If local packages are provided, the `--staging-bucket` or `--job-dir` flag must be given."
        )
    with _as_command_failed(), tempfile.TemporaryDirectory(prefix="trainshed-package-") as folder:
        if path:
            local.append(_built(path, Path(folder)))
        twice = [name for name, count in Counter(file.name for file in local).items() if count > 1]
        if twice:
            raise CommandFailed(
                f"Cannot upload multiple packages with the same filename: [{', '.join(twice)}]"
            )
        return remote + [_uploaded(file, to, storage, fresh) for file in local]


def _send(file: IO[bytes], bucket: str, name: str, storage: StorageClient) -> NewObject | None:
    """Put it there; None where it was there. Then it is put all the same: it has another generation after,
    so that whoever was first does not take it back from us.
    """
    try:
        generation = _sent(file, bucket, name, storage, only_new=True)
        return NewObject(bucket, name, generation) if generation else None
    except ApiError as error:
        if error.code != 412:
            raise
    _sent(file, bucket, name, storage, only_new=False)
    return None


def _sent(file: IO[bytes], bucket: str, name: str, storage: StorageClient, *, only_new: bool) -> str:
    """Its name is its content's: sending it twice does no harm, so a restart of the server is outlasted."""
    for pause in PAUSES:
        try:
            file.seek(0)
            return storage.send(file, bucket, name, lambda _: None, only_new=only_new)
        except Unreachable:
            time.sleep(pause)
    file.seek(0)
    return storage.send(file, bucket, name, lambda _: None, only_new=only_new)


@contextmanager
def _as_command_failed() -> Generator[None]:
    """What the disk refuses, in a sentence: a full one, a file that may not be read, one that shrinks."""
    try:
        yield
    except (OSError, tarfile.TarError) as error:
        named = error.filename if isinstance(error, OSError) else None
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CommandFailed(f"the package cannot be made: {f'{named}: ' if named else ''}{why}") from error


def _built(path: str, into: Path) -> Path:
    package = sdist.package_at(path)
    described = python_project.project_at(package.parent)
    return python_project.build(described, package, into) if described else sdist.write(package, into)


def _uploaded(path: Path, to: StagingPlace, storage: StorageClient, fresh: list[NewObject]) -> str:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            name = "/".join(filter(None, (to.prefix, digest, path.name)))
            made = _send(file, to.bucket, name, storage)
    except ApiError as error:
        if error.code != 404:
            raise
        how = f"make it with: trainshed storage buckets create gs://{to.bucket}"
        raise CommandFailed(f"[{to.bucket}] bucket does not exist.", [how]) from error
    fresh += [made] if made else []
    return f"gs://{to.bucket}/{name}"

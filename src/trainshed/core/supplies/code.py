"""A folder of code as values: its files, their hashes, and the id computed from them. Pure.

The adapter in `code/`, the API and the service use it. The id is a hash of the content: the same files always
have the same id, and whoever has the id can check what comes back. The rules for paths guarantee that every
manifest can be written below one folder and nowhere else: no path leads up, and nothing is below a file or a
link. It never reads a disk.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainshed.core.errors import Invalid, Violation

MOST_FILES = 100_000
MOST_SIZE = 10 * 2**30  # bytes of all files of a folder together
LONGEST_PATH = 4095  # bytes: the limit of system calls
LONGEST_NAME = 255  # bytes of one part of a path: the limit of file systems
MOST_DEPTH = 200  # nested folders: deeper ones break tools that walk them

_MOST_LINKS = 40  # on the way to a file: the limit of Linux
_MOST_STEPS = 2_000_000  # of following all links of a folder
_HASH = re.compile(r"[0-9a-f]{64}")


class Mode(StrEnum):
    """What a file is, in Git's words."""

    PLAIN = "100644"
    EXECUTABLE = "100755"
    LINK = "120000"  # a symbolic link; its content is its target

    @property
    def permissions(self) -> int:
        return 0o755 if self is Mode.EXECUTABLE else 0o644


@dataclass(frozen=True, slots=True)
class File:
    path: str
    sha256: str
    size: int
    mode: Mode = Mode.PLAIN


@dataclass(frozen=True, slots=True)
class Header:
    """What precedes the bytes of a blob in a stream."""

    sha256: str
    size: int


Piece = Header | bytes  # of a stream of blobs


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """All files of a folder, sorted by the bytes of their paths (`manifest_of` sorts them)."""

    files: tuple[File, ...] = ()

    @property
    def id(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    @property
    def text(self) -> bytes:
        """The manifest as it is hashed and stored."""
        return b"".join(f"{f.mode} {f.sha256} {f.size} {f.path}\0".encode() for f in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def blobs(self) -> dict[str, int]:
        """Every content once, with its size, in order of first use."""
        return {file.sha256: file.size for file in self.files}


def manifest_of(files: Sequence[File]) -> FolderManifest:
    return FolderManifest(tuple(sorted(files, key=lambda file: file.path.encode())))


def read_manifest(text: bytes) -> FolderManifest:
    """The manifest that `FolderManifest.text` wrote. Raises ValueError where the text is not one."""
    files: list[File] = []
    for row in text.split(b"\0")[:-1]:
        mode, sha256, size, path = row.decode().split(" ", 3)
        files.append(File(path, sha256, int(size), Mode(mode)))
    return FolderManifest(tuple(files))


def is_hash(text: str) -> bool:
    """Whether this can be the hash of a content or the id of a folder. Such a text is safe as a file name."""
    return _HASH.fullmatch(text) is not None


def path_fault(path: str) -> str | None:
    """Why no file of a folder can have that path; None where one can."""
    if not path:
        return "must not be empty."
    if "\0" in path:
        return "must not contain a NUL character."
    if path.startswith("/"):
        return "must be relative to the folder, without a slash in front."
    length = len(path.encode(errors="surrogatepass"))
    if length > LONGEST_PATH:
        return f"must have at most {LONGEST_PATH} bytes, not {length}."
    parts = path.split("/")
    if len(parts) > MOST_DEPTH:
        return f"must lie at most {MOST_DEPTH} folders deep, not {len(parts)}."
    if ".." in parts:
        return 'must not lead out of the folder by "..".'
    if "" in parts or "." in parts:
        return 'must be written plainly: without "//", "/./" or a slash at its end.'
    if any(part.lower() == ".git" for part in parts):
        return "must not lie in .git: the history is not part of the code."
    if any(len(part.encode(errors="surrogatepass")) > LONGEST_NAME for part in parts):
        return f"has a part of more than {LONGEST_NAME} bytes, which no file system takes."
    return None


def collisions(files: Sequence[File]) -> Iterator[tuple[int, str]]:
    """The files that collide with others: their index in the list, and why."""
    taken: dict[str, int] = {}
    for number, file in enumerate(files):
        if file.path in taken:
            yield number, f"is the path of files[{taken[file.path]}] as well."
        taken.setdefault(file.path, number)
    for number, file in enumerate(files):
        end = file.path.find("/")
        while end != -1:
            if (above := taken.get(file.path[:end])) is not None:
                kind = "a link" if files[above].mode is Mode.LINK else "a file"
                yield number, f"lies below files[{above}], which is {kind} and not a folder."
                break
            end = file.path.find("/", end + 1)


def contradictions(files: Sequence[File]) -> Iterator[tuple[int, str]]:
    """The files whose size differs from an earlier file with the same hash: their index, and why."""
    sizes: dict[str, int] = {}
    for number, file in enumerate(files):
        known = sizes.setdefault(file.sha256, file.size)
        if known != file.size:
            yield number, f"is {file.size}, but a file with the same hash is said to have {known} bytes."


def link_faults(targets: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """The links that no folder may hold, by their paths in it, and why. `targets`: those of all its links.

    A link is followed as the kernel does, through the other links, so that none leads out by way of another.
    One that leads to nothing, or round in a circle, is only of no use.
    """
    left = _MOST_STEPS
    for path, target in targets.items():
        if not target or len(target) > LONGEST_PATH or b"\0" in target:
            yield path, f"must hold 1 to {LONGEST_PATH} bytes without NUL: it is the target of a link."
            continue
        steps = _steps_within(path, targets)
        left -= abs(steps)
        if steps < 0:
            shown = target[:100].decode(errors="replace")
            yield (
                path,
                f"is a link that leads out of the folder, to {shown}: leave it out, or copy what it means.",
            )
        if left < 0:
            yield path, "is one of links that lead through one another too often."
            return


def refuse_links(manifest: FolderManifest, targets: Mapping[str, bytes]) -> None:
    """Raise Invalid with every link that the folder may not hold."""
    numbers = {file.path: number for number, file in enumerate(manifest.files)}
    violations = tuple(
        Violation(f"files[{numbers[path]}]", f"The file {path} {why}") for path, why in link_faults(targets)
    )
    if violations:
        raise Invalid(violations)


def _steps_within(path: str, targets: Mapping[str, bytes]) -> int:
    """How many steps it takes to follow a link; negative if it leads out of the folder."""
    above = path.split("/")[:-1]
    ahead = [path.rpartition("/")[2]]  # the next step is the last
    steps = links = 0
    while ahead:
        steps += 1
        step = ahead.pop()
        if step == "..":
            if not above:
                return -steps
            above.pop()
        elif step not in ("", "."):
            above.append(step)
            target = targets.get("/".join(above))
            if target is not None:
                links += 1
                if links > _MOST_LINKS:
                    break
                if target.startswith(b"/"):
                    return -steps
                above.pop()
                ahead += reversed(target.decode(errors="surrogateescape").split("/"))
    return steps

"""A job's folder as values: which files it has, what they hold, and the one id that follows from it. Pure.

A folder is known by its content: two people who send the same files get the same id, and whoever has the id
can tell whether what came back is what went in. The rules for names make every list of files one that can
be laid out below one folder and nowhere else: no way leads up, and nothing lies below a file or a link.
Nothing here looks at a disk.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

MOST_FILES = 100_000
MOST_SIZE = 10 * 2**30  # bytes of all files of a folder together
LONGEST_PATH = 4095  # bytes: what one call of the system takes
LONGEST_NAME = 255  # bytes of one part of a path: what file systems take
MOST_DEPTH = 200  # folders in one another: deeper ones break tools that walk them

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
    """What is said of a blob before its bytes come."""

    sha256: str
    size: int


Piece = Header | bytes  # of a stream of blobs


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """All files of a folder, in order of their paths' bytes. `manifest_of` puts them so."""

    files: tuple[File, ...] = ()

    @property
    def id(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    @property
    def text(self) -> bytes:
        """The form the id is the hash of, and the form in which it is kept."""
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
    """The manifest that `FolderManifest.text` wrote. ValueError where it cannot be."""
    files: list[File] = []
    for row in text.split(b"\0")[:-1]:
        mode, sha256, size, path = row.decode().split(" ", 3)
        files.append(File(path, sha256, int(size), Mode(mode)))
    return FolderManifest(tuple(files))


def is_hash(text: str) -> bool:
    """Whether this can be the hash of a content or the id of a folder: safe as a file's name, too."""
    return _HASH.fullmatch(text) is not None


def path_fault(path: str) -> str | None:
    """Why there can be no file of that path in a folder; None where there can."""
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
    """Which files cannot lie beside the others, by their place in the list, and why."""
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
    """Which files say another size of a content than one before them, by their place in the list."""
    sizes: dict[str, int] = {}
    for number, file in enumerate(files):
        known = sizes.setdefault(file.sha256, file.size)
        if known != file.size:
            yield number, f"is {file.size}, but a file with the same hash is said to have {known} bytes."


def target_fault(target: bytes) -> str | None:
    """Why a link cannot have this target; None where it can."""
    if not target or len(target) > LONGEST_PATH or b"\0" in target:
        return f"must hold 1 to {LONGEST_PATH} bytes without NUL: it is the target of a link."
    return None

"""A folder as the server keeps it: each file by the hash of its content, all of them by one id.

What the server has is not sent again, so a connection that breaks off costs no more than the file it was in.
It is told which files there are and never chooses them. Small contents are kept in memory between hashing and
sending; a large file that changes in between is noticed, and nothing is submitted.
"""

import os
import stat
import time

from trainshed.client.errors import ClientError, Interrupted, Unreachable

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from hashlib import sha256

    from trainshed.client.api import Client
    from trainshed.client.connection import Json

    Progress = Callable[[int, int], None]
else:
    try:  # hashlib brings OpenSSL along, which pays for large files only
        from _sha256 import sha256
    except ImportError:
        from hashlib import sha256

FILE, PROGRAM, LINK = "100644", "100755", "120000"
PIECE = 1 << 20
SMALL = 1 << 20  # bytes: a file below is read once and kept
KEPT = 64 << 20  # bytes kept in all
TRIES = 6  # broken connections in a row in which not one more file arrived
PAUSE = 0.25  # seconds, doubled each time: half a minute in all


class Unpackable(Exception):
    """A file that cannot be read, or that changed while it was sent."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Parcel:
    """The files of a folder with their hashes. `entries` is the manifest, in order of the paths' bytes."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.entries: list[Json] = []
        self._kept: dict[str, bytes] = {}
        self._left = KEPT

    def add(self, path: str, seen: os.stat_result) -> None:
        full = f"{self.root}/{path}"
        try:
            if stat.S_ISLNK(seen.st_mode):
                mode, size, digest = LINK, *self._keep(os.fsencode(os.readlink(full)))
            else:
                mode = PROGRAM if seen.st_mode & 0o111 else FILE
                size, digest = self._read(full, seen.st_size)
        except OSError as error:
            raise Unpackable(path, error.strerror or str(error)) from error
        self.entries.append({"path": path, "sha256": digest, "size": size, "mode": mode})

    def _read(self, full: str, size: int) -> tuple[int, str]:
        if size > min(SMALL, self._left):
            return _hashed(full)
        handle = os.open(
            full, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        )  # a file object asks for more than it reads
        try:
            data = os.read(handle, size + 1)
        finally:
            os.close(handle)
        return self._keep(data) if len(data) == size else _hashed(full)

    def _keep(self, data: bytes) -> tuple[int, str]:
        digest: str = sha256(data).hexdigest()
        if digest not in self._kept:
            self._kept[digest] = data
            self._left -= len(data)
        return len(data), digest

    @property
    def size(self) -> int:
        return sum(entry["size"] for entry in self.entries)

    @property
    def contents(self) -> set[str]:
        """The hashes; files that are alike share one."""
        return {entry["sha256"] for entry in self.entries}

    @property
    def code(self) -> str:
        """The id all of it has: the same files have the same, whoever packs them, and wherever."""
        return identity(self.entries)

    def frames(
        self, missing: "Iterable[str]", progress: "Callable[[int], None]"
    ) -> "tuple[int, Iterator[bytes]]":
        """The length of an upload of these contents, small ones first, and its bytes as they are read."""
        wanted = set(missing)
        chosen = {entry["sha256"]: entry for entry in self.entries if entry["sha256"] in wanted}
        ordered = sorted(chosen.values(), key=lambda entry: entry["size"])
        heads = [f"{entry['sha256']} {entry['size']}\n".encode() for entry in ordered]
        length = sum(map(len, heads)) + sum(entry["size"] for entry in ordered)
        return length, self._bytes(list(zip(heads, ordered, strict=True)), progress)

    def _bytes(
        self, frames: "list[tuple[bytes, Json]]", progress: "Callable[[int], None]"
    ) -> "Iterator[bytes]":
        waiting = bytearray()  # small ones go out together
        for head, entry in frames:
            waiting += head
            for piece in self._content(entry):
                waiting += piece
                if len(waiting) >= PIECE:
                    yield bytes(waiting)
                    progress(len(waiting))
                    waiting.clear()
        yield bytes(waiting)
        progress(len(waiting))

    def _content(self, entry: "Json") -> "Iterator[bytes]":
        kept = self._kept.get(entry["sha256"])
        if kept is not None:
            yield kept
            return
        left: int = entry["size"]
        try:
            with open(f"{self.root}/{entry['path']}", "rb") as file:
                while left and (piece := file.read(min(PIECE, left))):
                    left -= len(piece)
                    yield piece
        except OSError as error:
            raise Unpackable(entry["path"], error.strerror or str(error)) from error
        if left:
            raise Unpackable(entry["path"], "it became shorter while it was sent")


def identity(entries: "Iterable[Json]") -> str:
    """The id of a folder, from its manifest in order."""
    text = "".join(
        f"{entry['mode']} {entry['sha256']} {entry['size']} {entry['path']}\0" for entry in entries
    )
    return sha256(text.encode()).hexdigest()


def _hashed(full: str) -> tuple[int, str]:
    import hashlib

    hashing = hashlib.sha256()
    size = 0
    with open(full, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            hashing.update(piece)
            size += len(piece)
    return size, hashing.hexdigest()


def send(client: "Client", parcel: Parcel, progress: "Progress | None" = None) -> tuple[int, int]:
    """Brings to the server what it lacks, and has it keep the folder; how many files and bytes were sent.

    Goes on after broken connections and restarts of the server, as long as something arrives between them.
    """
    sizes: dict[str, int] = {entry["sha256"]: entry["size"] for entry in parcel.entries}
    first: list[str] | None = None
    least = len(sizes) + 1
    tries = 0
    is_whole = False  # whether the last upload came to its end
    while True:
        try:
            missing: list[str] = client.missing(parcel.entries)["missing"]
            first = missing if first is None else first
            total = sum(sizes.get(item, 0) for item in first)
            if not missing:
                return len(first), total
            if len(missing) < least:
                tries = 0
            elif is_whole:
                raise ClientError("the server does not keep what is sent to it; nothing was submitted")
            least = min(least, len(missing))
            left = sum(sizes.get(item, 0) for item in missing)
            is_whole = False
            client.upload(*parcel.frames(missing, _counter(total - left, total, progress)))
            is_whole = True
        except (Interrupted, Unreachable):
            tries += 1
            if tries > TRIES:
                raise
            time.sleep(PAUSE * 2**tries)


def _counter(done: int, total: int, progress: "Progress | None") -> "Callable[[int], None]":
    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress:
            progress(min(done, total), total)

    return count

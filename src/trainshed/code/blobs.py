"""Contents on disk, each under its hash. What is there is whole, or is found out on reading.

It may assume that one server works on its folder. Every call is of the blocking kind, for a thread, but for
small ones. It never changes a blob and never says where one is to somebody who could.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from trainshed.disk.folder_sync import sync_folder

CHUNK = 1 << 20


class DamagedBlob(Exception):
    """A content is not there, or is not what its hash says. It has been forgotten."""

    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256
        super().__init__(sha256)


class Blobs:
    def __init__(self, home: Path, now: Callable[[], float]) -> None:
        self._home = str(home / "blobs")
        self._now = now

    def open(self) -> None:
        os.makedirs(self._home, 0o700, exist_ok=True)

    def path(self, sha256: str) -> str:
        return f"{self._home}/{sha256[:2]}/{sha256[2:]}"

    def size(self, sha256: str) -> int | None:
        try:
            return os.stat(self.path(sha256)).st_size
        except FileNotFoundError:
            return None

    def touch(self, sha256: str) -> None:
        """Somebody counts on it: young again."""
        with contextlib.suppress(FileNotFoundError):
            now = self._now()
            os.utime(self.path(sha256), (now, now))

    def read(self, sha256: str) -> Iterator[bytes]:
        """The content in chunks; the last one only if all of them were right. Damaged where they are not."""
        try:
            handle = os.open(self.path(sha256), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise DamagedBlob(sha256) from None
        try:
            digest = hashlib.sha256()
            previous: bytes | None = None
            while chunk := os.read(handle, CHUNK):
                digest.update(chunk)
                if previous is not None:
                    yield previous
                previous = chunk
            if digest.hexdigest() != sha256:
                self._forget(sha256, os.fstat(handle).st_ino)
                raise DamagedBlob(sha256)
            if previous is not None:
                yield previous
        finally:
            os.close(handle)

    def is_whole(self, sha256: str) -> bool:
        try:
            for _ in self.read(sha256):
                pass
        except DamagedBlob:
            return False
        return True

    def settle(self, drafts: dict[str, str]) -> None:
        """Put synced files in place, by hash, and return when they are there for good."""
        folders: set[str] = set()
        now = self._now()
        for sha256, draft in drafts.items():
            place = self.path(sha256)
            os.utime(draft, (now, now))
            try:
                os.rename(draft, place)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
                folders.add(self._home)
                os.rename(draft, place)
            folders.add(os.path.dirname(place))
        for folder in folders:
            sync_folder(folder)

    def drop_older(self, than: float, keep: set[str]) -> int:
        """Remove what is not in `keep` and has not been touched since `than`; how many went."""
        gone = 0
        for folder in os.listdir(self._home):
            with os.scandir(f"{self._home}/{folder}") as entries:
                for entry in entries:
                    if folder + entry.name not in keep and entry.stat(follow_symlinks=False).st_mtime < than:
                        os.unlink(entry.path)
                        gone += 1
        return gone

    def _forget(self, sha256: str, inode: int) -> None:
        # Not one that was sent anew meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self.path(sha256)).st_ino == inode:
                os.unlink(self.path(sha256))

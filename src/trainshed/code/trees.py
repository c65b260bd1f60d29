"""Folders on disk: a manifest under its own hash, and since when nobody has needed it.

One server works on its files. The caller says which folders are needed. A folder is removed a day after it
was first seen without a job, not a day after its upload: a server that runs with the wrong database for an
hour removes nothing.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from trainshed.core.supplies.code import FolderManifest, is_hash, read_manifest
from trainshed.disk.folder_sync import sync_folder


class Trees:
    def __init__(self, home: Path, now: Callable[[], float]) -> None:
        self._now = now
        self._home, self._unused, self._drafts = str(home / "trees"), str(home / "unused"), str(home / "new")
        # Short, so that the event loop may take it: between "it is needed" and "it goes".
        self._deciding = threading.Lock()

    def open(self) -> None:
        for folder in (self._home, self._unused):
            os.makedirs(folder, 0o700, exist_ok=True)

    def length(self, code: str) -> int | None:
        """How long its manifest is, in bytes; None where there is no such folder."""
        try:
            return os.stat(f"{self._home}/{code}").st_size
        except FileNotFoundError:
            return None

    def load(self, code: str) -> FolderManifest | None:
        """The folder; None where there is none, or where what is there is damaged and was forgotten."""
        path = f"{self._home}/{code}"
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return None
        try:
            manifest = read_manifest(text)
        except ValueError:
            manifest = FolderManifest()
        if manifest.text == text and manifest.id == code:
            return manifest
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return None

    def keep(self, manifest: FolderManifest) -> None:
        """Durable when it returns."""
        code, text = manifest.id, manifest.text
        if self.hold(code) and self.length(code) == len(text):
            return
        draft = f"{self._drafts}/{os.urandom(12).hex()}"
        with open(draft, "xb") as file:
            os.fchmod(file.fileno(), 0o400)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(draft, f"{self._home}/{code}")
        sync_folder(self._home)

    def hold(self, code: str) -> bool:
        """Whether it is there; if so, it stays for a day at least."""
        with self._deciding:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._unused}/{code}")
            return self.length(code) is not None

    def all(self) -> Iterator[str]:
        return filter(is_hash, os.listdir(self._home))

    def let_go(self, used: frozenset[str], than: float) -> list[str]:
        """Note what is unused; remove, and name, what has been since before `than`."""
        gone: list[str] = []
        for code in list(self.all()):
            mark = f"{self._unused}/{code}"
            with self._deciding:
                if code in used:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(mark)
                    continue
                try:
                    since = os.stat(mark).st_mtime
                except FileNotFoundError:
                    os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                    os.utime(mark, (self._now(), self._now()))
                    continue
                if since < than:
                    os.unlink(f"{self._home}/{code}")
                    os.unlink(mark)
                    gone.append(code)
        return gone

"""Buckets on the disk laid out as folders: implements `core.view.ViewSource`.

Bytes are never changed, so a second name for an object's file is a snapshot of it that costs no room. Ten
thousand of them take a fraction of a second. It reads the index by a connection of its own and never writes
to it, nor to an object's file. Names that cannot be paths (`a//b`, `..`, longer than a file's may be, or
below another object) are left out and counted.
"""

import asyncio
import contextlib
import errno
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from trainshed.buckets import index
from trainshed.buckets.places import LONGEST_PART
from trainshed.buckets.trouble import translated
from trainshed.core.view import MOST, LaidOutView, View

_TRIES = 3
_NEEDS_MODE = os.geteuid() != 0  # root writes whatever the mode says

Row: TypeAlias = tuple[bytes, str, str | None]


class DiskViewSource:
    def __init__(self, root: Path, most: int = MOST) -> None:
        self._root = root
        self._own = root / ".trainshed"
        self._most = most

    async def lay_out(self, view: View, folder: str, *, copies: bool, others: bool = True) -> LaidOutView:
        return await asyncio.to_thread(self._lay_out, view, folder, copies, others)

    def _lay_out(self, view: View, folder: str, copies: bool, others: bool) -> LaidOutView:
        with translated("The buckets cannot be laid out"):
            db = index.connect(self._own / "index.db")
            try:
                os.makedirs(folder, 0o755, exist_ok=True)
                shown = self._shown(db, view, copies, others)
                unpathable = 0
                for bucket, paths in shown.items():
                    copied = copies and (view.lazy or bucket in view.named)
                    unpathable += self._lay(db, bucket, _rows(db, bucket, paths), folder, copied)
                large = [] if view.lazy else [item for item in shown if self._is_large(db, item)]
            finally:
                db.close()
        partial = tuple(item for item in shown if item in large or not shown[item])
        missing = tuple(name for name in view.named if name not in shown)
        return LaidOutView(buckets=tuple(shown), missing=missing, partial=partial, unpathable=unpathable)

    def _shown(
        self, db: sqlite3.Connection, view: View, copies: bool, others: bool
    ) -> dict[str, Sequence[str]]:
        """The buckets to show, and which paths of each: all of those the job names, as far as it names them.

        Of the project's others all objects where a program waits for them, else while these are few, the
        small buckets first. The rest is shown empty, for what is written there.
        """
        shown: dict[str, Sequence[str]] = {}
        own = [bucket.name for bucket in index.buckets(db) if bucket.is_open_to(view.project)]
        for name in own:
            if name in view.named and not view.lazy:
                shown[name] = view.named[name] if copies or self._is_large(db, name) else ("",)
        rest = {name: index.count(db, name, self._most + 1) for name in own if name not in shown}
        room = self._most
        for name, count in sorted(rest.items(), key=lambda item: item[1]) if others else ():
            room -= count
            shown[name] = ("",) if view.lazy or room >= 0 else ()
        return shown

    def _is_large(self, db: sqlite3.Connection, bucket: str) -> bool:
        return index.count(db, bucket, self._most + 1) > self._most

    def _lay(
        self, db: sqlite3.Connection, bucket: str, rows: Iterable[Row], folder: str, copies: bool
    ) -> int:
        target = f"{folder}/{bucket}"
        os.mkdir(target, 0o755)
        made, left_out = {target}, 0
        for raw, file, place in rows:
            name = raw.decode()
            if not _is_path(name):
                left_out += 1
                continue
            path = f"{target}/{name}"
            above = path.rpartition("/")[0]
            try:
                if above not in made:
                    os.makedirs(above, 0o755, exist_ok=True)
                    made.add(above)
                if not name.endswith("/"):
                    left_out += not self._put(db, bucket, (raw, file, place), path, copies)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                left_out += 1  # another object is where its folder would have to be
        return left_out

    def _put(
        self,
        db: sqlite3.Connection,
        bucket: str,
        row: Row,
        path: str,
        copies: bool,
    ) -> bool:
        """Put the object at the path; False where it is gone. Of one that is replaced the new one may be."""
        raw, file, place = row
        for _ in range(_TRIES):
            sources = [] if place is None else [f"{self._root}/{bucket}/{place}"]
            for source in (*sources, f"{self._own}/held/{file}"):
                with contextlib.suppress(FileNotFoundError):
                    _share(source, path, copies)
                    return True
            kept = index.get(db, bucket, raw.decode())
            if kept is None:
                return False
            file, place = kept.file, kept.place
        return False


def _rows(db: sqlite3.Connection, bucket: str, paths: Sequence[str]) -> Iterator[Row]:
    """The objects at or below these paths, each once."""
    if "" in paths:
        yield from index.files(db, bucket)
        return
    tops = [item for item in paths if not any(item.startswith(f"{other}/") for other in paths)]
    for path in tops:
        name = path.encode()
        yield from index.files(db, bucket, name, name + b"\0")
        yield from index.files(db, bucket, name + b"/", name + b"0")  # the letter behind the slash


def _share(source: str, path: str, copies: bool) -> None:
    if not copies:
        try:
            os.link(source, path, follow_symlinks=False)
            if _NEEDS_MODE and not os.lstat(path).st_mode & stat.S_IWUSR:  # stored by an older release
                os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
            return
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP):
                raise
    shutil.copyfile(source, path, follow_symlinks=False)


def _is_path(name: str) -> bool:
    parts = name.removesuffix("/").split("/")
    return "\0" not in name and all(
        part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts
    )

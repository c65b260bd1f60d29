"""IndexWriter: the only writer of the buckets' index. It commits changes in groups, then applies effects.

The buckets on the disk call it. A change is a function that reads the index, raises an error to refuse,
writes, and returns its result with effects: files to rename or to remove. Effects run after the commit, in
order. If the process dies in between, `mend` applies them at the next start. If a change raises, what it
wrote is rolled back. A caller never gets an answer before the commit.
"""

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from trainshed.buckets import index, index_schema
from trainshed.buckets.index import StoredObject
from trainshed.buckets.index_guard import IndexGuard
from trainshed.buckets.places import parents
from trainshed.buckets.trouble import as_error, translated
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.disk.sqlite_files import SqliteFiles

log = logging.getLogger(__name__)

MOST = 256  # changes of one commit
# What a change raises that its request or our code is to blame for. The disk and the index are everybody's.
_OF_ONE = (TrainshedError, ArithmeticError, LookupError, TypeError, ValueError)
_ENDED = "The buckets take no changes any more; try again when the server was started anew."
_T = TypeVar("_T")

Effect = Callable[[], None]
Change = Callable[[sqlite3.Connection], tuple[Any, tuple[Effect, ...]]]


@dataclass(slots=True)
class _Asked:
    change: Change
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Any]


class IndexWriter:
    """`held_folder` has the files without a place; `root` contains the buckets' folders."""

    def __init__(self, path: Path, held_folder: Path, root: Path) -> None:
        self._path = path
        self._files = SqliteFiles(path, f"The buckets' index {path}")
        self._held = held_folder
        self._root = root
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._retired: set[str] = set()  # files that became old versions in the current batch
        self._gone: list[tuple[str, str]] = []  # places whose files are removed: their drops can be forgotten

    def start(self) -> None:
        """Finish what an earlier process could not, then take changes."""
        self._files.reconnecting()
        db = index.connect(self._path)
        self._thread = threading.Thread(target=self._run, args=(db,), name="index-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._asked.put(None)
            self._thread.join()
            self._thread = None

    def mend(self, oldest: datetime) -> None:
        """Apply the effects that an earlier process committed; remove files that nothing refers to.

        Unavailable, and nothing is touched, if the index is not the one of these files.
        """
        guard = IndexGuard(self._root)
        if not guard.check():  # SQLite gives its other files the mode of this one
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = index.connect(self._path)
        try:
            index_schema.make(db)
            guard.settle(db)
            self._files.opened()
            index.forget_uploads(db, oldest)
            for bucket, place in index.drops(db):
                self.discard(bucket, place)
            for file in os.listdir(self._held):
                if (kept := index.by_file(db, file)) is not None:
                    self.settle(kept)
                    self._unlink_twin(kept)
                elif not index.has_upload(db, file):
                    self.let_go(file)
        finally:
            db.close()

    async def write(self, change: Callable[[sqlite3.Connection], tuple[_T, tuple[Effect, ...]]]) -> _T:
        """Return the change's result once the change is durable."""
        if self._thread is None:
            raise Unavailable(_ENDED)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_T] = loop.create_future()
        self._asked.put(_Asked(change, loop, answer))
        return await answer

    def retire(self, live: StoredObject) -> None:
        """Link a placed file into the folder of held files, where the bytes of old versions stay.

        A change calls this, so that the link exists before the index refers to it.
        """
        self._retired.add(live.file)
        if live.place is None:
            return
        # The file may still be held, or be gone. Readers of the version then get an error: it is damaged.
        with (
            translated("The old version cannot be kept"),
            contextlib.suppress(FileExistsError, FileNotFoundError, NotADirectoryError),
        ):
            place = self.placed(live.info.bucket, live.place)
            os.link(place, self.held_path(live.file), follow_symlinks=False)

    # ---- effects

    def settle(self, kept: StoredObject) -> None:
        """Give a held file the place that the index says it has, unless it became an old version since."""
        if kept.place is None or kept.file in self._retired:
            return
        source, target = self.held_path(kept.file), self.placed(kept.info.bucket, kept.place)
        try:
            os.rename(source, target)
        except FileNotFoundError:
            try:
                os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
                os.rename(source, target)
            except OSError as error:
                self._left(kept, error)
        except OSError as error:
            self._left(kept, error)

    def _unlink_twin(self, kept: StoredObject) -> None:
        """Remove the second link of an object that was becoming an old version when the process died."""
        if kept.place is not None:
            source, target = self.held_path(kept.file), self.placed(kept.info.bucket, kept.place)
            with contextlib.suppress(OSError):
                if os.path.samefile(source, target):
                    os.unlink(source)

    def _left(self, kept: StoredObject, error: OSError) -> None:
        # The held file can be read, and the next start tries the rename again.
        log.warning("gs://%s/%s stays without its place: %s", kept.info.bucket, kept.info.name, error)

    def discard(self, bucket: str, place: str) -> None:
        """Remove a file from its place, and the parent folders that are then empty."""
        with contextlib.suppress(OSError):
            os.unlink(self.placed(bucket, place))
        for parent in parents(place):
            try:
                os.rmdir(self.placed(bucket, parent))
            except OSError:
                break
        self._gone.append((bucket, place))

    def let_go(self, file: str) -> None:
        """Remove a held file."""
        with contextlib.suppress(OSError):
            os.unlink(self.held_path(file))

    def held_path(self, file: str) -> str:
        return os.path.join(self._held, file)

    def placed(self, bucket: str, place: str) -> str:
        return os.path.join(self._root, bucket, place)

    # ---- the thread

    def _run(self, db: sqlite3.Connection) -> None:
        folder = os.open(self._held, os.O_RDONLY | os.O_DIRECTORY)
        try:
            while (first := self._asked.get()) is not None:
                batch, ends = [first], False
                while len(batch) < MOST and not ends:
                    try:
                        more = self._asked.get_nowait()
                    except queue.Empty:
                        break
                    if more is None:
                        ends = True
                    else:
                        batch.append(more)
                try:
                    self._commit(db, folder, batch)
                except BaseException:
                    # A bug of ours. Callers must not wait for an answer that never comes.
                    self._thread = None
                    _answer([(asked, None, Unavailable(_ENDED)) for asked in [*batch, *self._left_over()]])
                    raise
                if ends:
                    return
        finally:
            os.close(folder)
            db.close()

    def _left_over(self) -> list[_Asked]:
        left: list[_Asked] = []
        with contextlib.suppress(queue.Empty):
            while True:
                if (asked := self._asked.get_nowait()) is not None:
                    left.append(asked)
        return left

    def _commit(self, db: sqlite3.Connection, folder: int, batch: list[_Asked]) -> None:
        results: list[tuple[_Asked, Any, BaseException | None]] = []
        effects: list[Effect] = []
        self._retired.clear()
        try:
            db.execute("BEGIN IMMEDIATE")
            self._files.begun()
            for bucket, place in self._gone:
                index.undrop(db, bucket, place)
            for asked in batch:
                db.execute("SAVEPOINT change")
                try:
                    result, implied = asked.change(db)
                except _OF_ONE as error:
                    db.execute("ROLLBACK TO change")
                    results.append((asked, None, error))
                else:
                    results.append((asked, result, None))
                    effects.extend(implied)
            os.fsync(folder)  # the names of the files that the index is about to refer to
            self._files.check()
            db.execute("COMMIT")
            self._gone.clear()
        except (sqlite3.Error, OSError, Unavailable) as error:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            log.warning("The buckets' index cannot be written: %s", error)
            what = "The buckets cannot be written to"
            refusal = error if isinstance(error, Unavailable) else as_error(what, error)
            results = [(asked, None, refusal) for asked in batch]
            effects = []
        for effect in effects:
            effect()
        _answer(results)


def _answer(results: list[tuple[_Asked, Any, BaseException | None]]) -> None:
    """Call into each event loop once, however many callers wait there."""
    loops = {id(asked.loop): asked.loop for asked, _, _ in results}
    for loop in loops.values():
        own = [entry for entry in results if entry[0].loop is loop]
        with contextlib.suppress(RuntimeError):  # the loop is closed, and its callers with it
            loop.call_soon_threadsafe(_resolve, own)


def _resolve(results: list[tuple[_Asked, Any, BaseException | None]]) -> None:
    for asked, result, error in results:
        if asked.answer.done():
            continue  # the caller was cancelled
        if error is None:
            asked.answer.set_result(result)
        else:
            asked.answer.set_exception(error)

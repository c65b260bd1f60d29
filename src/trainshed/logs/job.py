"""All output of one job: its files, the order among them, and those who wait for more.

A batch is dated later than every batch of the job dated before, in whichever file. So a reader who goes on
behind the last line it has seen misses nothing. Belongs to the event loop's thread; only views leave it.

On disk: FOLDER/<attempt>.<pool>-<index>.out and .err, each with its .idx. FOLDER has the sticky bit until the
job is finished: setting and clearing it needs no file, and works on a full disk too.
"""

import asyncio
import logging
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from trainshed.core.logs import OutputStream
from trainshed.core.names import ReplicaName
from trainshed.logs.file import LogFile, ReadableRange, make, path_of
from trainshed.logs.line_counts import LineCounts

LIVE, FINISHED = 0o755 | stat.S_ISVTX, 0o755

_log = logging.getLogger(__name__)
_NAME = re.compile(r"(\d+)\.(\d+)-(\d+)\.(out|err)")


class JobLog:
    def __init__(self, folder: Path) -> None:
        self.job = folder.name
        self.folder = folder
        self.files: dict[str, LogFile] = {}
        self._counts: dict[str, LineCounts] = {}
        self.is_finished = False
        self.is_stalled = False  # the disk takes no index records
        self.followers = 0
        self.watchers = 0  # who want to know that it grew, but not at once
        self.changes = 0
        self.count_begun = 0  # bytes that were dated when its lines were last counted ahead
        self._floor = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @classmethod
    def load(cls, folder: Path) -> "JobLog | None":
        """What an earlier server (or this one) left of that job; None where nothing."""
        try:
            mode = os.stat(folder).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISDIR(mode):
            return None
        log = cls(folder)
        log.is_finished = not mode & stat.S_ISVTX
        log._find()
        return log

    def begin(self) -> None:
        """Let the job print: from the first moment on its folder is live, be it new or one that was left."""
        try:
            os.mkdir(self.folder, LIVE)
        except FileExistsError:
            os.chmod(self.folder, LIVE)
            self._find()

    def _find(self) -> None:
        for path in self.folder.iterdir():
            if match := _NAME.fullmatch(path.name):
                *numbers, suffix = match.groups()
                attempt, pool, index = map(int, numbers)
                stream = OutputStream.STDOUT if suffix == "out" else OutputStream.STDERR
                self._add(str(path), ReplicaName(self.job, attempt, pool, index), stream)

    def open(self, name: ReplicaName) -> tuple[LogFile, LogFile]:
        """The two files of that replica, made where missing. OSError where the disk is full."""
        opened: list[LogFile] = []
        for stream in (OutputStream.STDOUT, OutputStream.STDERR):
            path = path_of(str(self.folder), name, stream)
            is_new = make(path)  # an earlier run of the replica may have put something else there
            opened.append(self.files.get(path) or self._add(path, name, stream, is_new))
        return opened[0], opened[1]

    def _add(self, path: str, name: ReplicaName, stream: OutputStream, is_new: bool = False) -> LogFile:
        file = self.files[path] = LogFile(path, name, stream, is_new)
        self._floor = max(self._floor, file.index.bound)
        return file

    @property
    def dated(self) -> int:
        return sum(file.index.last.end for file in self.files.values())

    @property
    def kept(self) -> int:
        return sum(file.kept for file in self.files.values())

    def views(self) -> list[ReadableRange]:
        return [file.view() for file in self.files.values()]

    def counts(self, views: Iterable[ReadableRange]) -> list[LineCounts]:
        """How many lines these files have, as far as they are counted. May run in any thread."""
        known = self._counts
        return [
            known.get(view.file.path) or known.setdefault(view.file.path, LineCounts(view.file))
            for view in views
        ]

    def stamp(self, files: Iterable[LogFile], now_ns: int) -> set[str]:
        """Date what has been written into these files; the paths of those that had grown."""
        grown: list[tuple[int, int, LogFile]] = []
        try:
            grown = [(*change, file) for file in files if (change := file.grown())]
            grown.sort(key=lambda change: change[0])
            for modified_ns, size, file in grown:
                file.stamp(modified_ns, size, now_ns, self._floor)
                self._floor = file.index.bound
        except OSError as error:
            self._stall(error)
        else:
            self.is_stalled = False
        if grown:
            self.wake()
        return {file.path for *_, file in grown}

    def close(self, now_ns: int) -> None:
        """Date everything, a last line without newline too. What the disk does not take now comes later."""
        waiting = [file for file in self.files.values() if not file.index.is_closed]
        self.stamp(waiting, now_ns)
        if self.is_stalled:
            return
        try:
            for file in filter(LogFile.is_intact, waiting):
                file.close(now_ns, self._floor)
                self._floor = max(self._floor, file.index.bound)
        except OSError as error:
            self._stall(error)

    def finish(self) -> None:
        try:
            os.chmod(self.folder, FINISHED)
        except FileNotFoundError:
            os.makedirs(self.folder, FINISHED)  # a job that never printed has a log too: an empty one
        self.end()

    def end(self) -> None:
        """Let the followers read what there is, and go."""
        self.is_finished = True
        self.wake()

    def wake(self) -> None:
        self.changes += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def changed(self, since: int) -> None:
        """Return once anything has changed since `changes` had that value."""
        if self.changes == since:
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await future
            finally:
                self._waiting.discard(future)

    def _stall(self, error: OSError) -> None:
        if not self.is_stalled:
            _log.warning(
                "New log lines of job %s cannot be dated, and so not be shown, yet: %s", self.job, error
            )
        self.is_stalled = True

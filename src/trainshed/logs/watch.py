"""Sees live log files grow: at once when they have been quiet, at a steady pace while they do not rest.

A quiet file is watched by the kernel and costs nothing. Its first write wakes us; from then on we look at
its size every PACE (every HURRY while somebody follows), and no event is made for its writes, until it has
not grown between two looks. So a flood costs its program nothing and us a few looks a second, and an idle
server sleeps. Without inotify all live files are looked at at PACE.
"""

import asyncio
from collections.abc import Callable, Iterable

from trainshed.disk.inotify import InotifyWatcher
from trainshed.logs.file import LogFile
from trainshed.logs.job import JobLog

HURRY = 0.002
PACE = 0.025
FIRST = 0.1  # to a new file
UNTOLD = 0.05  # where the kernel tells nothing
STALLED = 1.0  # where the disk is full


class LogFileWatch:
    """Calls `look(job, files)`, which gives the paths of those that had grown."""

    def __init__(self, look: Callable[[JobLog, Iterable[LogFile]], set[str]]) -> None:
        self._look = look
        self._watcher = InotifyWatcher()
        self._known: dict[str, tuple[JobLog, LogFile]] = {}
        self._active: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        if self._watcher.works:
            self._loop.add_reader(self._watcher.descriptor, self._fired)

    def add(self, job: JobLog, file: LogFile) -> None:
        if file.path not in self._known:
            self._known[file.path] = (job, file)
            # What was written before is seen by the first look, and the kernel is asked then.
            self._active.add(file.path)
            # Nobody waits for it yet: a program that is short is over by then, and needs no watching at all.
            self._tick_within(0 if job.followers else FIRST)

    def discard(self, job: JobLog) -> None:
        for path in job.files:
            if self._known.pop(path, None):
                self._active.discard(path)
                self._watcher.disarm(path)

    def hurry(self) -> None:
        """Somebody begins to follow: look more often from now on."""
        if self._timer is not None:
            self._tick_within(HURRY)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._watcher.works:
            self._loop.remove_reader(self._watcher.descriptor)
        self._watcher.close()
        self._known.clear()
        self._active.clear()

    def _fired(self) -> None:
        paths = {path for path in self._watcher.fired() if path in self._known}
        self._active |= paths
        self._see(paths)
        self._again()

    def _tick(self) -> None:
        self._timer = None
        grown = self._see(self._active)
        quiet = self._active - grown
        if self._watcher.works:
            armed = {
                path for path in quiet if not self._known[path][0].is_stalled and self._watcher.arm(path)
            }
            # Looked at once more: a write between the look and the arming would be told by nobody.
            self._active -= armed - self._see(armed)
        self._again()

    def _see(self, paths: set[str]) -> set[str]:
        by_job: dict[JobLog, list[LogFile]] = {}
        for path in paths:
            job, file = self._known[path]
            by_job.setdefault(job, []).append(file)
        grown: set[str] = set()
        for job, files in by_job.items():
            grown |= self._look(job, files)
        return grown

    def _again(self) -> None:
        jobs = {self._known[path][0] for path in self._active}
        if not jobs:
            return
        if all(job.is_stalled for job in jobs):
            delay = STALLED
        elif any(job.followers for job in jobs):
            delay = HURRY
        else:
            delay = PACE if self._watcher.works else UNTOLD
        self._tick_within(delay)

    def _tick_within(self, delay: float) -> None:
        due = self._loop.time() + delay
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due  # kept here: not every loop's timers can tell
        self._timer = self._loop.call_at(due, self._tick)

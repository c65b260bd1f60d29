"""Sees programs write into the files through which they report. The metric store uses it for jobs of studies.

The kernel tells the next write to a file, once. Each look at the reports asks again, before it reads: so no
write is missed, and a program that reports without rest costs one wakeup for each look. A file that is not
there yet is awaited by its folder. Where the kernel tells nothing, `works` is False.
"""

import asyncio
from collections.abc import Callable, Iterable

from trainshed.disk.inotify import ENTERED, InotifyWatcher


class ReportFileWatch:
    """Not for two threads: it belongs to the event loop."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._watcher = InotifyWatcher()
        self._hints: dict[str, Callable[[], None]] = {}  # by job
        self._jobs: dict[str, str] = {}  # by path: of files that are asked for
        self._awaited: dict[str, str] = {}  # the same, of files that are not there yet
        self._loop = asyncio.get_running_loop()
        if self._watcher.works:
            self._loop.add_reader(self._watcher.descriptor, self._fired)

    @property
    def works(self) -> bool:
        return self._watcher.works

    def add(self, job: str, hint: Callable[[], None]) -> None:
        self._hints[job] = hint

    def discard(self, job: str) -> None:
        self._hints.pop(job, None)
        for path in [path for path, owner in self._jobs.items() if owner == job]:
            del self._jobs[path]
            self._watcher.disarm(path)
        self._awaited = {path: owner for path, owner in self._awaited.items() if owner != job}

    def ask(self, job: str, paths: Iterable[str]) -> None:
        """Tell the next change of these files, if the job was added. Call it before they are read."""
        if job not in self._hints or not self._watcher.works:
            return
        # The folder first: a file that is made in between is there for the second question.
        self._watcher.arm(self._folder, ENTERED)
        for path in paths:
            if self._watcher.arm(path):
                self._jobs[path] = job
                self._awaited.pop(path, None)
            else:
                self._awaited[path] = job

    def close(self) -> None:
        if self._watcher.works:
            self._loop.remove_reader(self._watcher.descriptor)
        self._watcher.close()
        self._hints.clear()
        self._jobs.clear()
        self._awaited.clear()

    def _fired(self) -> None:
        paths = self._watcher.fired()
        jobs = {self._jobs.pop(path) for path in paths if path in self._jobs}
        if self._folder in paths:
            jobs |= set(self._awaited.values())
        for job in jobs & self._hints.keys():
            self._hints[job]()

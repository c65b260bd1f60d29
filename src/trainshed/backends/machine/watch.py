"""Reports within a millisecond that a process has ended, be it a child of this server or of an earlier one.

Supervisors call it. It uses a pidfd where the kernel has them and descriptors are left, else it polls every
few milliseconds. It reaps children. It never decides what an end means.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from trainshed.backends.machine import processes
from trainshed.backends.machine.processes import Identity

_POLL = 0.02


@dataclass(slots=True)
class _WatchedProcess:
    pid: int
    start: int | None  # None for a child of ours: unreaped, its pid cannot pass to another
    gone: Callable[[], None]
    handle: int | None = None


class ProcessEndWatch:
    def __init__(self, *, pidfd: bool = True) -> None:
        self._pidfd = pidfd and hasattr(os, "pidfd_open")
        self._polled: dict[int, _WatchedProcess] = {}
        self._handles: dict[int, _WatchedProcess] = {}
        self._poller: asyncio.Task[None] | None = None

    def child(self, pid: int, gone: Callable[[], None]) -> None:
        """Watch a child just started."""
        self._add(_WatchedProcess(pid, None, gone))

    def adopt(self, other: Identity, gone: Callable[[], None]) -> bool:
        """Watch another's child; False where it is not there any more."""
        watched = _WatchedProcess(other.pid, other.start, gone)
        self._add(watched)
        # Looked at with the handle open, so that it surely is the handle of this process.
        if processes.alive(other):
            return True
        self._drop(watched)
        return False

    def close(self) -> None:
        for watched in [*self._handles.values(), *self._polled.values()]:
            self._drop(watched)
        if self._poller is not None:
            self._poller.cancel()
            self._poller = None

    def _add(self, watched: _WatchedProcess) -> None:
        handle = None
        if self._pidfd:
            with contextlib.suppress(OSError):  # gone already, or no descriptors left: looking finds out
                handle = os.pidfd_open(watched.pid)
        if handle is None:
            self._polled[watched.pid] = watched
            if self._poller is None:
                self._poller = asyncio.get_running_loop().create_task(self._poll())
            return
        watched.handle = handle
        self._handles[handle] = watched
        asyncio.get_running_loop().add_reader(handle, self._ended, watched)

    def _drop(self, watched: _WatchedProcess) -> None:
        if watched.handle is None:
            self._polled.pop(watched.pid, None)
        elif self._handles.pop(watched.handle, None) is not None:
            asyncio.get_running_loop().remove_reader(watched.handle)
            os.close(watched.handle)

    def _ended(self, watched: _WatchedProcess) -> None:
        self._drop(watched)
        with contextlib.suppress(ChildProcessError):  # not our child: its new parent reaps it
            os.waitpid(watched.pid, os.WNOHANG)
        watched.gone()

    async def _poll(self) -> None:
        while self._polled:
            for watched in list(self._polled.values()):
                process = processes.look(watched.pid)
                same = process is not None and watched.start in (None, process.start)
                if process is None or process.dead or not same:
                    self._ended(watched)
            await asyncio.sleep(_POLL)
        self._poller = None

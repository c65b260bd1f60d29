"""Opens shells beside runs of this machine: each is a companion process, which ends what it started.

`service/shells.py` calls it. A run's directory says what the run was given. A shell belongs to the server
that opened it and ends with it. What a program prints waits in the kernel until somebody reads it. It never
changes a run.
"""

import asyncio
import contextlib
import fcntl
import os
import struct
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

from trainshed.backends.machine.processes import Identity
from trainshed.backends.process.net import RunCgroups, RunGroups
from trainshed.backends.process.run import ProcessRun, ProcessRuns
from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.names import RunKey
from trainshed.core.shell_port import Screen

_COMPANION = Path(__file__).with_name("companion.py")
_PIECE = 64 * 1024
_PATIENCE = 2.0  # seconds for a keeper to say which process its program is
_HANGING_UP = 0.5  # seconds in which what was hung up on may end by itself
_END_OF_INPUT = b"\x04"


class ProcessTerminal:
    """Implements `core.shell_port.Terminal`, over what is open at our end of it."""

    def __init__(self, process: asyncio.subprocess.Process, reader: int, writer: int, screen: bool) -> None:
        self._process, self._screen = process, screen
        self._reader, self._writer = reader, writer
        self._waiting: set[asyncio.Future[None]] = set()
        for end in (reader, writer):
            os.set_blocking(end, False)

    async def read(self) -> bytes:
        while self._reader >= 0:
            try:
                return os.read(self._reader, _PIECE)
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._until(self._reader, loop.add_reader, loop.remove_reader)
            except OSError:  # a terminal nobody has open any more
                break
        return b""

    async def write(self, data: bytes) -> None:
        while data and self._writer >= 0:
            try:
                data = data[os.write(self._writer, data) :]
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._until(self._writer, loop.add_writer, loop.remove_writer)
            except OSError:
                return

    async def finish(self) -> None:
        if self._screen:
            await self.write(_END_OF_INPUT)
        elif self._writer >= 0:
            self._writer = self._shut(self._writer)

    async def resize(self, screen: Screen) -> None:
        if self._screen and self._writer >= 0:
            set_size(self._writer, screen)

    async def wait(self) -> int:
        return await self._process.wait()

    async def close(self) -> None:
        if self._reader >= 0:
            self._reader = self._shut(self._reader)
        if self._writer >= 0:
            self._writer = self._shut(self._writer)
        for item in self._waiting:
            if not item.done():
                item.set_result(None)
        try:
            await asyncio.wait_for(self._process.wait(), _HANGING_UP)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()

    def _shut(self, end: int) -> int:
        loop = asyncio.get_running_loop()
        loop.remove_reader(end)
        loop.remove_writer(end)
        os.close(end)
        return -1

    async def _until(self, end: int, add: Callable[..., None], remove: Callable[[int], object]) -> None:
        ready = asyncio.get_running_loop().create_future()
        self._waiting.add(ready)
        add(end, _wake, ready)
        try:
            await ready
        finally:
            self._waiting.discard(ready)
            if end in (self._reader, self._writer):
                remove(end)


class ProcessShells:
    def __init__(self, runs: ProcessRuns, groups: RunCgroups) -> None:
        self._runs, self._groups = runs, groups
        self._open: dict[ProcessTerminal, ProcessRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> ProcessTerminal:
        run = self._runs.get(key.name.job, {}).get(key)
        program = None if run is None else await _program(run)
        if run is None or program is None or not run.alive:
            raise NotFound("The replica does not run: no shell can be opened in it.")
        theirs, ours = _ends(screen)
        kind = "pipes" if screen is None else "terminal"
        of = (run.folder, str(program.pid), str(program.start), str(os.getpid()), kind)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(_COMPANION), *of, *command,
                stdin=theirs[0], stdout=theirs[1], stderr=theirs[1], start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            for end in set(ours):
                os.close(end)
            raise Unavailable(f"No shell could be started: {error}.") from error
        finally:
            for end in set(theirs):
                os.close(end)
        terminal = ProcessTerminal(process, *ours, screen is not None)
        self._open[terminal] = run
        task = asyncio.create_task(self._await_end(terminal, run, run.groups))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return terminal

    async def close(self, job: str | None = None) -> None:
        """End those of one job, or all."""
        chosen = [terminal for terminal, run in self._open.items() if job is None or run.key.name.job == job]
        await asyncio.gather(*(terminal.close() for terminal in chosen))
        if job is None:
            await asyncio.gather(*self._tasks)

    async def _await_end(self, terminal: ProcessTerminal, run: ProcessRun, groups: RunGroups) -> None:
        await terminal.wait()
        self._open.pop(terminal, None)
        if run.gone.is_set():  # it ended first, and could not take its groups along
            self._groups.discard(groups)


def set_size(end: int, screen: Screen) -> None:
    with contextlib.suppress(OSError):
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", screen.rows, screen.columns, 0, 0))


def _ends(screen: Screen | None) -> tuple[tuple[int, int], tuple[int, int]]:
    """What the program has as input and output, and our ends: what we read, what we write."""
    try:
        if screen is None:
            (stdin, writer), (reader, stdout) = os.pipe(), os.pipe()
            return (stdin, stdout), (reader, writer)
        ours, theirs = os.openpty()
        set_size(ours, screen)
        return (theirs, theirs), (ours, os.dup(ours))
    except OSError as error:
        raise Unavailable(f"No terminal could be made: {error}.") from error


async def _program(run: ProcessRun) -> Identity | None:
    pause = 0.001
    while pause < _PATIENCE and not run.gone.is_set():
        if (record := run.read()) is not None and record.program is not None:
            return record.program
        await asyncio.sleep(pause)
        pause *= 2
    return None


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)

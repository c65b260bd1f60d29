"""Shells in pods: programs that the init of a pod starts beside the run's own program.

`service/shells.py` calls it. Each shell is a connection to the pod's service `shell` (pod_shell.h), by which
it ends: a server that is killed leaves none. So shells work wherever output comes from, and need no right to
`pods/exec`. Output waits in the pod until somebody reads it.
"""

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Sequence

from trainshed.backends.cluster.pod_connection import ChannelBroken
from trainshed.backends.cluster.pod_doors import PodDoors
from trainshed.backends.cluster.pod_frames import frame, read_frames
from trainshed.backends.cluster.run import PodRun
from trainshed.core.errors import Invalid, NotFound, Unavailable, Violation
from trainshed.core.jobs.replica import Sight
from trainshed.core.names import RunKey
from trainshed.core.shell_port import Screen

_PIECE = 16 * 1024  # bytes of input in one frame
_MOST_WORDS = 250 * 1024  # bytes of a command: pod_shell.h takes no larger frame
_MOST_WAITING = 8  # pieces of output that nobody has read yet
_KILLED = 128 + signal.SIGKILL
_HANGING_UP = 3.0  # seconds for all of it to end once it was hung up on
_OPENING = 10.0  # seconds for the pod to answer
_END_OF_INPUT = b"\x04"
_NOT_ALIVE = "The replica does not run: no shell can be opened in it."


class PodTerminal:
    """Implements `core.shell_port.Terminal`, over a connection to the init of a pod."""

    def __init__(self, doors: PodDoors, run: PodRun, command: Sequence[str], screen: Screen | None) -> None:
        self._run, self._screen = run, screen
        self._pieces: deque[bytes] = deque()
        self._some, self._room, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._is_closed = False
        self._code: int | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        words = b"".join(word.encode(errors="surrogateescape") + b"\0" for word in command)
        self._task = asyncio.create_task(self._hold(doors, frame(b"c", words)))

    @property
    def is_over(self) -> bool:
        return self._ended.is_set()

    async def opened(self) -> None:
        """Raise ChannelBroken where the pod cannot be reached."""
        try:
            await asyncio.wait_for(self._opened, _OPENING)
        except TimeoutError as error:
            await self.close()
            raise ChannelBroken("its pod does not answer") from error

    async def read(self) -> bytes:
        while not self._pieces:
            if self._ended.is_set():
                return b""
            self._some.clear()
            await self._some.wait()
        self._room.set()
        return self._pieces.popleft()

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), _PIECE):
            if self._say(b"i", data[begin : begin + _PIECE]) and self._writer is not None:
                with contextlib.suppress(OSError):  # it has ended: `read` tells that
                    await self._writer.drain()

    async def finish(self) -> None:
        if self._screen is not None:
            await self.write(_END_OF_INPUT)
        else:
            self._say(b"f")

    async def resize(self, screen: Screen) -> None:
        self._say(b"s", f"{screen.rows} {screen.columns}".encode())

    async def wait(self) -> int:
        waits = [asyncio.create_task(event.wait()) for event in (self._ended, self._run.gone)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return _KILLED if self._code is None else self._code

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._pieces.clear()
            self._room.set()
            if self._say(b"h"):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _HANGING_UP)
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _say(self, letter: bytes, data: bytes = b"") -> bool:
        """Whether there was somebody to hear it."""
        if self._writer is None or self._ended.is_set():
            return False
        self._writer.write(frame(letter, data))
        return True

    async def _hold(self, doors: PodDoors, command: bytes) -> None:
        """The connection, from its beginning to its end: who entered it has to leave it."""
        size = f" {self._screen.rows} {self._screen.columns}" if self._screen is not None else ""
        try:
            async with doors.connect(self._run, f"shell{size}") as (reader, writer):
                self._writer = writer
                writer.write(command)
                if not self._opened.done():
                    self._opened.set_result(None)
                await self._take(reader)
        except ChannelBroken as broken:
            if not self._opened.done():
                self._opened.set_exception(broken)
        finally:
            self._writer = None
            self._ended.set()
            self._some.set()

    async def _take(self, reader: asyncio.StreamReader) -> None:
        async for letter, data in read_frames(reader):
            if letter == b"x":
                self._code = int(data)
                return
            if self._is_closed:
                continue
            self._pieces.append(data)
            self._some.set()
            while len(self._pieces) >= _MOST_WAITING:
                self._room.clear()
                await self._room.wait()


class PodShells:
    def __init__(self, doors: PodDoors) -> None:
        self._doors = doors
        self._open: set[PodTerminal] = set()

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> PodTerminal:
        run = self._doors.find(key, Sight.RUNNING, Sight.HELD)
        if run is None:
            raise NotFound(_NOT_ALIVE)
        if sum(len(word.encode(errors="surrogateescape")) + 1 for word in command) > _MOST_WORDS:
            raise Invalid((Violation("command", f"A command has at most {_MOST_WORDS >> 10} KB."),))
        self._open = {terminal for terminal in self._open if not terminal.is_over}
        terminal = PodTerminal(self._doors, run, command, screen)
        self._open.add(terminal)
        try:
            await terminal.opened()
        except ChannelBroken as broken:
            if run.gone.is_set():
                raise NotFound(_NOT_ALIVE) from broken
            raise Unavailable(f"No shell could be started: the pod cannot be reached ({broken}).") from broken
        return terminal

    async def close(self) -> None:
        await asyncio.gather(*(terminal.close() for terminal in self._open))

"""PodTunnel: the way from the programs of one pod to the server, although no pod finds the server.

The run supervisor keeps one for each run whose pod has loopback ports. A connection or two wait at the pod's
init; when a program connects to a loopback port, the init says which on one of them, and from then on that
connection is the program's (pod_tunnel.h has the other end). The next one is parked at once. Whoever does not
read holds back whoever sends, both ways.
"""

import asyncio
import contextlib

from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor
from trainshed.backends.machine.loopback import Dial, Streams

_MOST = 256  # connections of programs at a time; more wait in the pod
_IDLE = 2  # that wait at the init of a pod whose programs connect; one at any other
_PIECE = 256 * 1024
_LEAST_PAUSE, _MOST_PAUSE = 0.1, 10.0  # seconds before an init that did not take a connection is tried again
_LEAVING = 30.0  # seconds for a program to end its side after ours has ended


class PodTunnel:
    def __init__(self, door: PodDoor, dial: Dial, job: str) -> None:
        self._door, self._dial, self._job = door, dial, job
        self._wanted, self._idle, self._used = 1, 0, 0
        self._pause = _LEAST_PAUSE
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def keep(self, address: str) -> None:
        """Until it is cancelled."""
        try:
            while True:
                while self._idle < self._wanted and self._used < _MOST:
                    self._idle += 1
                    task = asyncio.create_task(self._park(address))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                self._changed.clear()
                await self._changed.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _park(self, address: str) -> None:
        """One connection: parked, used, over."""
        is_used = False
        try:
            with contextlib.suppress(ChannelBroken, ValueError):
                async with self._door.connect(address, "tunnel") as streams:
                    port = int(await streams[0].readuntil(b"\n"))
                    inner = await self._dial(port, self._job)
                    is_used, self._pause = True, _LEAST_PAUSE
                    self._take()
                    streams[1].write(b"\n")
                    if inner is not None:
                        await _join(streams, inner)
            if not is_used:
                self._pause = min(self._pause * 2, _MOST_PAUSE)
                await asyncio.sleep(self._pause)
        finally:
            if is_used:
                self._used -= 1
            else:
                self._idle -= 1
            self._changed.set()

    def _take(self) -> None:
        self._idle, self._used, self._wanted = self._idle - 1, self._used + 1, _IDLE
        self._changed.set()


async def _join(outer: Streams, inner: Streams) -> None:
    """Pass bytes both ways until both sides have ended, or one is broken."""
    up = asyncio.create_task(_pass(outer[0], inner[1]))
    down = asyncio.create_task(_pass(inner[0], outer[1]))
    try:
        await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
        if down.done() and not _is_broken(down):
            # All is on its way. Where one direction cannot be ended alone, a close could overtake it.
            await asyncio.wait((up,), timeout=_LEAVING)
        elif not down.done() and not _is_broken(up):
            await asyncio.wait((down,))
    finally:
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        inner[1].close()


def _is_broken(task: "asyncio.Task[None]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    if _can_end(writer):
        writer.write_eof()


def _can_end(writer: asyncio.StreamWriter) -> bool:
    """Whether one direction can be ended alone. What is forwarded by the API server cannot."""
    try:
        return writer.can_write_eof()
    except NotImplementedError:
        return False

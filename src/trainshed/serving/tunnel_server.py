"""The server inside pods: what a connection through a pod's tunnel leads to.

`serving` opens it, and the cluster backend calls `dial` for each connection of a program
(backends/cluster/tunnel.py). The server answers there as at its own address; Google's port leads to Google's
names (decision 34), some ports to stores on this machine's loopback that jobs are told of. Whoever comes is
known by its tunnel. It never passes bytes to a port that the settings do not name.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Set

from trainshed.core.google import PORT

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Answer = Callable[[socket.socket, str], Awaitable[None]]  # on a connection of a program of that job


class TunnelServer:
    """`answer` answers with the API, `answer_google` with what Google's names lead to."""

    def __init__(self, answer: Answer, answer_google: Answer, passed: Set[int]) -> None:
        self._answer, self._answer_google, self._passed = answer, answer_google, passed
        self._is_open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        self._is_open.set()

    async def close(self) -> None:
        """From now on connections wait in their pods, for the next server."""
        self._is_open.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def dial(self, port: int, job: str) -> Streams | None:
        """A connection to what the port leads to; None where nobody is there. Waits while it is closed."""
        await self._is_open.wait()
        try:
            if port in self._passed:
                return await asyncio.open_connection("127.0.0.1", port)
            here, there = socket.socketpair()
        except OSError:
            return None
        here.setblocking(False)
        there.setblocking(False)
        answer = self._answer_google if port == PORT else self._answer
        task = asyncio.create_task(_answered(answer, there, job))  # with TLS it waits for the program's bytes
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.open_unix_connection(sock=here)


async def _answered(answer: Answer, connection: socket.socket, job: str) -> None:
    try:
        await answer(connection, job)
    except OSError:  # also where a program does not speak TLS as it should
        connection.close()

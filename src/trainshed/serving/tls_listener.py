"""Listens where the server speaks TLS, and tells plain HTTP from it by the first byte (decision 66).

`serving` opens it in place of uvicorn's own listener. What has not begun to speak after a while is closed,
and so is the oldest of too many that have not: nobody is known yet. What fails here fails for one connection.
It never logs what a client sends.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ssl import SSLContext

from trainshed.serving.accepting import Accepting

BEGIN_SECONDS = 30.0  # for the first byte and the handshake
MOST_BEGINNING = 1024  # connections that have not come so far
_BACKLOG = 2048
_AT_ONCE = 100  # accepted before others have their turn
_HANDSHAKE = b"\x16"  # the first byte of TLS; HTTP begins with a letter

AnswerTls = Callable[[socket.socket, SSLContext], Awaitable[None]]
AnswerPlain = Callable[[socket.socket], Awaitable[None]]


class TlsListener:
    """`context` is asked for each connection, so that it may change meanwhile."""

    def __init__(
        self,
        listener: socket.socket,
        context: Callable[[], SSLContext],
        answer: AnswerTls,
        answer_plain: AnswerPlain,
    ) -> None:
        self._listener, self._context = listener, context
        self._accepting = Accepting(listener, self._take, _AT_ONCE, "further connections wait")
        self._answer, self._answer_plain = answer, answer_plain
        self._beginning: dict[asyncio.Task[None], None] = {}  # the oldest first

    def open(self) -> None:
        self._listener.setblocking(False)
        self._listener.listen(_BACKLOG)
        self._accepting.open()

    async def close(self) -> None:
        self._accepting.close()
        for task in list(self._beginning):
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _take(self, connection: socket.socket) -> None:
        task = asyncio.get_running_loop().create_task(self._begin(connection))
        self._beginning[task] = None
        task.add_done_callback(self._end)
        if len(self._beginning) > MOST_BEGINNING:
            next(iter(self._beginning)).cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._beginning.pop(task, None)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            async with asyncio.timeout(BEGIN_SECONDS):
                first = await _first_byte(connection)
                if first == _HANDSHAKE:
                    await self._answer(connection, self._context())
                elif first:
                    await self._answer_plain(connection)
                else:
                    connection.close()
        except (OSError, TimeoutError):  # it broke off, or its TLS is not ours: a client that does not trust
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise


async def _first_byte(connection: socket.socket) -> bytes:
    """It stays to be read by who answers; none where the client has closed."""
    loop = asyncio.get_running_loop()
    has_come = asyncio.Event()
    loop.add_reader(connection, has_come.set)
    try:
        await has_come.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)

"""Runs one blocking exchange in a thread of its own, for a bounded time.

Adapters that ask others call `bounded`. The thread is a daemon: neither a receiver that never answers nor the
end of the server waits for it. Threads of the event loop's pool are never used, because jobs need them. When
the time is over the socket is shut down, which ends the thread too.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Hold = Callable[[socket.socket], None]  # an exchange gives its socket to it, once it has one


async def bounded(exchange: Callable[[Hold], T], seconds: float) -> T:
    """What the exchange returns or raises; TimeoutError if that takes longer."""
    loop, sockets = asyncio.get_running_loop(), list[socket.socket]()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: BaseException | None) -> None:
        if not outcome.done():
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(value)  # pyright: ignore[reportArgumentType] - T, where there is no error

    def work() -> None:
        value, error = None, None
        try:
            value = exchange(sockets.append)
        except (OSError, ValueError) as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="exchange", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await outcome
    finally:
        for item in sockets:
            # Not SSLSocket's own, which would take the TLS state away from under the thread.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(item, socket.SHUT_RDWR)

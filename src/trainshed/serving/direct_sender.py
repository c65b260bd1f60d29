"""Lets a thread send bytes of an answer at a connection's own socket, around uvicorn and the event loop.

`http_protocol` gives one to each request without TLS. The answer has begun and has a content-length. Nothing
else is written to the connection meanwhile: requests behind this one wait for the end of its answer. The
thread has a descriptor of its own, which stays the client's also when the connection is closed under it.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


@dataclass(frozen=True, slots=True)
class DirectSender:
    """Is a `core.bucket_port.SocketSender`."""

    transport: asyncio.Transport
    flow: FlowControl
    cycle: RequestResponseCycle
    break_off: Callable[[], None]

    async def __call__(self, send: Callable[[int], int], threads: Executor) -> int | None:
        """No thread waits for the client: `send` returns when there is no more room."""
        try:
            await self._flush()
            count = None if self._is_gone else await self._sent(send, threads)
        except ConnectionError:
            count = None
        if count is None:
            self.break_off()
            return None
        self.cycle.expected_content_length -= count
        return count

    @property
    def _is_gone(self) -> bool:
        return self.cycle.disconnected or self.transport.is_closing()

    async def _flush(self) -> None:
        """Return when the system has all that was written before."""
        if not self._is_gone and self.transport.get_write_buffer_size():
            self.transport.set_write_buffer_limits(0)
            await self.flow.drain()
            if not self._is_gone:
                self.transport.set_write_buffer_limits()

    async def _sent(self, send: Callable[[int], int], threads: Executor) -> int:
        socket = os.dup(self.transport.get_extra_info("socket").fileno())
        try:
            await _has_room(socket)
            job = threads.submit(send, socket)
        except BaseException:
            os.close(socket)
            raise
        job.add_done_callback(lambda _: os.close(socket))  # also of one that nobody waits for any more
        return await asyncio.wrap_future(job)


async def _has_room(socket: int) -> None:
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    loop.add_writer(socket, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_writer(socket)

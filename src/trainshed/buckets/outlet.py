"""Reads an object's bytes block by block, and checks each block before it is sent.

The file stays open from the start, so the object is read whole even if it is replaced or deleted meanwhile.
"""

import asyncio
import base64
import contextlib
import os
import select
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from functools import partial

from trainshed.buckets.sums import BLOCK, crc_of
from trainshed.buckets.trouble import translated
from trainshed.core.bucket import DamagedObject, ObjectInfo, Span
from trainshed.core.bucket_port import SocketSender

TURN = 0.05  # seconds after which a thread that sends is there for others
WAIT = 20  # milliseconds in which it waits for the client to have room again
_WAITING = threading.Semaphore(4)  # for each thread that waits for a client: most are there for others


class Outlet:
    def __init__(self, file: int, info: ObjectInfo, sums: bytes) -> None:
        self._file = file
        self._info = info
        self._sums = sums or base64.b64decode(info.crc32c)

    def __del__(self) -> None:
        # Here, not at the end of the stream: a stream that never began has no end.
        with contextlib.suppress(OSError):
            os.close(self._file)

    def open(self, span: Span) -> tuple[int, int, bytes]:
        """First byte, length, and the first block: damage there is reported before the answer begins."""
        first, length = span.within(self._info.size)
        with translated("The object cannot be read"):
            if os.fstat(self._file).st_size != self._info.size:
                raise self._damaged("has another size than was stored")
        return first, length, self._block(first // BLOCK)

    async def stream(self, first: int, length: int, block: bytes, executor: Executor) -> AsyncIterator[bytes]:
        """The bytes, `block` having the first of them. While it is sent the next is read and checked.

        One at a time: with several in memory the system takes longer to find room than it saves in calls.
        """
        loop = asyncio.get_running_loop()
        number, end = first // BLOCK, first + length
        while length > 0:
            start = number * BLOCK
            number += 1
            ahead = loop.run_in_executor(executor, self._block, number) if number * BLOCK < end else None
            whole = first <= start and end >= start + len(block)
            try:
                yield block if whole else block[max(0, first - start) : end - start]
            finally:
                if ahead is not None:
                    await asyncio.wait((ahead,))
            if ahead is None:
                return
            block = ahead.result()

    async def send(
        self, first: int, length: int, block: bytes, executor: Executor, sender: SocketSender
    ) -> AsyncIterator[bytes]:
        """The same bytes. All but those of `block` are sent by the system, and only read to be checked.

        One thread sends many blocks: handing each from thread to thread costs more than sending it.
        """
        start, end = first // BLOCK * BLOCK, first + length
        yield block[first - start : end - start]
        at, block = start + BLOCK, b""
        while at < end:
            yield b""  # nobody keeps the bytes before, however long this client takes
            try:
                count = await sender(partial(self._send, at, end), executor)
            except OSError:  # there are file systems from which the system sends nothing
                block = await asyncio.get_running_loop().run_in_executor(executor, self._block, at // BLOCK)
                async for chunk in self.stream(at, end - at, block, executor):
                    yield chunk
                return
            if count is None:
                return
            at += count

    def _send(self, first: int, end: int, socket: int) -> int:
        """For threads. However it ends, the bytes that it returns were sent, and no others."""
        at, until = first, time.monotonic() + TURN
        while at < end:
            number = at // BLOCK
            if at % BLOCK == 0:
                self._block(number)
            try:
                count = os.sendfile(socket, self._file, at, min(end, (number + 1) * BLOCK) - at)
            except BlockingIOError:
                if time.monotonic() > until or not _has_room_soon(socket):
                    break
                continue
            except OSError:
                if at == first:
                    raise
                break
            if count == 0:
                raise self._damaged("is gone")
            at += count
            if time.monotonic() > until:
                break
        return at - first

    def _block(self, number: int) -> bytes:
        if self._info.size == 0:
            return b""
        with translated("The object cannot be read"):
            block = os.pread(self._file, BLOCK, number * BLOCK)
        if crc_of(block) != self._sums[4 * number : 4 * number + 4]:
            raise self._damaged("does not have the checksum it was stored with")
        return block

    def _damaged(self, what: str) -> DamagedObject:
        return DamagedObject(
            f"gs://{self._info.bucket}/{self._info.name} is damaged on the server's disk: a part of it "
            f"{what}. Upload it again, or delete it."
        )


def _has_room_soon(socket: int) -> bool:
    if not _WAITING.acquire(blocking=False):
        return False
    try:
        room = select.poll()
        room.register(socket, select.POLLOUT)
        return bool(room.poll(WAIT))
    finally:
        _WAITING.release()

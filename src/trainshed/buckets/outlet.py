"""Reads an object's bytes block by block, and checks each block before it is sent.

The file stays open from the start, so the object is read whole even if it is replaced or deleted meanwhile.
"""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator
from concurrent.futures import Executor

from trainshed.buckets.sums import BLOCK, crc_of
from trainshed.buckets.trouble import translated
from trainshed.core.bucket import DamagedObject, ObjectInfo, Span

AT_ONCE = 4  # blocks read by one call of a thread


class Outlet:
    def __init__(self, file: int, info: ObjectInfo, sums: bytes) -> None:
        self._file = file
        self._info = info
        self._sums = sums or base64.b64decode(info.crc32c)

    def __del__(self) -> None:
        # Here, not at the end of the stream: a stream that never began has no end.
        with contextlib.suppress(OSError):
            os.close(self._file)

    def open(self, span: Span) -> tuple[int, int, list[bytes]]:
        """First byte, length, and the first blocks: damage there is reported before the answer begins."""
        first, length = span.within(self._info.size)
        with translated("The object cannot be read"):
            if os.fstat(self._file).st_size != self._info.size:
                raise self._damaged("has another size than was stored")
        return first, length, self._blocks(first // BLOCK, first // BLOCK + 1)

    async def stream(
        self, first: int, length: int, blocks: list[bytes], executor: Executor
    ) -> AsyncIterator[bytes]:
        """The bytes, `blocks` being the first of them. While some are sent the next are read and checked."""
        loop = asyncio.get_running_loop()
        number, end = first // BLOCK, first + length
        while length > 0:
            start = number * BLOCK
            number += len(blocks)
            last = min(number + AT_ONCE, -(-end // BLOCK))
            ahead = loop.run_in_executor(executor, self._blocks, number, last) if number < last else None
            try:
                for block in blocks:
                    whole = first <= start and end >= start + len(block)
                    yield block if whole else block[max(0, first - start) : end - start]
                    start += BLOCK
            finally:
                if ahead is not None:
                    await asyncio.wait((ahead,))
            if ahead is None:
                return
            blocks = ahead.result()

    def _blocks(self, number: int, end: int) -> list[bytes]:
        return [self._block(item) for item in range(number, end)]

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

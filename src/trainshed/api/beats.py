"""Keeps a silent stream alive: a heartbeat every few seconds lets both sides notice a lost connection."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

EVERY = 15.0  # seconds without anything else sent


async def with_beats(
    source: AsyncGenerator[bytes], beat: bytes, every: float = EVERY
) -> AsyncGenerator[bytes]:
    """The source's chunks at once, and `beat` after each `every` seconds of silence."""
    coming: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(source, None))
            done, _ = await asyncio.wait({coming}, timeout=every)
            if not done:
                yield beat
                continue
            data, coming = coming.result(), None
            if data is None:
                return
            yield data
    finally:
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming
        await source.aclose()

"""Keeps a silent stream alive: something is sent every few seconds, so that both sides notice an end."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

EVERY = 15.0  # seconds without anything else sent


async def with_beats(
    source: AsyncGenerator[bytes], beat: bytes, every: float = EVERY
) -> AsyncGenerator[bytes]:
    """What the source gives, as soon as it does, and `beat` whenever it was silent for that long."""
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

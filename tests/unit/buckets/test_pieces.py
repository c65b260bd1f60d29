"""Uploads in pieces: one caller at a time, however many others there are."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from trainshed.buckets.pieces import Pieces


async def test_an_upload_is_its_callers_alone_also_when_thousands_of_others_came_since() -> None:
    pieces, entered = Pieces(str, ThreadPoolExecutor(1)), asyncio.Event()

    async def second() -> None:
        async with pieces.alone("one"):
            entered.set()

    async with pieces.alone("one"):
        for number in range(2000):
            async with pieces.alone(f"other-{number}"):
                pass
        waiting = asyncio.create_task(second())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()

"""Streams leave room for others: their number is limited, and their work is cut into small pieces."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from trainshed.api.line_stream import PIECE, PIECE_TEXT, render_lines
from trainshed.api.stream_slots import StreamSlots
from trainshed.core.errors import Exhausted
from trainshed.core.logs import Line, OutputStream


async def endless() -> AsyncGenerator[bytes]:
    while True:
        yield b"more"


async def batch(count: int, text: str) -> AsyncIterator[tuple[Line, ...]]:
    yield tuple(Line("1", 0, 0, 0, OutputStream.STDOUT, n, n, text) for n in range(count))


async def test_a_stream_too_many_is_refused_with_a_sentence_until_one_ends():
    slots = StreamSlots("streams of output", most=2)
    first, second = slots.limited(endless()), slots.limited(endless())
    assert (await anext(first), await anext(second)) == (b"more", b"more")
    with pytest.raises(Exhausted, match="2 streams of output are open"):
        slots.limited(endless())
    await first.aclose()
    third = slots.limited(endless())
    assert await anext(third) == b"more"
    await second.aclose()
    await third.aclose()


async def test_a_stream_that_was_never_read_takes_no_place():
    slots = StreamSlots("streams", most=1)
    slots.limited(endless())
    stream = slots.limited(endless())
    assert await anext(stream) == b"more"
    await stream.aclose()


@pytest.mark.parametrize("text", ["short", "x" * 60_000])
async def test_others_have_their_turn_while_a_long_batch_of_lines_is_sent(text: str):
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    pieces = [piece async for piece in render_lines(batch(1000, text))]
    task.cancel()
    assert turns >= len(pieces) - 1 >= 1000 // PIECE - 1
    assert max(map(len, pieces)) < PIECE_TEXT + 70_000
    assert b"".join(pieces).count(b"\n") == 1000

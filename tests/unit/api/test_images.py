"""Answers about images that go on: when they begin, how silence is broken, and how a failure is told."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from trainshed.api import images as api
from trainshed.api.call import Call, StreamAnswer
from trainshed.api.images import ImageHandlers
from trainshed.core.accounts.permission import Principal
from trainshed.core.errors import NotFound
from trainshed.core.supplies.image import BuildRecipe, ImageStep
from trainshed.service.images import ImageService


class GatedImages:
    """What is built is the number of bytes that came; its steps come when they are let."""

    def __init__(self) -> None:
        self.go, self.fails = asyncio.Event(), False

    async def build(
        self, context: AsyncIterator[bytes], recipe: BuildRecipe, principal: Principal, project: str
    ) -> AsyncIterator[ImageStep]:
        count = sum([len(chunk) async for chunk in context])
        await self.go.wait()
        yield ImageStep(text=f"{recipe.tags[0]}: {count}")
        if self.fails:
            raise NotFound("It is gone.")


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> GatedImages:
    monkeypatch.setattr(api, "BEAT", 0.02)
    return GatedImages()


def asked(images: GatedImages, chunks: AsyncIterator[bytes]) -> "asyncio.Task[StreamAnswer]":
    call = Call(path={}, query={"tag": "x:1"}, body={}, headers={}, base_url="", chunks=chunks)
    return asyncio.create_task(ImageHandlers(cast(ImageService, images)).build(call))


async def some(count: int, pause: float) -> AsyncIterator[bytes]:
    for _ in range(count):
        await asyncio.sleep(pause)
        yield b"12345"


def lines(said: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in b"".join(said).split(b"\n") if line]


async def test_the_answer_begins_when_all_that_is_sent_has_come_however_long_that_takes(
    images: GatedImages,
) -> None:
    """The server looks for the caller's hanging up once it answers, and would throw away what still comes."""
    answer = asked(images, some(10, 0.03))
    await asyncio.sleep(0.15)
    assert not answer.done()
    stream = await answer
    images.go.set()
    assert lines([piece async for piece in stream.chunks]) == [{"message": "x:1: 50"}]


async def test_silence_is_broken_by_empty_lines(images: GatedImages) -> None:
    stream = await asked(images, some(1, 0))
    said: list[bytes] = []
    async for piece in stream.chunks:
        said.append(piece)
        if len(said) == 3:
            images.go.set()
    assert said[:3] == [b"\n"] * 3 and lines(said) == [{"message": "x:1: 5"}]


async def test_what_fails_in_the_middle_is_the_last_line(images: GatedImages) -> None:
    images.fails = True
    images.go.set()
    stream = await asked(images, some(1, 0))
    first, last = lines([piece async for piece in stream.chunks])
    assert first == {"message": "x:1: 5"}
    assert last["error"] == {"code": 404, "status": "NOT_FOUND", "message": "It is gone."}


async def test_a_caller_who_hangs_up_ends_what_was_done_for_it(images: GatedImages) -> None:
    stream = await asked(images, some(1, 0))
    chunks = cast("Any", stream.chunks)
    assert await anext(chunks) == b"\n"
    await chunks.aclose()
    await asyncio.sleep(0.05)
    assert len(asyncio.all_tasks()) == 1

"""images: list, pull, push, build, load, save, tag and remove container images.

Long operations answer with lines, one JSON object each, as they proceed. If one fails in the middle, the
last line is an `error` like that of any refusal. An empty line is a heartbeat.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from trainshed.api.call import Call, Json, RawAnswer, StreamAnswer
from trainshed.api.permitted import allowed_image
from trainshed.core.errors import TrainshedError
from trainshed.core.supplies.image import ImageStep
from trainshed.service.images import ImageService
from trainshed.wire import status
from trainshed.wire.image import (
    parse_names,
    parse_recipe,
    read_name,
    read_names,
    render_image,
    render_step,
    render_work,
)

BEAT = 10.0  # seconds of silence before a heartbeat


@dataclass(slots=True)
class ImageHandlers:
    service: ImageService

    async def find(self, call: Call) -> Json:
        """Of the whole server. Those named after projects that the caller may not see are left out."""
        images = [render_image(image, jobs) for image, jobs in await self.service.all(call.principal)]
        going = [render_work(work) for work in self.service.going(call.principal)]
        return {"images": images, "inProgress": going}

    async def pull(self, call: Call) -> StreamAnswer:
        return await _stream(self.service.pull(allowed_image(call, read_name(call.body))))

    async def push(self, call: Call) -> StreamAnswer:
        return await _stream(self.service.push(await self._here(call, read_name(call.body))))

    async def build(self, call: Call) -> StreamAnswer:
        sent, recipe = asyncio.Event(), parse_recipe(call.query)
        for name in recipe.tags:
            allowed_image(call, name)
        project = call.path.get("project", "")
        steps = self.service.build(_noting(call.chunks, sent), recipe, call.principal, project)
        return await _stream(steps, sent)

    async def load(self, call: Call) -> StreamAnswer:
        sent = asyncio.Event()
        return await _stream(self.service.load(_noting(call.chunks, sent), call.principal), sent)

    async def save(self, call: Call) -> RawAnswer:
        names = [await self._here(call, name) for name in parse_names(call.query, "names")]
        pieces = self.service.save(tuple(names))
        first = await anext(pieces, b"")  # a missing image is refused before the answer begins

        async def whole() -> AsyncIterator[bytes]:
            yield first
            async for piece in pieces:
                yield piece

        return RawAnswer(whole(), headers={"content-type": "application/x-tar"})

    async def tag(self, call: Call) -> Json:
        name, new = read_name(call.body), read_name(call.body, "tag")
        await self.service.tag(await self._here(call, name), allowed_image(call, new))
        return {}

    async def remove(self, call: Call) -> Json:
        force = call.body.get("force") is True
        names = tuple(allowed_image(call, name) for name in read_names(call.body))
        return {"removed": list(await self.service.remove(names, call.principal, force=force))}

    async def _here(self, call: Call, name: str) -> str:
        """The name or id of an image, which leads to none that the caller may not see."""
        if not call.principal.sees_all:
            await self.service.get(allowed_image(call, name), call.principal)
        return name


async def _noting(chunks: AsyncIterator[bytes], over: asyncio.Event) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk
    over.set()


async def _stream(steps: AsyncIterator[ImageStep], sent: asyncio.Event | None = None) -> StreamAnswer:
    """Raises an early refusal; after that the answer has begun.

    It waits until the whole upload has arrived: the server reads from the same connection to notice a
    disconnect, and would take bytes of the upload.
    """
    coming = asyncio.ensure_future(anext(steps, None))
    waiting = [asyncio.ensure_future(sent.wait())] if sent else []
    try:
        if waiting:
            await asyncio.wait((coming, *waiting), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((coming,), timeout=BEAT)
    except asyncio.CancelledError:
        coming.cancel()
        raise
    finally:
        for item in waiting:
            item.cancel()
    if coming.done():
        coming.result()
    return StreamAnswer(_lines(steps, coming))


async def _lines(
    steps: AsyncIterator[ImageStep], coming: "asyncio.Future[ImageStep | None]"
) -> AsyncIterator[bytes]:
    try:
        while True:
            if not (await asyncio.wait((coming,), timeout=BEAT))[0]:
                yield b"\n"
                continue
            if (step := coming.result()) is None:
                return
            yield _line(render_step(step))
            coming = asyncio.ensure_future(anext(steps, None))
    except TrainshedError as error:
        yield _line(status.to_http(error)[1])
    finally:
        coming.cancel()


def _line(body: Json) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"

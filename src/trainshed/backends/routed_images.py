"""The images of a backend that may not be there, as people see them: each call waits for it to be found.

Unavailable, with the reason, where it is not.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from trainshed.core.image import BuildRecipe, Image, ImageConfig, ImageStep
from trainshed.core.image_port import ImageStore


class RoutedImages:
    def __init__(self, find: Callable[[], Awaitable[ImageStore]]) -> None:
        self._find = find

    async def all(self) -> tuple[Image, ...]:
        return await (await self._find()).all()

    async def get(self, name: str) -> Image:
        return await (await self._find()).get(name)

    async def inspect(self, name: str) -> ImageConfig:
        return await (await self._find()).inspect(name)

    async def pull(self, name: str) -> AsyncIterator[ImageStep]:
        async for step in (await self._find()).pull(name):
            yield step

    async def push(self, name: str) -> AsyncIterator[ImageStep]:
        async for step in (await self._find()).push(name):
            yield step

    async def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> AsyncIterator[ImageStep]:
        async for step in (await self._find()).build(context, recipe):
            yield step

    async def load(self, archive: AsyncIterator[bytes]) -> AsyncIterator[ImageStep]:
        async for step in (await self._find()).load(archive):
            yield step

    async def save(self, names: tuple[str, ...]) -> AsyncIterator[bytes]:
        async for piece in (await self._find()).save(names):
            yield piece

    async def tag(self, name: str, new: str) -> None:
        await (await self._find()).tag(name, new)

    async def remove(self, name: str, *, force: bool = False) -> tuple[str, ...]:
        return await (await self._find()).remove(name, force=force)

"""An engine with an image of another project, and the service by which somebody else comes to it."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.containers.image_world import all_of, context, pieces
from trainshed.backends.container.images import EngineImages
from trainshed.core.accounts.permission import Principal, PrincipalKind
from trainshed.core.accounts.role import Role
from trainshed.core.errors import Forbidden, TrainshedError
from trainshed.core.ports import Store
from trainshed.core.supplies.image import BuildRecipe, ImageStep
from trainshed.service.image_uploads import ImageUploads
from trainshed.service.images import ImageService

SECRET, MINE = "gcr.io/vision/secret:1", "gcr.io/speech/mine:1"
BOB = Principal(
    PrincipalKind.ACCOUNT, id="bob", rights=frozenset(), by_project={"speech": Role.USER.rights("speech")}
)


class Shop:
    """An engine with an image of another project, and the service through which Bob comes to it."""

    def __init__(self, images: EngineImages, folder: Path) -> None:
        async def active() -> tuple[()]:
            return ()

        self.images = images
        store = cast("Store", SimpleNamespace(active=active))
        self.service = ImageService(store, images, ImageUploads(images, folder))
        self.before: set[str] = set()

    async def names(self) -> set[str]:
        return {name for image in await self.images.all() for name in (image.id, *image.names)}

    async def make(self, name: str, text: str, **files: bytes) -> str:
        recipe = BuildRecipe(tags=(name,))
        steps = await all_of(self.images.build(context(Dockerfile=text.encode(), **files), recipe))
        return steps[-1].image

    async def begin(self) -> str:
        secret = await self.make(SECRET, "FROM scratch\nCOPY f /secret\nLABEL s=x\n", f=b"of vision")
        self.before = await self.names()
        return secret

    async def build(
        self, text: str, who: Principal = BOB, *, files: dict[str, bytes] | None = None, **how: Any
    ) -> str:
        recipe = BuildRecipe(tags=(MINE,), **how)
        sent = context(**{"Dockerfile": text.encode(), **(files or {})})
        steps = await all_of(self.service.build(sent, recipe, who, "speech"))
        return "\n".join(step.text for step in steps)

    async def load(self, archive: bytes, who: Principal = BOB) -> list[ImageStep]:
        return await all_of(self.service.load(pieces(archive), who))

    async def saved(self, *names: str) -> bytes:
        return b"".join([piece async for piece in self.images.save(names)])

    async def refuses(self, trying: Any, kind: type[TrainshedError] = Forbidden) -> str:
        with pytest.raises(kind) as error:
            await trying
        assert await self.names() == self.before
        return error.value.message

    async def clear(self) -> None:
        for name in sorted(await self.names()):
            if name.startswith(("gcr.io/", "localhost/projects", "projects-")) or name in (
                "shelf:1",
                "other:1",
            ):
                await self.images.remove(name, force=True)


def renamed(archive: bytes, change: Callable[[Any], Any], path: str = "manifest.json") -> bytes:
    """The archive with another list in it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(archive)) as old, tarfile.open(fileobj=made, mode="w") as new:
        for entry in old:
            content = old.extractfile(entry) if entry.isreg() else None
            data = content.read() if content else b""
            if entry.name == path:
                changed = change(json.loads(data))
                data = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
            entry.size = len(data)
            new.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def named(*names: str) -> Callable[[Any], Any]:
    return lambda rows: [{**row, "RepoTags": list(names)} for row in rows]

"""Archives of images and folders to build from, sent by people who do not see every project.

`service/images.py` calls it. What is sent is judged as a whole before the engine gets any of it, and the
engine gets it written anew: an archive with the names that were judged, a Dockerfile with the ids of the
images that were judged. So nothing depends on how an engine reads odd files. A refusal changes nothing in
the engine, and is worded the same whether there is such an image or not.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from trainshed.core.accounts.permission import Principal
from trainshed.core.errors import Forbidden, Invalid, NotFound, Violation
from trainshed.core.supplies.dockerfile import Dockerfile
from trainshed.core.supplies.dockerfile_text import MOST_TEXT, refused
from trainshed.core.supplies.image import (
    LOCAL,
    BuildRecipe,
    ImageStep,
    hidden_sentence,
    is_seen,
    parse,
)
from trainshed.core.supplies.image_archive import (
    LIST,
    ArchivedImage,
    read_archive,
    render_list,
)
from trainshed.core.supplies.image_archive import MOST_TEXT as MOST_LIST
from trainshed.core.supplies.image_port import ImageStore
from trainshed.disk.staged_tar import (
    StagedTar,
    TarEntry,
    entry_again,
    in_batches,
    normal,
    staged_tar,
    tar_end,
    text_entry,
)

MOST_FILES = 100_000  # of an archive of images
_MOST_LINKS = 10  # that lead to each other
_TELLING = ("Successfully tagged ", "Loaded image ")


@dataclass(frozen=True, slots=True)
class ImageUploads:
    images: ImageStore
    folder: Path  # on the disk where uploads are kept meanwhile

    async def load(self, archive: AsyncIterator[bytes], principal: Principal) -> AsyncIterator[ImageStep]:
        async with staged_tar(archive, self.folder) as tar:
            files = await asyncio.to_thread(_files, tar)
            content = await asyncio.to_thread(read_archive, lambda path: _text(tar, files, path))
            for name in (name for image in content for name in image.names):
                if not is_seen(name, principal):
                    raise Forbidden(hidden_sentence(parse(name).familiar))
            again = in_batches(_archive_again(tar, *_listed_anew(files, content)))
            async for step in self.images.load(again):
                if _is_told(step.text, principal):
                    yield step

    async def build(
        self, context: AsyncIterator[bytes], recipe: BuildRecipe, principal: Principal, project: str
    ) -> AsyncIterator[ImageStep]:
        """With the cache mounts of the project."""
        path = _checked_path(recipe.dockerfile)
        async with staged_tar(context, self.folder) as tar:
            text = await asyncio.to_thread(_dockerfile, tar, path)
            dockerfile = await asyncio.to_thread(Dockerfile, text, recipe.args, project)
            if dockerfile.sources:
                await asyncio.to_thread(_check_sources, tar, dockerfile.sources)
            for name, line in dockerfile.images.items():
                if not is_seen(name, principal):
                    raise Forbidden(f"Line {line + 1} of the Dockerfile: {hidden_sentence(name)}")
            ids: dict[str, str] = {}
            for name in dockerfile.images:
                async for step in self._pulled(name, fresh=recipe.pull):
                    yield step
                ids[name] = await self._judged(name)
            again = in_batches(_context_again(tar, path, dockerfile.with_images(ids)))
            async for step in self.images.build(again, replace(recipe, dockerfile=path, pull=False)):
                if _is_told(step.text, principal):
                    yield replace(step, text=_with_names(step.text, ids))

    async def _pulled(self, name: str, *, fresh: bool) -> AsyncIterator[ImageStep]:
        """See to it that the image is here, and new where that is wanted and it has a registry."""
        place = await self._place(name)
        if not place or (fresh and not place.startswith(f"{LOCAL}/")):
            async for step in self.images.pull(name):
                yield step

    async def _judged(self, name: str) -> str:
        """The id of the image, without its kind. Invalid where building from it would run steps unseen."""
        image = await self.images.inspect(await self._place(name) or parse(name).canonical)
        if await self.images.has_triggers(image.id):
            what = f"{name} has ONBUILD steps, which may read other images: build from another image."
            raise Invalid((Violation("dockerfile", what),))
        return image.id.removeprefix("sha256:")

    async def _place(self, name: str) -> str:
        """The full name under which it is here. Without it, the begin of an id may look like a name."""
        for place in parse(name).places:
            with suppress(NotFound):
                await self.images.inspect(place)
                return place
        return ""


def _files(tar: StagedTar) -> dict[str, TarEntry]:
    files: dict[str, TarEntry] = {}
    for count, entry in enumerate(tar.entries()):
        if count == MOST_FILES:
            raise Invalid((Violation("", f"What was sent has more than {MOST_FILES} files."),))
        files[entry.path] = entry
    return files


def _file(files: Mapping[str, TarEntry], path: str) -> TarEntry | None:
    """The file at the path, or where a link there leads: old engines wrote links to layers."""
    entry = files.get(normal(path))
    for _ in range(_MOST_LINKS):
        if entry is None or entry.is_file:
            return entry
        entry = files.get(entry.link)
    return None


def _text(tar: StagedTar, files: Mapping[str, TarEntry], path: str) -> bytes | None:
    entry = _file(files, path)
    if entry is not None and entry.size > MOST_LIST:
        raise Invalid((Violation("", f"{path[:200]} in what was sent is longer than {MOST_LIST} bytes."),))
    return tar.read(entry.at, entry.size) if entry else None


def _listed_anew(
    files: Mapping[str, TarEntry], images: tuple[ArchivedImage, ...]
) -> tuple[dict[str, TarEntry], list[ArchivedImage]]:
    """The files that the images are made of, each once, under new paths; and the images with these paths."""
    paths: dict[int, str] = {}  # by where a file begins
    parts: dict[str, TarEntry] = {}

    def moved(path: str, kind: str) -> str:
        if (entry := _file(files, path)) is None:
            what = f"What was sent is no whole archive of images: it has no {path[:200]}."
            raise Invalid((Violation("", what),))
        new = paths.setdefault(entry.at, f"{len(paths)}.{kind}")
        parts[new] = entry
        return new

    anew = [
        replace(
            image,
            config=moved(image.config, "json"),
            layers=tuple(moved(layer, "tar") for layer in image.layers),
        )
        for image in images
    ]
    return parts, anew


def _archive_again(
    tar: StagedTar, parts: Mapping[str, TarEntry], images: list[ArchivedImage]
) -> Iterator[bytes]:
    for path, entry in parts.items():
        yield from entry_again(tar, entry, path)
    yield from text_entry(LIST, render_list(images))
    yield tar_end()


def _checked_path(path: str) -> str:
    """The path of a Dockerfile that every engine takes for just that."""
    if path.strip()[:1] in ("[", '"') or path.strip() == "null" or path.endswith(".in"):
        what = f"'{path[:200]}' is a name that engines take for something else: give the Dockerfile another."
        raise Invalid((Violation("dockerfile", what),))
    return normal(path)


def _dockerfile(tar: StagedTar, path: str) -> str:
    entry: TarEntry | None = None
    for other in tar.entries():
        is_folder = other.header.isdir()
        if other.path == path:
            entry = other
        if (other.path == path and not other.is_file) or (
            other.path and path.startswith(f"{other.path}/") and not is_folder
        ):
            what = f"{other.path} in what was sent is a link or a folder: name the file that it leads to."
            raise Invalid((Violation("dockerfile", what),))
    if entry is None:
        raise Invalid((Violation("dockerfile", f"There is no {path} in what was sent."),))
    return tar.read(entry.at, min(entry.size, 4 * MOST_TEXT + 1)).decode(errors="surrogateescape")


def _check_sources(tar: StagedTar, sources: Mapping[str, int]) -> None:
    """Old engines mount what a link in the context leads to, also where that is not in it."""
    links: set[PurePosixPath] = set()
    for entry in tar.entries():
        path = PurePosixPath(entry.path)
        if not (entry.is_file or entry.header.isdir()):
            links.add(path)
        if not links.isdisjoint(path.parents):
            what = f"{entry.path[:200]} in what was sent is below a link: no RUN may mount a source then."
            raise Invalid((Violation("dockerfile", what),))
    for source, line in sources.items():
        path = PurePosixPath(normal(source))
        if not links.isdisjoint((path, *path.parents)):
            raise refused(line, f"mounts {source[:80]}, which is a link or below one: name where it leads.")


def _context_again(tar: StagedTar, path: str, text: str) -> Iterator[bytes]:
    """The same files, and the Dockerfile once more behind them: what comes last counts."""
    for entry in tar.entries():
        yield from entry_again(tar, entry)
    yield from text_entry(path, text.encode(errors="surrogateescape"))
    yield tar_end()


def _is_told(text: str, principal: Principal) -> bool:
    """Engines tell all names of an image that was there already, with the names of others."""
    return not any(
        text.startswith(begin) and not is_seen(text.removeprefix(begin), principal) for begin in _TELLING
    )


def _with_names(text: str, ids: Mapping[str, str]) -> str:
    """What an engine says, with the names that people know."""
    for name, id in ids.items():
        text = text.replace(f"sha256:{id}", name).replace(id, name)
    return text

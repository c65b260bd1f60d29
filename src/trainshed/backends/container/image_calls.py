"""The engine's calls about images. `EngineImages` calls them; they remember nothing.

The engine reports a failure inside a stream as one of its lines: it is raised as ImageFailure, like a
refusal. Credentials are read in a thread, just before they are sent.
"""

import asyncio
import contextlib
import json
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.pull import (
    ImageFailure,
    Layers,
    error_of,
    image_failure,
    inward_failure,
    timed_out,
)
from trainshed.backends.machine.image_config import image_config
from trainshed.backends.machine.registry_auth import RegistryAuth
from trainshed.backends.machine.registry_host import inward_registry
from trainshed.core.errors import Conflict, Invalid, NotFound, Unavailable, Violation
from trainshed.core.supplies.image import (
    BuildRecipe,
    Image,
    ImageConfig,
    ImageStep,
    Reference,
    familiar,
    parse,
)

_NONE = "<none>"
_PAUSES = (0.1, 0.3, 1.0)  # seconds

SLOWEST = 250_000  # bytes a second that a push is expected to send at least


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryTimeouts:
    """Seconds of silence after which a registry is given up."""

    answer: float = 30.0  # before its first message
    stall: float = 60.0  # during the transfer
    unpack: float = 1800.0  # after the transfer
    push: float = 60.0  # of a push, plus size / SLOWEST: engines report little progress of it


@dataclass(frozen=True, slots=True)
class ImageCalls:
    engine: Engine
    auth: RegistryAuth
    patience: RegistryTimeouts

    async def all(self) -> tuple[Image, ...]:
        try:
            listed = await self.engine.ask("GET", "/images/json")
        except EngineFault as fault:
            raise Unavailable(f"The container engine does not list its images: {fault.message}") from fault
        return tuple(_image(row) for row in listed or ())

    async def inspect(self, name: str) -> ImageConfig | None:
        """By name or id; None where it is not here."""
        try:
            about: Mapping[str, Any] = await self.engine.ask("GET", f"/images/{name}/json")
            # By a digest Podman finds an image under whatever name: who may have this name may not have that.
            is_other = "@" in name and familiar(name) not in _names(about.get("RepoDigests") or ())
            return None if is_other else config_of(about)
        except EngineFault as fault:
            if fault.kind is FaultKind.MISSING:
                return None
            raise image_failure(f"Image {name} cannot be looked at", fault.message) from fault

    async def pull(self, reference: Reference, layers: Layers) -> AsyncIterator[None]:
        """Yields whenever `layers` was updated. Raises ImageFailure."""
        doing = f"Image {reference.familiar} could not be pulled"
        query = {"fromImage": reference.name, "tag": reference.digest or reference.tag}
        headers = await self._allowed(reference, doing)
        waits = self.patience.answer
        try:
            async with self._open("/images/create", query, None, headers, doing) as messages:
                while (message := await _next(messages, waits)) is not None:
                    layers.update(message)
                    waits = self.patience.stall if layers.is_moving else self.patience.unpack
                    yield
        except TimeoutError as error:
            raise timed_out(doing, waits, layers.percent) from error

    async def push(self, reference: Reference, layers: Layers, size: int) -> AsyncIterator[None]:
        waits = self.patience.push + size / SLOWEST
        doing = f"Image {reference.familiar} could not be pushed"
        headers = await self._allowed(reference, doing)
        headers = headers or {"X-Registry-Auth": "e30="}  # Docker requires the header, even empty
        path, query = f"/images/{reference.name}/push", {"tag": reference.tag}
        try:
            async with self._open(path, query, None, headers, doing) as messages:
                while (message := await _next(messages, waits)) is not None:
                    layers.update(message)
                    if "digest: sha256:" in str(message.get("status", "")):
                        layers.digest = str(message["status"]).partition("digest: ")[2].split()[0]
                    yield
        except TimeoutError as error:
            raise timed_out(doing, waits, layers.percent) from error

    async def build(self, context: AsyncIterator[bytes], recipe: BuildRecipe) -> AsyncIterator[ImageStep]:
        query: dict[str, Any] = {
            "t": recipe.tags,
            "dockerfile": recipe.dockerfile,
            "buildargs": dict(recipe.args),
            "labels": dict(recipe.labels),
            "rm": True,
            "forcerm": True,
            "nocache": not recipe.cached,
        }
        # Podman (4.3) reuses a cached step even where a build argument in it differs.
        if recipe.args and await self.engine.is_podman():
            query |= {"nocache": True, "layers": False}  # and its layers must not enter the cache
        query |= {"target": recipe.target} if recipe.target else {}
        query |= {"pull": True} if recipe.pull else {}
        headers = await asyncio.to_thread(self.auth.headers)
        headers["Content-Type"] = "application/x-tar"
        last = ""
        async with self._open("/build", query, context, headers, "The image was not built") as messages:
            async for item in messages:
                for line in str(item.get("stream") or item.get("status") or "").splitlines():
                    if line.strip():
                        last = line
                        yield ImageStep(text=line.rstrip())
        config = await self.inspect(recipe.tags[0])
        if config is None:
            raise image_failure("The image was not built", last or "the engine did not say why")
        names = ", ".join(map(familiar, recipe.tags))
        yield ImageStep(text=f"Built {names} ({config.id[:19]})", percent=100, image=config.id)

    async def has_triggers(self, id: str) -> bool:
        """Docker tells of ONBUILD. With Podman: whether nothing but FROM makes another image of it.

        No step of it runs a program then, so nobody is sent what steps read; and what they make is removed.
        """
        if not await self.engine.is_podman():
            about: Mapping[str, Any] = await self.engine.ask("GET", f"/images/{id}/json")
            config: Mapping[str, Any] = about.get("Config") or {}
            return bool(config.get("OnBuild"))
        query = {"networkmode": "none", "nocache": True, "layers": False, "rm": True, "forcerm": True}
        query["securityopt"] = json.dumps(["seccomp=/nonexistent"])  # each RUN fails
        context, made = _single_file("Dockerfile", f"FROM {id}\n".encode()), ""
        try:
            async with self._open("/build", query, context, {}, "It was not built") as messages:
                async for item in messages:
                    for line in str(item.get("stream") or "").splitlines():
                        if line.startswith("Successfully built "):
                            made = line.split()[2]
        except ImageFailure:
            return True  # the steps lack something
        if not made or id.removeprefix("sha256:").startswith(made):
            return not made
        with contextlib.suppress(EngineFault):
            about = await self.engine.ask("GET", f"/images/{made}/json")
            if not about.get("RepoTags"):
                await self.engine.ask("DELETE", f"/images/{made}")
        return True

    async def load(self, archive: AsyncIterator[bytes]) -> AsyncIterator[ImageStep]:
        try:
            async for item in self._lines("/images/load", {"quiet": True}, archive, {}, "It was not loaded"):
                for line in str(item.get("stream") or item.get("status") or "").splitlines():
                    names = line.partition(":")[2].strip() if line.startswith("Loaded image") else ""
                    for name in _names(names.split(",")):
                        yield ImageStep(text=f"Loaded image {name}", percent=100)
        except EngineFault as fault:
            if fault.kind is FaultKind.NO_ARCHIVE:
                what = "What was sent is no archive of images, as `trainshed images save` writes them"
                raise Invalid((Violation("", f"{what}."),)) from fault
            raise image_failure("It was not loaded", fault.message) from fault

    async def save(self, names: Sequence[str]) -> AsyncIterator[bytes]:
        try:
            async with self.engine.open("GET", "/images/get", {"names": tuple(names)}) as answer:
                async for piece in answer.pieces():
                    yield piece
        except EngineFault as fault:
            raise NotFound(f"Images {', '.join(names)} cannot be saved: {fault.message}.") from fault

    async def tag(self, name: str, new: Reference) -> None:
        try:
            await self.engine.ask("POST", f"/images/{name}/tag", {"repo": new.name, "tag": new.tag})
        except EngineFault as fault:
            raise _refused(name, fault) from fault

    async def remove(self, name: str, *, force: bool) -> tuple[str, ...]:
        if force:
            await self._refuse_if_running(name)
        changes = await self._removed(name, force)
        gone = [(kind, str(value)) for row in changes or () for kind, value in row.items()]
        names = _names([value for kind, value in gone if kind == "Untagged"])
        return (*names, *(_id(value) for kind, value in gone if kind == "Deleted"))

    async def _removed(self, name: str, force: bool) -> Any:
        for pause in (*_PAUSES, None):
            try:
                return await self.engine.ask("DELETE", f"/images/{name}", {"force": force})
            except EngineFault as fault:
                # Engines fail while a container of the image is being removed.
                if pause is None or not (force and fault.passing):
                    raise _refused(name, fault) from fault
            await asyncio.sleep(pause)
        raise AssertionError("the last try either answers or raises")

    async def _refuse_if_running(self, name: str) -> None:
        """With force, Podman would kill running containers of the image, whoever owns them."""
        wanted = {"ancestor": [name], "status": ["running", "paused"]}
        running = await self.engine.ask("GET", "/containers/json", {"filters": wanted})
        if running:
            raise Conflict(f"Image {name} is in use: {len(running)} running containers are made of it.")

    async def _allowed(self, reference: Reference, doing: str) -> dict[str, str]:
        """The credentials for its registry. Raises ImageFailure for one at an address where none can be."""
        headers = await asyncio.to_thread(self.auth.header, reference.canonical)
        if why := await inward_registry(reference.domain, has_credentials=bool(headers)):
            raise inward_failure(doing, why)
        return headers

    @contextlib.asynccontextmanager
    async def _open(
        self,
        path: str,
        query: Mapping[str, Any],
        body: AsyncIterator[bytes] | None,
        headers: Mapping[str, str],
        doing: str,
    ) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
        """The lines of a stream; a refusal, before it or in it, is raised as ImageFailure."""
        try:
            async with contextlib.aclosing(self._lines(path, query, body, headers, doing)) as messages:
                yield messages
        except EngineFault as fault:
            raise image_failure(doing, fault.message) from fault

    async def _lines(
        self,
        path: str,
        query: Mapping[str, Any],
        body: AsyncIterator[bytes] | None,
        headers: Mapping[str, str],
        doing: str,
    ) -> AsyncGenerator[dict[str, Any]]:
        """The call starts with the first `anext`, so a timeout covers it too."""
        async with self.engine.open("POST", path, query, body, headers) as answer:
            async for item in answer.objects():
                if item.get("error"):
                    raise image_failure(doing, str(item["error"]))
                yield item


async def _single_file(name: str, text: bytes) -> AsyncIterator[bytes]:
    """A tar file with one file."""
    header = tarfile.TarInfo(name)
    header.size = len(text)
    yield header.tobuf() + text + bytes(-len(text) % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


async def _next(messages: AsyncIterator[dict[str, Any]], seconds: float) -> dict[str, Any] | None:
    async with asyncio.timeout(seconds):
        return await anext(messages, None)


def _refused(name: str, fault: EngineFault) -> Exception:
    if fault.kind is FaultKind.MISSING:
        return NotFound(f"There is no image {name} here.")
    if fault.kind is FaultKind.IN_USE:
        return Conflict(f"Image {name} is in use: {fault.message}.")
    return error_of(image_failure(f"Image {name}", fault.message).verdict)


def config_of(inspected: Mapping[str, Any]) -> ImageConfig:
    return image_config(
        _id(str(inspected["Id"])),
        inspected.get("Config") or {},
        architecture=str(inspected.get("Architecture") or ""),
        size=int(inspected.get("Size") or 0),
    )


def _image(row: Mapping[str, Any]) -> Image:
    return Image(
        id=_id(str(row["Id"])),
        names=tuple(sorted(_names(row.get("RepoTags") or ()))),
        digests=tuple(sorted(_names(row.get("RepoDigests") or ()))),
        size=int(row.get("Size") or 0),
        created_at=datetime.fromtimestamp(row["Created"], UTC) if row.get("Created") else None,
        labels=dict(row.get("Labels") or {}),
    )


def _names(names: Iterable[str]) -> Iterator[str]:
    """Familiar names, in whichever form the engine lists them."""
    for name in names:
        if not name.startswith(_NONE):
            with contextlib.suppress(ValueError):
                yield familiar(parse(name).canonical)


def _id(text: str) -> str:
    return text if text.startswith("sha256:") else f"sha256:{text}"


def checked(field: str, name: str) -> Reference:
    """Parse a reference. Raise Invalid, naming the field, where it is none."""
    try:
        return parse(name)
    except ValueError as error:
        raise Invalid((Violation(field, f"Image '{name[:255]}' cannot be: the name {error}."),)) from error

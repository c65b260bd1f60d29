"""Containers by name: create, start, signal, inspect, remove.

The starter, the supervisor, the reaper and the installer call it. Every call can be repeated, and removing
or signalling a container that is not there is no error.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.render import LABEL, devices, spec
from trainshed.core.errors import TrainshedError

_log = logging.getLogger(__name__)
_TRIES, _PAUSE = 5, 0.1  # seconds
_SELDOM = 30.0  # seconds between two tries, at most
_PATIENCE = 10.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerInfo:
    """A container as the engine sees it."""

    begun: bool  # it has been started before
    running: bool
    out_of_memory: bool


class EngineContainers:
    def __init__(self, engine: Engine, home: str, *, podman: bool = False) -> None:
        self._engine, self._home = engine, home
        # Podman's own API: its Docker API lists no container at all once one is broken, as one is after
        # the engine was killed while it removed it.
        self._list = "/libpod/containers/json" if podman else "/containers/json"

    async def create(self, name: str, body: Mapping[str, object]) -> None:
        try:
            if devices(body):
                await self._engine.ask("POST", "/libpod/containers/create", None, spec(name, body))
            else:
                await self._engine.ask("POST", "/containers/create", {"name": name}, body)
        except EngineFault as error:
            if error.kind is not FaultKind.NAME_TAKEN:
                raise

    async def start(self, name: str) -> None:
        await self._engine.ask("POST", f"/containers/{name}/start")

    async def signal(self, name: str, signal: str) -> None:
        try:
            await self._engine.ask("POST", f"/containers/{name}/kill", {"signal": signal})
        except EngineFault as error:
            if error.kind not in (FaultKind.MISSING, FaultKind.NOT_RUNNING):
                raise

    async def look(self, name: str) -> ContainerInfo | None:
        try:
            state: dict[str, Any] = (await self._engine.ask("GET", f"/containers/{name}/json"))["State"]
        except EngineFault as error:
            if error.kind is FaultKind.MISSING:
                return None
            raise
        return ContainerInfo(
            begun=state.get("Status") not in ("created", "configured"),
            running=bool(state.get("Running")),
            out_of_memory=bool(state.get("OOMKilled")),
        )

    async def remove(self, name: str) -> None:
        for last in (False,) * _TRIES + (True,):
            try:
                await self._engine.ask("DELETE", f"/containers/{name}", {"force": True, "v": True})
                return
            except EngineFault as error:
                if error.kind is FaultKind.MISSING:
                    return
                if last:
                    raise
            await asyncio.sleep(_PAUSE)  # it is ending, or is being removed already

    async def names(self) -> tuple[str, ...]:
        """The names of all containers of this home."""
        query: Mapping[str, object] = {"label": [f"{LABEL}.home={self._home}"]}
        listed: list[dict[str, Any]] = await self._engine.ask(
            "GET", self._list, {"all": True, "filters": query}
        )
        return tuple(str(item["Names"][0]).lstrip("/") for item in listed if item.get("Names"))


async def retry_until_done(work: Callable[[], Coroutine[None, None, None]], whose: str) -> None:
    """Repeat until it succeeds, with growing pauses; log the obstacle once."""
    pause, is_logged = _PAUSE, False
    while True:
        try:
            return await work()
        except TrainshedError as error:
            if pause > _PATIENCE and not is_logged:
                is_logged = True
                _log.warning("the container engine keeps what is left of %s: %s", whose, error.message)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _SELDOM)

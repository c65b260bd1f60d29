"""Volumes of the engine: made for a job, removed with it. And what bears on them: whose it is, its quotas.

Every call bears being made twice. It may assume that nothing but this home's jobs has volumes by these names.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from trainshed.backends.container.engine import Engine, EngineFault
from trainshed.backends.container.render import LABEL
from trainshed.core.errors import Unavailable

_IS_GONE, _IS_THERE = 404, 409
_WITH_QUOTA = frozenset({"btrfs", "zfs"})  # storage drivers that always have one


class EngineVolumes:
    def __init__(self, engine: Engine, home: str) -> None:
        self._engine, self._home = engine, home
        self._info: dict[str, Any] | None = None
        self._quota: bool | None = None

    def name(self, job: str, what: str) -> str:
        return f"{LABEL}-{self._home}-{job}-{what}"

    def labels(self, job: str) -> dict[str, str]:
        return {f"{LABEL}.home": self._home, f"{LABEL}.job": job}

    async def make(self, body: Mapping[str, object]) -> None:
        try:
            await self._engine.ask("POST", "/volumes/create", None, body)
        except EngineFault as error:
            if error.status != _IS_THERE and "already exists" not in error.message:
                raise Unavailable(f"The container engine makes no volume: {error.message}") from error

    async def remove(self, job: str) -> None:
        """All of the job's, once its containers are gone."""
        for name in (await self._all()).get(job, ()):
            await self._remove(name)

    async def sweep(self, jobs: Callable[[], Collection[str]]) -> None:
        """Take away those of jobs that are not known any more: asked each time, as others begin meanwhile."""
        for job, names in (await self._all()).items():
            for name in names:
                if job not in jobs():
                    await self._remove(name)

    async def is_rootless(self) -> bool:
        options: list[object] = (await self._told()).get("SecurityOptions") or []
        return any("rootless" in str(option) for option in options)

    async def holds_quota(self, image: str) -> bool:
        """Whether the engine can hold a container to a size: tried once, with an image that is here."""
        if self._quota is None:
            self._quota = await self._may_hold() and await self._try_quota(image)
        return self._quota

    async def _may_hold(self) -> bool:
        told = await self._told()
        if told.get("Driver") in _WITH_QUOTA:
            return True
        status: list[list[object]] = told.get("DriverStatus") or []
        return any(row[:1] == ["Backing Filesystem"] and "xfs" in str(row[1:]) for row in status)

    async def _try_quota(self, image: str) -> bool:
        name = f"{LABEL}-{self._home}-quota"
        body = {"Image": image, "HostConfig": {"StorageOpt": {"size": str(1 << 30)}}}
        try:
            await self._engine.ask("POST", "/containers/create", {"name": name}, body)
            await self._engine.ask("DELETE", f"/containers/{name}", {"force": True})
        except EngineFault:
            return False
        return True

    async def _told(self) -> dict[str, Any]:
        if self._info is None:
            self._info = dict(await self._engine.ask("GET", "/info"))
        return self._info

    async def _all(self) -> dict[str, list[str]]:
        """Names by job."""
        # By one label only: Podman tells of volumes that have any of several, Docker of those that have all.
        query: dict[str, object] = {"label": [f"{LABEL}.home={self._home}"]}
        told: dict[str, Any] = await self._engine.ask("GET", "/volumes", {"filters": query})
        result: dict[str, list[str]] = {}
        for item in told.get("Volumes") or ():
            labels: dict[str, str] = item.get("Labels") or {}
            if labels.get(f"{LABEL}.home") == self._home:
                result.setdefault(labels.get(f"{LABEL}.job", ""), []).append(str(item["Name"]))
        return result

    async def _remove(self, name: str) -> None:
        try:
            await self._engine.ask("DELETE", f"/volumes/{name}")
        except EngineFault as error:
            if error.status != _IS_GONE:
                raise Unavailable(f"Volume {name} cannot be removed: {error.message}") from error

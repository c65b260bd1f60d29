"""Prepares what a run finds in its container beside the image: folders, files, volumes, views of buckets.

The starter calls it before each start; preparing the same run twice does no harm. It assumes that a run's
folder is its own and that one server works on the home. run_mounts.py turns the result into mounts. It
never looks into a container.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.limits import GIB, LIMIT
from trainshed.backends.container.render import LABEL, Mount, RunMounts
from trainshed.backends.container.run_mounts import (
    PreparedFolders,
    can_overlay,
    is_root,
    nfs_volume,
    overlay_volume,
    run_mounts_of,
    scratch,
    volume,
)
from trainshed.backends.machine.code_folders import CodeFolders
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.backends.machine.mount_table import unmounted
from trainshed.backends.machine.mounts import NO_BUCKETS, Mounts, local_env
from trainshed.backends.machine.open_to_all import ANYBODY, open_to_all
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.launch import Launch
from trainshed.core.metrics import hypertune_file
from trainshed.core.supplies.image import ImageConfig
from trainshed.core.view import ROOT, S3_ROOT, View, ViewSource
from trainshed.disk.regular_file import open_regular, write_regular

_WITH_QUOTA = frozenset({"btrfs", "zfs"})  # storage drivers that always have one
_WORK, _TMP, _OPENED = "work", "tmp", ".work-is-open"


class EngineVolumes:
    """Volumes of the engine, made for a job and removed with it. Every call can be repeated."""

    def __init__(self, engine: Engine, home: str) -> None:
        self._engine, self._home = engine, home
        self._info: Mapping[str, Any] | None = None
        self._quota: bool | None = None

    def name(self, job: str, what: str) -> str:
        return f"{LABEL}-{self._home}-{job}-{what}"

    def labels(self, job: str) -> dict[str, str]:
        return {f"{LABEL}.home": self._home, f"{LABEL}.job": job}

    async def make(self, body: Mapping[str, object]) -> None:
        try:
            await self._engine.ask("POST", "/volumes/create", None, body)
        except EngineFault as error:
            if error.kind is not FaultKind.NAME_TAKEN:
                raise Unavailable(f"The container engine makes no volume: {error.message}") from error

    async def remove(self, job: str) -> None:
        """Remove all of the job's, once its containers are gone."""
        for name, place in (await self._all()).get(job, ()):
            await self._remove(name, place)

    async def sweep(self, jobs: Callable[[], Collection[str]]) -> None:
        """Remove those of unknown jobs; `jobs` is called each time, as jobs begin meanwhile."""
        for job, volumes in (await self._all()).items():
            for name, place in volumes:
                if job not in jobs():
                    await self._remove(name, place)

    async def is_rootless(self) -> bool:
        options: list[object] = (await self._engine_info()).get("SecurityOptions") or []
        return any("rootless" in str(option) for option in options)

    async def holds_quota(self, image: str) -> bool:
        """Whether the engine can hold a container to a size: tried once, with an image that is here."""
        if self._quota is None:
            self._quota = await self._may_hold() and await self._try_quota(image)
        return self._quota

    async def _may_hold(self) -> bool:
        info = await self._engine_info()
        if info.get("Driver") in _WITH_QUOTA:
            return True
        status: list[list[object]] = info.get("DriverStatus") or []
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

    async def _engine_info(self) -> Mapping[str, Any]:
        """Kept: what is under way must not fail for this question while the engine is away."""
        if self._info is None:
            self._info = await self._engine.about()
        return self._info

    async def _all(self) -> dict[str, list[tuple[str, str]]]:
        """Names, and the folders where the engine mounts them, by job."""
        # One label only: given several, Podman lists volumes with any of them, Docker those with all.
        query: dict[str, object] = {"label": [f"{LABEL}.home={self._home}"]}
        listed: dict[str, Any] = await self._engine.ask("GET", "/volumes", {"filters": query})
        result: dict[str, list[tuple[str, str]]] = {}
        for item in listed.get("Volumes") or ():
            labels: dict[str, str] = item.get("Labels") or {}
            if labels.get(f"{LABEL}.home") == self._home:
                volumes = result.setdefault(labels.get(f"{LABEL}.job", ""), [])
                volumes.append((str(item["Name"]), str(item.get("Mountpoint") or "")))
        return result

    async def _remove(self, name: str, place: str) -> None:
        """Unmount what is still mounted there, and remove the volume. No container may have it any more.

        When Podman is killed while it mounts a volume, it takes it for unmounted. It would then delete all
        files that it finds there, such as those of an NFS share.
        """
        if not await asyncio.to_thread(unmounted, place):
            raise Unavailable(f"Volume {name} is still mounted at {place}: unmount it there.")
        try:
            await self._engine.ask("DELETE", f"/volumes/{name}")
        except EngineFault as error:
            if error.kind is not FaultKind.MISSING:
                raise Unavailable(f"Volume {name} cannot be removed: {error.message}") from error


class ContainerViews(Mounts):
    """Views of buckets in containers: the same folders as those of processes, mounted by the engine.

    A snapshot is hard links under an overlay, which is a volume: the engine mounts it once for all replicas
    of a job. Where the image's user is not root, the job's objects are copied for that user. A rootless
    engine has no overlay: it mounts the copies.
    """

    def __init__(
        self, jobs: Path, trash: Path, hint: Callable[[str], None], source: ViewSource | None = None
    ) -> None:
        super().__init__(jobs, trash, hint, source)
        self._users: dict[str, str] = {}  # the image's user, by job

    async def mount(
        self, job: str, view: View, volumes: EngineVolumes, *, shared: bool, user: str
    ) -> tuple[tuple[Mount, ...], str]:
        """The mounts of its job's view for a run that is about to start, and a note on them."""
        if self._source is None:
            return (), "" if view.lazy else NO_BUCKETS
        self._users[job], view = user, replace(view, lazy=False)  # nothing reports what a container opens
        bare = not can_overlay(str(self._jobs)) or await volumes.is_rootless()
        copies = bare or not is_root(user)
        folder, note = await self.folder(job, view, self._source, shared=shared, copies=copies, plain=bare)
        plain = folder / "plain"
        if plain.exists():
            return tuple(Mount(source=str(plain), target=root) for root in (ROOT, S3_ROOT)), note
        name = volumes.name(job, f"gcs-{folder.name}")
        await volumes.make(overlay_volume(name, str(folder), volumes.labels(job)))
        return tuple(volume(name, root) for root in (ROOT, S3_ROOT)), note

    async def forget(self, job: str | None = None) -> None:
        await super().forget(job)
        if job is not None:
            self._users.pop(job, None)

    def _hand_out(self, copies: Path) -> None:
        job = copies.parents[2].name
        _open_for(copies, self._users.get(job, ""))


def _open_for(top: Path, user: str) -> None:
    """Let the image's user read and change what is there. A name is known in the image only."""
    uid, _, gid = user.partition(":")
    open_to_all(top, (int(uid), int(gid) if gid.isdecimal() else -1) if uid.isdecimal() else None)


class MountPreparer:
    def __init__(
        self,
        jobs: Path,
        trash: Path,
        storage: RunStorage,
        loopback: LoopbackPort,
        hint: Callable[[str], None],
    ) -> None:
        self.views = ContainerViews(jobs, trash, hint, storage.buckets)
        self._folders = CodeFolders(storage.code, hint)
        self._loopback = loopback
        self._volumes: EngineVolumes | None = None
        # Launches of a job make its view one after the other.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def use(self, engine: Engine, home: str) -> None:
        self._volumes = EngineVolumes(engine, home)

    @property
    def volumes(self) -> EngineVolumes:
        if self._volumes is None:
            raise Unavailable("The container backend has not been started.")
        return self._volumes

    async def prepare(
        self, launch: Launch, image: ImageConfig, folder: str, report: str, *, shared: bool
    ) -> tuple[Launch, RunMounts]:
        """`folder` is the run's, `report` its file; `shared` where others of its job's attempt are alive."""
        name, run = launch.key.name, Path(folder)
        await self._loopback.google.settled.wait()
        notes: list[str] = []
        quota = 0
        if launch.disk:
            holds = await self.volumes.holds_quota(image.id)
            quota = launch.disk if holds else 0
            how = (
                "the engine lets it fill no more" if holds else "it is looked at, and ended if it fills more"
            )
            notes.append(f"Its disk is {launch.disk / GIB:g} GiB: {how}.")
        code = str(run.parent / _WORK) if launch.code else ""
        if code:
            await self._folders.lay_out(name, launch.code, code)
        buckets: tuple[Mount, ...] = ()
        env: dict[str, str] = {}
        if launch.view is not None:
            async with self._locks.setdefault(name.job, asyncio.Lock()):
                buckets, note = await self.views.mount(
                    name.job, launch.view, self.volumes, shared=shared, user=image.user
                )
            notes.append(note)
            env |= local_env(launch.view, ROOT if buckets else "")
        volumes = [(self.volumes.name(name.job, f"nfs-{name.pool}-{n}"), m) for n, m in enumerate(launch.nfs)]
        for volume_name, mount in volumes:
            await self.volumes.make(nfs_volume(volume_name, mount, self.volumes.labels(name.job)))
        try:
            tmp = self._make_files(run, report, len(launch.scratch))
            if launch.disk and not quota:
                write_regular(f"{run}/{LIMIT}", str(launch.disk).encode())
            if code and not is_root(image.user):
                await asyncio.to_thread(self._open, run, image.user)
        except OSError as error:
            raise Unavailable(f"No place could be made for {launch.key}: {error}.") from error
        places = PreparedFolders(
            tmp=tmp,
            code=code,
            report=report,
            buckets=buckets,
            env=env,
            nfs=tuple(volumes),
            quota=quota,
            notes=tuple(filter(None, notes)),
        )
        return run_mounts_of(launch, image, places, self._loopback)

    async def forget(self, job: str | None = None) -> None:
        """Give up preparations, of one job or of all."""
        await self._folders.drop(job)
        await self.views.forget(job)

    def _make_files(self, run: Path, report: str, scratches: int) -> str:
        tmp = f"{run}/{_TMP}"
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (tmp, *(scratch(tmp, number) for number in range(scratches))):
            Path(folder).mkdir(exist_ok=True)
            Path(folder).chmod(0o1777)
        for before in range(int(run.name)):  # scratch of earlier runs
            shutil.rmtree(run.parent / str(before) / _TMP, ignore_errors=True)
        for file in (report, hypertune_file(report)) if report else ():
            handle = open_regular(file, os.O_WRONLY | os.O_CREAT)
            os.fchmod(handle, ANYBODY)
            os.close(handle)
        return tmp

    def _open(self, run: Path, user: str) -> None:
        """Open the job's folder to a user who is not root, once: later runs find it as they left it."""
        mark = run.parent / _OPENED
        if not mark.exists():
            _open_for(run.parent / _WORK, user)
            mark.touch()

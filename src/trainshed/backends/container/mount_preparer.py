"""Makes ready what a run finds in its container beside the image: folders, files, volumes (run_mounts.py).

It may assume that a run's folder is its own and that one server works on the home. Making it ready twice does
no harm. It never looks into a container.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

from trainshed.backends.container.disk import GIB, LIMIT
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.loopback import LoopbackPort
from trainshed.backends.container.render import Mount, RunMounts
from trainshed.backends.container.run import write
from trainshed.backends.container.run_mounts import PreparedFolders, furnish, is_root, nfs_volume, scratch
from trainshed.backends.container.views import ContainerViews, open_to_all
from trainshed.backends.container.volumes import EngineVolumes
from trainshed.backends.machine.code_folders import CodeFolders
from trainshed.backends.machine.mounts import local_env
from trainshed.core.code_port import CodeStore
from trainshed.core.errors import Unavailable
from trainshed.core.image import ImageConfig
from trainshed.core.launch import Launch
from trainshed.core.view import ROOT

_ANYBODY = 0o666
_WORK, _TMP, _OPENED = "work", "tmp", ".work-is-open"


class MountPreparer:
    def __init__(
        self,
        jobs: Path,
        trash: Path,
        code: CodeStore | None,
        hatch: LoopbackPort,
        hint: Callable[[str], None],
    ) -> None:
        self.views = ContainerViews(jobs, trash, hint)
        self._folders = CodeFolders(code, hint)
        self._hatch = hatch
        self._volumes: EngineVolumes | None = None
        # One launch of a job at a time makes its view.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def use(self, engine: Engine, home: str) -> None:
        self._volumes = EngineVolumes(engine, home)

    @property
    def volumes(self) -> EngineVolumes:
        if self._volumes is None:
            raise Unavailable("The container backend has not been started.")
        return self._volumes

    async def furnish(
        self, launch: Launch, image: ImageConfig, folder: str, *, shared: bool
    ) -> tuple[Launch, RunMounts]:
        """`folder` is the run's; `shared` where others of its job's attempt are alive."""
        name, run = launch.key.name, Path(folder)
        await self._hatch.google.settled.wait()
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
        for volume, mount in volumes:
            await self.volumes.make(nfs_volume(volume, mount, self.volumes.labels(name.job)))
        try:
            tmp = self._make_files(run, launch.report, len(launch.scratch))
            if launch.disk and not quota:
                write(f"{run}/{LIMIT}", str(launch.disk).encode())
            if code and not is_root(image.user):
                await asyncio.to_thread(self._open, run, image.user)
        except OSError as error:
            raise Unavailable(f"No place could be made for {launch.key}: {error}.") from error
        places = PreparedFolders(
            tmp=tmp,
            code=code,
            report=launch.report,
            buckets=buckets,
            env=env,
            nfs=tuple(volumes),
            quota=quota,
            notes=tuple(filter(None, notes)),
        )
        return furnish(launch, image, places, self._hatch)

    async def forget(self, job: str | None = None) -> None:
        """Give up what is being laid out, of one job or of all."""
        await self._folders.drop(job)
        await self.views.forget(job)

    def _make_files(self, run: Path, report: str, scratches: int) -> str:
        tmp = f"{run}/{_TMP}"
        run.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (tmp, *(scratch(tmp, number) for number in range(scratches))):
            Path(folder).mkdir(exist_ok=True)
            Path(folder).chmod(0o1777)
        for before in range(int(run.name)):  # what earlier runs left there is nobody's any more
            shutil.rmtree(run.parent / str(before) / _TMP, ignore_errors=True)
        if report:
            handle = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(handle, _ANYBODY)
            os.close(handle)
        return tmp

    def _open(self, run: Path, user: str) -> None:
        """The job's folder for a user who is not root, once: later runs find it as they left it."""
        mark = run.parent / _OPENED
        if not mark.exists():
            open_to_all(run.parent / _WORK, user)
            mark.touch()

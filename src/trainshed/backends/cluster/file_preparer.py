"""FilePreparer: lays out on the server what a run's pod is brought: its folder of code, its view of buckets.

The backend calls it before it creates a pod. Preparing the same run twice does no harm; NotYet where it takes
longer, and a hint when it is done. It never talks to the cluster.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from trainshed.backends.cluster.layers import ClusterLayers
from trainshed.backends.cluster.pod_places import PodPlaces
from trainshed.backends.cluster.views import PodViews
from trainshed.backends.machine.code_folders import CodeFolders
from trainshed.backends.machine.mounts import local_env
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.jobs.launch import Launch
from trainshed.core.names import ReplicaName
from trainshed.core.supplies.runtime import RuntimeNeed
from trainshed.core.view import ROOT


class FilePreparer:
    def __init__(
        self,
        jobs: Path,
        trash: Path,
        storage: RunStorage,
        layers: ClusterLayers,
        hint: Callable[[str], None],
    ) -> None:
        self.views = PodViews(jobs, trash, hint, storage.buckets)
        self._jobs, self._files, self._layers = jobs, storage.files, layers
        self._folders = CodeFolders(storage.code, hint)
        # Launches of a job lay its folders out one after the other.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def prepare(self, launch: Launch, *, is_shared: bool) -> tuple[Launch, PodPlaces, str]:
        """The launch with the variables that tell of its files, their places here, and a note on them.

        `is_shared`: other runs of its attempt are alive.
        """
        name, gcs, note = launch.key.name, "", ""
        async with self._locks.setdefault(name.job, asyncio.Lock()):
            # One for all replicas: pods get copies of it.
            code = str(self._jobs / name.job / "code") if launch.code else ""
            if code:
                await self._folders.lay_out(ReplicaName(name.job, 0, 0, 0), launch.code, code)
            if launch.view is not None:
                gcs, note = await self.views.show(name.job, launch.view, is_shared=is_shared)
                launch = replace(launch, env={**launch.env, **local_env(launch.view, ROOT if gcs else "")})
        need = RuntimeNeed(launch.image, launch.requirements, launch.packages)
        layer = self._layers.folder(need, name.job)
        places = PodPlaces(
            code=code,
            layer=layer,
            gcs=gcs,
            report=self._files.report(name),
            waits=bool(code or layer) or (bool(gcs) and bool(await asyncio.to_thread(os.listdir, gcs))),
        )
        return launch, places, note

    async def forget(self, job: str | None = None) -> None:
        """Give up preparations, of one job or of all."""
        await self._folders.drop(job)
        await self.views.forget(job)

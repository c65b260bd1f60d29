"""ContainerBackend implements core.ports.Backend with containers of an engine on this machine.

The control loop calls it. It remembers each run in memory; only a launch, the end of an init and the scan
at start change that, so observing asks nobody. The runs' folders and the engine hold the truth: a server
killed at any line finds it there. It assumes that no other server works on its home, and that the engine
sees the same files.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

from trainshed.backends.container.callers import ContainerCallers
from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.derived_images import DerivedImages, ImageBuildTools
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault
from trainshed.backends.container.images import EngineImages
from trainshed.backends.container.limits import DiskWatch, JobGroups
from trainshed.backends.container.mount_preparer import MountPreparer
from trainshed.backends.container.network import Networks
from trainshed.backends.container.reaper import ContainerReaper
from trainshed.backends.container.render import RunMounts, container_name, render
from trainshed.backends.container.run import ContainerRun, reload
from trainshed.backends.container.run_supervisor import ContainerRunSupervisor
from trainshed.backends.container.shell import ContainerShells
from trainshed.backends.container.start import Starter, make_init
from trainshed.backends.container.stats import MEASURES, ContainerStacks, ContainerStats
from trainshed.backends.machine.home_files import made_once, remove_job_folder
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.backends.machine.node import LocalNode
from trainshed.backends.machine.node_stats import LocalNodeStats
from trainshed.backends.machine.own_network import name_by_task, others_at_its_place
from trainshed.backends.machine.run_folders import find_runs, run_folder
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import PreparationProgress, Readiness, together
from trainshed.core.jobs.replica import Handle, Observation
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Capabilities
from trainshed.core.queue.fleet import Admission, Node
from trainshed.core.supplies.image import ImageConfig
from trainshed.core.supplies.runtime import RuntimeNeed

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class ContainerBackend:
    def __init__(
        self,
        home: Path,
        engine: Engine,
        images: EngineImages,
        *,
        storage: RunStorage,
        node: LocalNode | None = None,
        subnets: str = "10.210.0.0/16",
        loopback: LoopbackPort | None = None,
    ) -> None:
        home = home.absolute()
        self.capabilities = Capabilities(
            name="container",
            survives_server=True,
            kills_escapees=True,
            measures=MEASURES,
            private_network=True,
        )
        self._engine, self.images, self.image_inventories = engine, images, (images,)
        self._home, self._jobs_folder, self._trash = home, home / "jobs", home / "trash"
        self._node, self._subnets = node or LocalNode(), subnets
        self._files, loopback = storage.files, loopback or LoopbackPort()
        self._mount_preparer = MountPreparer(
            self._jobs_folder, self._trash, storage, loopback, self._hint_job
        )
        self.derived = DerivedImages(home / "derived", images, loopback, self._hint_job, storage.packages)
        self.views = self._mount_preparer.views
        self._id = self._init = ""
        self._hints: list[Callable[[str], None]] = []
        self._runs: dict[str, dict[RunKey, ContainerRun]] = {}
        self.stats: ContainerStats  # made by `start`
        self.stacks = ContainerStacks(self._runs)
        self.shells = ContainerShells(self._runs, engine)
        self.callers = ContainerCallers(self._runs)
        self.node_stats = LocalNodeStats(self._node, home)
        # Launches of one name run one after the other: the second finds the run of the first.
        self._locks: WeakValueDictionary[ReplicaName, asyncio.Lock] = WeakValueDictionary()
        self._containers: EngineContainers
        self._networks: Networks
        self._disk: DiskWatch
        self._supervisor: ContainerRunSupervisor
        self._starter: Starter
        self._reaper: ContainerReaper

    async def start(self) -> None:
        """Raise Unavailable, with the reason, where containers cannot run here."""
        podman = await self._engine.is_podman()
        earlier = await asyncio.to_thread(self._open)
        self._containers = EngineContainers(self._engine, self._id, podman=podman)
        self._supervisor = ContainerRunSupervisor(self._containers, self._hint)
        about = await self._engine.about()
        groups = JobGroups(self._id, str(about.get("CgroupDriver", "")))
        self.stats = ContainerStats(self._runs, groups, self._supervisor.kill)
        self._disk = DiskWatch(self._engine, self._supervisor.kill)
        self._mount_preparer.use(self._engine, self._id)
        self._networks = networks = Networks(self._engine, self._id, self._subnets, self._home, podman=podman)
        self._starter = Starter(
            home=self._id,
            init=self._init,
            podman=podman,
            containers=self._containers,
            networks=networks,
            images=self.images,
            mount_preparer=self._mount_preparer,
            derived=self.derived,
            groups=groups,
            ceiling=self._node.ceiling,
            files=self._files,
        )
        memory = (await self.nodes())[0].memory
        self.derived.open(ImageBuildTools(self._engine, self._containers, self._id, self._init, memory))
        self._reaper = ContainerReaper(self._containers, networks, self._mount_preparer.volumes, groups)
        if earlier:
            await networks.keep_apart()
        for job, runs in earlier:
            self._runs[job] = {run.key: run for run in runs}
            self.views.open(job)
            for run in runs:
                if run.network:
                    networks.adopt(job, run.network)
                self._supervisor.find_again(run)
                self._disk.watch(run)
        await self.shells.begin(self._id)
        self._reaper.begin(lambda: self._runs, self._container_names)

    async def close(self) -> None:
        await self.shells.close()
        await self._reaper.close()
        await self._networks.close()
        await self._mount_preparer.forget()
        await self._disk.close()
        await self.stats.close()
        await self._supervisor.close()
        self.stacks.close()
        await self.derived.close()
        await self.images.close()
        await self._engine.close()

    async def nodes(self) -> tuple[Node, ...]:
        return await self._node.nodes()

    def refuse_image(self, image: str) -> str | None:
        return self.images.refuse(image)

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        pools = [pool for pool in spec.pools if not pool.is_empty]
        needs = dict.fromkeys(RuntimeNeed(pool.image, spec.requirements, pool.packages) for pool in pools)
        return together([self._ready(need, job) for need in needs])

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return (*self.images.preparing(), *self.derived.preparing())

    def render(self, launch: Launch) -> Mapping[str, object]:
        image = self.images.config(launch.image, launch.key.name.job) or ImageConfig(id=launch.image)
        run = ContainerRun(launch.key, str(run_folder(self._jobs_folder, launch.key)), "")
        return render(launch, image, self._starter.frame(run, launch), RunMounts())

    async def launch(self, launch: Launch) -> Handle:
        key = launch.key
        job = key.name.job
        if not _SAFE.fullmatch(job):
            raise Invalid((Violation("job", f"'{job}' cannot be the name of a container."),))
        await self._reaper.wait(job)
        async with self._lock(key.name):
            known = self._runs.get(job, {}).get(key)
            if known is not None and known.observation is not None:
                return known.handle
            run = known or ContainerRun(
                key, str(run_folder(self._jobs_folder, key)), container_name(self._id, key)
            )
            run.container = run.container or container_name(self._id, key)
            self._runs.setdefault(job, {})[key] = run
            try:
                await self._remove_earlier_runs(key)
                with self._reaper.launching():
                    await self._starter.begin(run, launch, shared=self._shared(run))
                self._supervisor.begun(run)
                self._disk.watch(run)
            except BaseException:
                self._forget(run)
                raise
            return run.handle

    async def observe(self, job: str) -> tuple[Observation, ...]:
        runs = self._runs.get(job)
        if not runs:
            return ()
        return tuple(run.observation for run in runs.values() if run.observation is not None)

    async def stop(self, key: RunKey, *, force: bool) -> None:
        run = self._runs.get(key.name.job, {}).get(key)
        if run is None or run.gone.is_set():
            return
        try:
            if force:
                await self._supervisor.kill(run)
            else:
                await self._supervisor.ask(run)
        except EngineFault as error:
            raise Unavailable(f"{key} could not be stopped: {error.message}") from error

    async def remove(self, job: str) -> None:
        runs = list(self._runs.get(job, {}).values())
        if job not in self._runs:
            return
        alive = [run for run in runs if not run.gone.is_set()]
        await asyncio.gather(*(self.stop(run.key, force=True) for run in alive))
        if left := [str(run.key) for run in runs if not run.gone.is_set()]:
            raise Unavailable(f"Containers of {', '.join(left)} do not end although they were killed.")
        await self._mount_preparer.forget(job)
        try:
            await asyncio.to_thread(remove_job_folder, self._jobs_folder / job, self._trash)
        except OSError as error:
            raise Unavailable(f"The files of job {job} cannot be removed: {error}.") from error
        del self._runs[job]
        self._reaper.remove_job(job, [run.container for run in runs if run.container])

    async def jobs(self) -> frozenset[str]:
        return frozenset(self._runs)

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        return name_by_task(admission)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)
        self.images.on_change(hint)

    # Starting

    def _shared(self, run: ContainerRun) -> bool:
        """Whether other replicas of its attempt are alive."""
        name = run.key.name
        runs = self._runs.get(name.job, {}).values()
        return any(item.alive and item.key.name.attempt == name.attempt for item in runs)

    async def _remove_earlier_runs(self, key: RunKey) -> None:
        """Stop and remove earlier runs of the replica: their containers still have its address."""
        for run in others_at_its_place(self._runs[key.name.job].values(), key):
            if not run.gone.is_set():
                await self.stop(run.key, force=True)
            if not run.gone.is_set():
                raise Unavailable(f"Run {run.key} is still alive although it was killed: {key} has to wait.")
            if run.container:
                try:
                    await self._containers.remove(run.container)
                except EngineFault as error:
                    raise Unavailable(f"{run.container} cannot be removed: {error.message}") from error
                run.container = ""

    def _forget(self, run: ContainerRun) -> None:
        """Forget a run that was not started. One with a folder stays: that says what is left to do."""
        runs = self._runs.get(run.key.name.job, {})
        if run.observation is None and not Path(run.folder).exists():
            runs.pop(run.key, None)
            if not runs:
                self._runs.pop(run.key.name.job, None)

    def _ready(self, need: RuntimeNeed, job: str) -> Readiness:
        """Readiness of the image, then of what is installed on top of it."""
        result = self.images.readiness(need.image, job)
        if not result.is_ready or not (need.requirements or need.packages):
            return result
        return together((result, self.derived.readiness(need, job)))

    def _container_names(self) -> frozenset[str]:
        ours = frozenset(run.container for runs in self._runs.values() for run in runs.values())
        return ours | self.derived.containers | self._networks.containers

    # Beginning

    def _open(self) -> list[tuple[str, list[ContainerRun]]]:
        for folder in (self._home, self._jobs_folder, self._trash):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._home.chmod(0o700)  # the files of runs below are open to everybody
        shutil.rmtree(self._trash, ignore_errors=True)
        self._trash.mkdir(mode=0o700, exist_ok=True)
        self.views.unstored.open()
        self._id = made_once(
            self._home / "id", lambda: os.urandom(4).hex()
        )  # labels of its containers carry it
        self._init = make_init(self._home / "bin")
        return list(find_runs(self._jobs_folder, reload))

    def _hint(self, run: ContainerRun) -> None:
        self._hint_job(run.key.name.job)

    def _hint_job(self, job: str) -> None:
        for hint in self._hints:
            hint(job)

    def _lock(self, name: ReplicaName) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

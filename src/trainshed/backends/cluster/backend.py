"""ClusterBackend implements core.ports.Backend with pods of a Kubernetes cluster.

The control loop calls it. Each run is a pod named after it, so that creating it twice creates it once. The
folder of a run on the server says that it was launched and, once known, how it ended; the cluster has the
rest. A server killed at any line finds both again. Pods and nodes are watched, so observing asks nobody.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from trainshed.backends.cluster import pod as pods
from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.callers import PodCallers
from trainshed.backends.cluster.choices import DEFAULT_CHOICES, ClusterChoices
from trainshed.backends.cluster.cluster_nodes import ClusterNodes
from trainshed.backends.cluster.cluster_queues import ClusterQueues
from trainshed.backends.cluster.file_preparer import FilePreparer
from trainshed.backends.cluster.finder import CAPABILITIES, refuse
from trainshed.backends.cluster.grouping import unmanaged_note
from trainshed.backends.cluster.image_store import ClusterImageStore
from trainshed.backends.cluster.images import ClusterImages
from trainshed.backends.cluster.job_objects import JobObjects, job_of
from trainshed.backends.cluster.layer_inventory import LayerInventory
from trainshed.backends.cluster.layers import ClusterLayers
from trainshed.backends.cluster.node_stats import ClusterNodeStats
from trainshed.backends.cluster.nodes import requested
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod import UNKNOWN, PodFrame
from trainshed.backends.cluster.pod_doors import PodDoors
from trainshed.backends.cluster.pod_events import PodEvents
from trainshed.backends.cluster.pod_hosts import has_file, own_names
from trainshed.backends.cluster.pod_places import PodPlaces
from trainshed.backends.cluster.pod_reasons import hindered
from trainshed.backends.cluster.pod_room import PodRoom
from trainshed.backends.cluster.pod_runs import PodRuns
from trainshed.backends.cluster.pod_state import PodState, slim_own_pod, state_of
from trainshed.backends.cluster.pod_variables import CommonVariables
from trainshed.backends.cluster.pull_secrets import PullSecrets
from trainshed.backends.cluster.reach_gate import ReachGate
from trainshed.backends.cluster.registry import RegistryClient
from trainshed.backends.cluster.run import PodRun, reload_run
from trainshed.backends.cluster.run_supervisor import PodRunSupervisor
from trainshed.backends.cluster.shell import PodShells
from trainshed.backends.cluster.stacks import PodStacks
from trainshed.backends.cluster.stats import PodStats
from trainshed.backends.cluster.surroundings import Surroundings
from trainshed.backends.machine.compiled import compiled
from trainshed.backends.machine.home_files import made_once, remove_job_folder
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.backends.machine.own_network import name_by_task, others_at_its_place
from trainshed.backends.machine.registry_auth import RegistryAuth
from trainshed.backends.machine.run_folders import find_runs, run_folder
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.limits import memory_limit
from trainshed.core.jobs.readiness import PreparationProgress, Readiness, ReadinessState, together
from trainshed.core.jobs.remote_start import with_remote_program
from trainshed.core.jobs.replica import Handle, Observation
from trainshed.core.names import RunKey
from trainshed.core.queue.fleet import Admission, Node
from trainshed.core.supplies.image import ImageConfig
from trainshed.core.supplies.runtime import RuntimeNeed

_PATIENCE = 5.0  # seconds for which a launch waits for a program that begins alone
log = logging.getLogger(__name__)
_INIT = Path(__file__).with_name("pod_init.c")


class ClusterBackend:
    def __init__(
        self,
        home: Path,
        api: ClusterApi,
        *,
        storage: RunStorage,
        auth: RegistryAuth | None = None,
        loopback: LoopbackPort | None = None,
        choices: ClusterChoices = DEFAULT_CHOICES,
        accelerator_of: Callable[[str], str] = lambda device: "",  # the type of GPU that a label means
    ) -> None:
        home = home.absolute()
        self.capabilities = CAPABILITIES
        self._home, self._jobs_folder, self._trash = home, home / "jobs", home / "trash"
        self._api, self._files, self._choices = api, storage.files, choices
        self._accelerator_of = accelerator_of
        self._registry = RegistryClient(
            PullSecrets(api, auth or RegistryAuth(), choices.template).credentials
        )
        self._layers = ClusterLayers(home / "layers", api, self._hint, storage.packages)
        self._preparer = FilePreparer(self._jobs_folder, self._trash, storage, self._layers, self._hint)
        self.views = self._preparer.views
        self._id = ""
        self._hints: list[Callable[[str], None]] = []
        self._runs = PodRuns(self._jobs_folder)
        self.callers = PodCallers(self._runs)
        self._gate = ReachGate(api, loopback or LoopbackPort())
        self._objects = JobObjects(api)
        self._common = CommonVariables()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._supervisor = PodRunSupervisor(
            api,
            storage.files,
            lambda run: self._hint(run.key.name.job),
            self._surroundings(),
            self._gate.loopback,
        )
        doors = PodDoors(api, self._runs)
        # Of layers alone: kubelets make room on their disks themselves.
        self.image_inventories = (LayerInventory(home / "layers", self._runs.layers),)
        self.shells, self.stats, self.stacks = PodShells(doors), PodStats(doors), PodStacks(doors)
        self._events = PodEvents(api, self._events_changed)
        self._queues = ClusterQueues(api, choices.queue, choices.patience, self._events_changed)
        self._parts = AsyncExitStack()  # what is to be closed, the API last
        for close in (api.close, self._preparer.forget, self._supervisor.close):
            self._parts.push_async_callback(close)
        for part_of_it in (self.shells, self.stats, self._events, self._queues, self._layers):
            self._parts.push_async_callback(part_of_it.close)
        self._init: Path
        self._images: ClusterImages
        self._pods: ObjectCache
        self._nodes: ClusterNodes
        self._room: PodRoom
        self.node_stats: ClusterNodeStats  # made by `start`, as images are
        self.images: ClusterImageStore

    def _surroundings(self) -> Surroundings:
        """Of parts that are there from the start on."""
        return Surroundings(
            peers=self._runs.of_attempt,
            is_node_silent=lambda node: self._nodes.is_silent(node),  # noqa: PLW0108 - `start` makes it
            is_drained=lambda node: self._nodes.is_drained(node),  # noqa: PLW0108
            read_state=self._state,
            displace=lambda run: self._room.displace(run.pod),
            give_names=lambda run: self._objects.give_names(run.key.name.job),
        )

    async def start(self) -> None:
        """Raise Unavailable, with the reason, where the cluster cannot be used."""
        earlier = await asyncio.to_thread(self._open)
        self._images = ClusterImages(self._api, self._id, self._hint, self._registry, self._choices.template)
        ours = f"{pods.HOME}={self._id}"
        self._pods = ObjectCache(self._api, "pods", ours, changed=self._pod_changed, slim=slim_own_pod)
        self._nodes = ClusterNodes(
            self._api, self._id, self._choices.template, self._images.node_changed, self._accelerator_of
        )
        self._room = PodRoom(self._api, self._nodes, self._pods)
        self.node_stats = ClusterNodeStats(self._api, self._nodes.cache)
        self.images = ClusterImageStore(self._images, self._nodes.cache)
        for job, runs in earlier:
            self._runs.add(job, runs)
            self.views.open(job)
        for piece in (self._images, self.images, self._pods, self._nodes):
            self._parts.push_async_callback(piece.close)
        try:
            await self._bring_init()
            await self._pods.start()
            await self._nodes.start()
        except ApiFault as fault:
            raise fault.as_unavailable("The Kubernetes cluster cannot be used") from fault
        for run in self._runs:
            self._find_again(run)
        known = self._runs.jobs
        orphans = [item for item in self._pods.objects.values() if job_of(item) not in known]
        await self._objects.remove_orphans(orphans, self._queues)

    async def close(self) -> None:
        await self._parts.aclose()

    async def nodes(self) -> tuple[Node, ...]:
        return self._nodes.offered()

    def refuse_image(self, image: str) -> str | None:
        return refuse(image)

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        pools = [pool for pool in spec.pools if not pool.is_empty]
        return together([self._ready(pool, spec, job) for pool in pools])

    def _ready(self, pool: Pool, spec: JobSpec, job: str) -> Readiness:
        runs_itself = not pool.command and not pool.module
        image = self._images.readiness(pool.image, job, runs_itself=runs_itself)
        if image.standing is not ReadinessState.READY:
            return image
        return self._layers.readiness(RuntimeNeed(pool.image, spec.requirements, pool.packages), job)

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return (*self._images.preparing(), *self._layers.preparing())

    def render(self, launch: Launch) -> Mapping[str, object]:
        known = self._images.pinned(launch.image, launch.key.name.job)
        return pods.render_pod(launch, self._frame(PodPlaces(), UNKNOWN if known is None else known.config))

    async def launch(self, launch: Launch) -> Handle:
        key, job = launch.key, launch.key.name.job
        if not pods.is_safe(job):
            raise Invalid((Violation("job", f"'{job}' cannot be part of the name of a pod."),))
        async with self._lock(str(key.name)):
            run = self._runs.find(key)
            if run is None or run.observation is None:
                run = run or PodRun(key, str(run_folder(self._jobs_folder, key)), "")
                self._runs.add(job, (run,))
                try:
                    await self._end_earlier_runs(key)
                    await self._create(run, launch)
                except ApiFault as fault:
                    what = f"The pod of {key.name.task} cannot be created"
                    raise hindered(fault, what, self._choices.patience) from fault
                except OSError as error:
                    raise Unavailable(f"No place could be made for {key}: {error}.") from error
            if run.gang == 1 and not run.grouping.queue:
                await self._supervisor.begun(run, _PATIENCE)
            return run.handle

    async def observe(self, job: str) -> tuple[Observation, ...]:
        runs = self._runs.of(job)
        return tuple(run.observation for run in runs if run.observation is not None)

    async def stop(self, key: RunKey, *, force: bool) -> None:
        run = self._runs.find(key)
        if run is None or run.observation is None or run.gone.is_set():
            return
        try:
            await (self._supervisor.kill(run) if force else self._supervisor.ask(run))
        except ApiFault as fault:
            raise fault.as_unavailable(f"{key} could not be stopped") from fault

    async def remove(self, job: str) -> None:
        if job not in self._runs:
            return
        async with self._lock(job):
            runs = self._runs.of(job)
            alive = [run for run in runs if run.observation is not None and not run.gone.is_set()]
            await asyncio.gather(*(self.stop(run.key, force=True) for run in alive))
            if left := [str(run.key) for run in alive if not run.gone.is_set()]:
                raise Unavailable(f"Pods of {', '.join(left)} do not end although they were killed.")
            try:
                await self._queues.free(run.grouping for run in runs)
                names, isolated = [run.pod for run in runs if run.pod], any(run.isolated for run in runs)
                await self._objects.remove(job, names, isolated=isolated)
            except ApiFault as fault:
                raise fault.as_unavailable(f"The objects of job {job} cannot be removed") from fault
            await self._preparer.forget(job)
            await asyncio.to_thread(remove_job_folder, self._jobs_folder / job, self._trash)
            self._runs.forget(job)
            self._common.forget(job)

    async def jobs(self) -> frozenset[str]:
        return self._runs.jobs

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        return name_by_task(admission)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    # Starting

    async def _create(self, run: PodRun, launch: Launch) -> None:
        """Every step can be repeated: what is there already is left as it is."""
        job = run.key.name.job
        peers = self._runs.of_attempt(run.key.name)
        is_shared = any(peer is not run and peer.alive for peer in peers)
        launch = with_remote_program(launch, pods.REMOTE)
        launch, run.places, run.note = await self._preparer.prepare(launch, is_shared=is_shared)
        run.pod, run.holds = pods.pod_name(self._id, run.key), launch.held
        run.gpus = len(launch.placement.gpus)
        run.gang, run.memory = max(len(launch.peers), 1), memory_limit(launch.placement, launch.room)
        launch, reach = await self._gate.reached(self._id, launch)
        run.reaches, run.names, run.has_hosts = bool(reach.ports), own_names(launch), has_file(launch)
        run.isolated = launch.isolated
        run.aliases = tuple((address, name) for name, address in reach.hosts.items())
        run.grouping = await self._queues.grouping(self._id, launch, [peer.grouping for peer in peers])
        earlier = [other for other in self._runs.of(job) if other.key.name.attempt < run.key.name.attempt]
        await self._objects.free_attempts(earlier, self._queues)
        output = self._files.output(run.key.name)
        await asyncio.to_thread(run.prepare, output)
        run.places.write(run.folder)
        token = self._runs.token(job)
        common = self._common.see(launch, reach.shared)
        frame = replace(self._frame(run.places), reach=reach, grouping=run.grouping, common=common)
        await self._objects.make_shared(run, {"token": token, **pods.pod_variables(launch, frame).kept()})
        if not launch.command and not launch.module:
            known = await self._images.resolve(launch.image, job)
            launch = replace(launch, image=known.reference.canonical)
            frame = replace(frame, image=known.config)
        body = pods.render_pod(launch, frame)
        why, node = "", launch.placement.node
        if run.key.run or run.key.name.attempt:  # else it has just been placed, where there is room for it
            why = self._room.promise(node, run.pod, requested(body["spec"]))
        why = why or self._room.closure(node)
        if why or run.grouping.queue:
            affinity = self._nodes.elsewhere(launch.accelerator, avoids_silent=not run.grouping.queue)
            body = pods.render_pod(launch, replace(frame, elsewhere=affinity), anywhere=True)
        if why and not run.grouping.queue:
            run.add_note(f"{why} Kubernetes chooses another for {run.key.name.task}.")
        run.mark("created")
        try:
            created = await self._api.make("pods", body)
        except ApiFault as fault:
            if not fault.passing:  # else it may have been created
                run.unmark("created")
                self._room.withdraw(run.pod)
            raise
        if created is not None:
            run.add_note(unmanaged_note(run.grouping, created))
        known = self._pods.objects.get(run.pod) or created
        run.state = self._state(known or await self._api.get("pods", run.pod))
        self._supervisor.supervise(run, token, may_have_begun=run.begins_alone)

    async def _end_earlier_runs(self, key: RunKey) -> None:
        for run in others_at_its_place(self._runs.of_place(key.name), key):
            if run.observation is not None and not run.gone.is_set():
                await self.stop(run.key, force=True)
                if not run.gone.is_set():
                    raise Unavailable(
                        f"Run {run.key} is still alive although it was killed: {key} has to wait."
                    )

    def _frame(self, files: PodPlaces, image: ImageConfig = UNKNOWN) -> PodFrame:
        return PodFrame(
            home=self._id,
            init=self._images.init,
            namespace=self._api.namespace,
            image=image,
            files=files,
            template=self._choices.template,
        )

    # Beginning

    def _open(self) -> list[tuple[str, list[PodRun]]]:
        for folder in (self._home, self._jobs_folder, self._trash, self._home / "bin"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(self._trash, ignore_errors=True)
        self._trash.mkdir(mode=0o700, exist_ok=True)
        self.views.unstored.open()
        self._layers.open(self._frame)
        self._id = self._objects.home = made_once(self._home / "id", lambda: os.urandom(4).hex())
        program = compiled(_INIT, self._home / "bin", kinds=(("-static", "-s"),))
        if program is None:
            raise Unavailable("The init of pods cannot be compiled here: it needs the C compiler 'cc'.")
        self._init = program
        return list(find_runs(self._jobs_folder, reload_run))

    async def _bring_init(self) -> None:
        body = pods.render_init(self._id, await asyncio.to_thread(self._init.read_bytes))
        await self._api.make("configmaps", body)
        self._images.init = str(body["metadata"]["name"])

    def _find_again(self, run: PodRun) -> None:
        pod = self._pods.objects.get(run.pod)
        if run.is_lost and pod is not None:
            self._supervisor.take_away(run)
        if run.gone.is_set() or not run.pod:
            return
        if pod is None and not Path(run.folder, "created").exists():
            return  # never created: it is launched again
        run.state = None if pod is None else self._state(pod)
        self._supervisor.supervise(run, self._runs.token(run.key.name.job), may_have_begun=True)

    # What was seen

    def _state(self, pod: Object) -> PodState:
        name = str(pod["metadata"]["name"])
        state = state_of(pod, self._events.of(name), self._choices.patience, self._queues.workload(pod))
        waits = state.has_not_begun and pods.JOB in part(part(pod, "metadata"), "labels")
        self._events.see(name, waits=waits)
        self._queues.see(pod, waits=waits)
        return state

    def _events_changed(self, name: str) -> None:
        if (pod := self._pods.objects.get(name)) is not None:
            self._supervisor.pod_changed(pod, False)

    def _pod_changed(self, item: Object, is_gone: bool) -> None:
        if is_gone:
            self._events.see(str(item["metadata"]["name"]), waits=False)
            self._queues.see(item, waits=False)
        self._supervisor.pod_changed(item, is_gone)
        self._layers.supervisor.pod_changed(item, is_gone)
        self._images.pod_changed(item, is_gone)

    def _hint(self, job: str) -> None:
        for hint in self._hints:
            hint(job)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

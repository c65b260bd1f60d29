"""ClusterBackend implements core.ports.Backend with pods of a Kubernetes cluster.

The control loop calls it. Each run is a pod named after it, so that creating it twice creates it once. The
folder of a run on the server says that it was launched and, once known, how it ended; the cluster has the
rest. A server killed at any line finds both again. Pods and nodes are watched, so observing asks nobody.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from weakref import WeakValueDictionary

from trainshed.backends.cluster import pod as pods
from trainshed.backends.cluster.api import ApiFault, ClusterApi, Object
from trainshed.backends.cluster.finder import CAPABILITIES, refuse
from trainshed.backends.cluster.images import ClusterImages
from trainshed.backends.cluster.node_watch import NodeWatch
from trainshed.backends.cluster.nodes import nodes_of, slim_pod, takes_pods
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.pod import PodFrame
from trainshed.backends.cluster.pod_state import state_of
from trainshed.backends.cluster.run import PodRun, reload_run
from trainshed.backends.cluster.run_supervisor import PodRunSupervisor, take_away
from trainshed.backends.cluster.unsupported import REMEDY, unfound_names, unsupported
from trainshed.backends.machine.compiled import compiled
from trainshed.backends.machine.home_files import made_once, remove_job_folder
from trainshed.backends.machine.own_network import name_by_task, others_at_its_place
from trainshed.backends.machine.run_folders import find_runs, run_folder
from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.fleet import Admission, Node
from trainshed.core.job import JobSpec
from trainshed.core.launch import Launch
from trainshed.core.limits import memory_limit
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import RunFiles
from trainshed.core.readiness import PreparationProgress, Readiness, ReadinessState, together
from trainshed.core.replica import Handle, Observation
from trainshed.core.verdict import Cause, Verdict

_PATIENCE = 5.0  # seconds for which a launch waits for a program that begins alone
_FORBIDDEN = 403
log = logging.getLogger(__name__)
_INIT = Path(__file__).with_name("pod_init.c")


class ClusterBackend:
    stats = stacks = shells = views = images = image_inventory = callers = node_stats = None

    def __init__(
        self,
        home: Path,
        api: ClusterApi,
        *,
        files: RunFiles,
    ) -> None:
        home = home.absolute()
        self.capabilities = CAPABILITIES
        self._home, self._jobs_folder, self._trash = home, home / "jobs", home / "trash"
        self._api, self._files = api, files
        self._id = ""
        self._hints: list[Callable[[str], None]] = []
        self._runs: dict[str, dict[RunKey, PodRun]] = {}
        self._tokens: dict[str, str] = {}  # by job
        self._offered: tuple[Node, ...] | None = None  # the nodes; None: something has changed since
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._supervisor = PodRunSupervisor(
            api, files, lambda run: self._hint(run.key.name.job), self._attempt, self._is_node_silent
        )
        self._parts = AsyncExitStack()  # what is to be closed, the API last
        self._parts.push_async_callback(api.close)
        self._parts.push_async_callback(self._supervisor.close)
        self._init: Path
        self._images: ClusterImages
        self._pods: ObjectCache
        self._nodes: ObjectCache
        self._all_pods: ObjectCache
        self._node_watch: NodeWatch

    async def start(self) -> None:
        """Raise Unavailable, with the reason, where the cluster cannot be used."""
        earlier = await asyncio.to_thread(self._open)
        self._images = ClusterImages(self._api, self._id, self._hint)
        ours = f"{pods.HOME}={self._id}"
        self._pods = ObjectCache(self._api, "pods", ours, changed=self._pod_changed)
        self._nodes = ObjectCache(self._api, "nodes", changed=self._node_changed)
        self._all_pods = ObjectCache(
            self._api, "pods", everywhere=True, changed=self._any_pod_changed, slim=slim_pod
        )
        self._node_watch = NodeWatch(self._api, self._nodes)
        for job, runs in earlier:
            self._runs[job] = {run.key: run for run in runs}
        for part in (self._images, self._pods, self._nodes, self._all_pods, self._node_watch):
            self._parts.push_async_callback(part.close)
        try:
            await self._bring_init()
            await self._pods.start()
            await self._nodes.start()
            await self._see_other_pods()
            await self._node_watch.start()
        except ApiFault as fault:
            raise fault.as_unavailable("The Kubernetes cluster cannot be used") from fault
        for job, runs in earlier:
            for run in runs:
                self._find_again(run, self._token(job))
        await self._take_away_orphans()

    async def close(self) -> None:
        await self._parts.aclose()

    async def nodes(self) -> tuple[Node, ...]:
        if self._offered is None:
            self._offered = nodes_of(self._nodes.objects.values(), self._all_pods.objects.values(), self._id)
        return self._offered

    def refuse_image(self, image: str) -> str | None:
        return refuse(image)

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        if sentence := unsupported(spec):
            verdict = Verdict(cause=Cause.UNKNOWN, summary=sentence, lines=(sentence,), advice=REMEDY)
            return Readiness(standing=ReadinessState.FAILED, message=sentence, remedy=REMEDY, verdict=verdict)
        images = dict.fromkeys(pool.image for pool in spec.pools if not pool.is_empty)
        return together([self._images.readiness(image, job) for image in images])

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self._images.preparing()

    def render(self, launch: Launch) -> Mapping[str, object]:
        return pods.render_pod(launch, self._frame())

    async def launch(self, launch: Launch) -> Handle:
        key, job = launch.key, launch.key.name.job
        if not pods.is_safe(job):
            raise Invalid((Violation("job", f"'{job}' cannot be part of the name of a pod."),))
        async with self._lock(str(key.name)):
            run = self._runs.get(job, {}).get(key)
            if run is None or run.observation is None:
                run = run or PodRun(key, str(run_folder(self._jobs_folder, key)), "")
                self._runs.setdefault(job, {})[key] = run
                try:
                    await self._end_earlier_runs(key)
                    await self._create(run, launch)
                except ApiFault as fault:
                    raise fault.as_unavailable(f"The pod of {key} cannot be created") from fault
                except OSError as error:
                    raise Unavailable(f"No place could be made for {key}: {error}.") from error
            if run.gang == 1:
                await self._supervisor.begun(run, _PATIENCE)
            return run.handle

    async def observe(self, job: str) -> tuple[Observation, ...]:
        runs = self._runs.get(job)
        return tuple(run.observation for run in runs.values() if run.observation is not None) if runs else ()

    async def stop(self, key: RunKey, *, force: bool) -> None:
        run = self._runs.get(key.name.job, {}).get(key)
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
            runs = list(self._runs.get(job, {}).values())
            alive = [run for run in runs if run.observation is not None and not run.gone.is_set()]
            await asyncio.gather(*(self.stop(run.key, force=True) for run in alive))
            if left := [str(run.key) for run in alive if not run.gone.is_set()]:
                raise Unavailable(f"Pods of {', '.join(left)} do not end although they were killed.")
            try:
                await self._take_away_objects(job, [run.pod for run in runs if run.pod])
            except ApiFault as fault:
                raise fault.as_unavailable(f"The objects of job {job} cannot be removed") from fault
            await asyncio.to_thread(remove_job_folder, self._jobs_folder / job, self._trash)
            self._runs.pop(job, None)
            self._tokens.pop(job, None)

    async def jobs(self) -> frozenset[str]:
        return frozenset(self._runs)

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        return name_by_task(admission)

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    # Starting

    async def _create(self, run: PodRun, launch: Launch) -> None:
        """Every step can be repeated: what is there already is left as it is."""
        job = run.key.name.job
        run.pod, run.holds = pods.pod_name(self._id, run.key), launch.held
        run.gang, run.memory = max(len(launch.peers), 1), memory_limit(launch.placement, launch.room)
        output = self._files.output(run.key.name)
        await asyncio.to_thread(run.prepare, output)
        token = self._token(job)
        values = {"token": token, **pods.secret_values(launch)}
        if not await self._make("secrets", pods.render_secret(self._id, job, values)) and len(values) > 1:
            name = pods.job_object(self._id, job)
            await self._api.patch("secrets", name, {"stringData": values})
        await self._make("services", pods.render_service(self._id, job))
        run.note = unfound_names(launch)
        node = launch.placement.node
        anywhere = not takes_pods(self._nodes.objects.get(node) or {}) or self._is_node_silent(node)
        if anywhere:
            task = run.key.name.task
            moved = f"Node {node} takes no pods any more, so Kubernetes chooses another for {task}."
            run.note = f"{run.note} {moved}".strip()
        run.mark("created")
        try:
            await self._make("pods", pods.render_pod(launch, self._frame(), anywhere=anywhere))
        except ApiFault as fault:
            if not fault.passing:  # else it may have been created
                run.unmark("created")
            raise
        run.state = state_of(self._pods.objects.get(run.pod) or await self._api.get("pods", run.pod))
        self._supervisor.supervise(run, token, may_have_begun=run.gang == 1)

    async def _make(self, kind: str, body: Object) -> bool:
        """Create it; False where it is there already."""
        try:
            await self._api.create(kind, body)
        except ApiFault as fault:
            if not fault.is_there_already:
                raise
            return False
        return True

    async def _end_earlier_runs(self, key: RunKey) -> None:
        for run in others_at_its_place(self._runs[key.name.job].values(), key):
            if run.observation is not None and not run.gone.is_set():
                await self.stop(run.key, force=True)
                if not run.gone.is_set():
                    raise Unavailable(
                        f"Run {run.key} is still alive although it was killed: {key} has to wait."
                    )

    def _frame(self) -> PodFrame:
        return PodFrame(
            home=self._id,
            init=self._images.init,
            namespace=self._api.namespace,
        )

    def _attempt(self, name: ReplicaName) -> Iterable[PodRun]:
        runs = self._runs.get(name.job, {}).values()
        return [run for run in runs if run.key.name.attempt == name.attempt]

    def _is_node_silent(self, node: str) -> bool:
        return self._node_watch.is_silent(node)

    # Beginning

    def _open(self) -> list[tuple[str, list[PodRun]]]:
        for folder in (self._home, self._jobs_folder, self._trash, self._home / "bin"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(self._trash, ignore_errors=True)
        self._trash.mkdir(mode=0o700, exist_ok=True)
        self._id = made_once(self._home / "id", lambda: os.urandom(4).hex())
        program = compiled(_INIT, self._home / "bin", kinds=(("-static", "-s"),))
        if program is None:
            raise Unavailable("The init of pods cannot be compiled here: it needs the C compiler 'cc'.")
        self._init = program
        return list(find_runs(self._jobs_folder, reload_run))

    async def _bring_init(self) -> None:
        body = pods.render_init(self._id, await asyncio.to_thread(self._init.read_bytes))
        await self._make("configmaps", body)
        self._images.init = str(body["metadata"]["name"])

    async def _see_other_pods(self) -> None:
        """Without that right, nodes seem empty but for our own pods, and Kubernetes makes pods wait."""
        try:
            await self._all_pods.start()
        except ApiFault as fault:
            if fault.status != _FORBIDDEN:
                raise
            log.warning(
                "pods of other namespaces cannot be seen, so what is free is guessed: %s", fault.message
            )

    def _find_again(self, run: PodRun, token: str) -> None:
        if run.gone.is_set() or not run.pod:
            return
        pod = self._pods.objects.get(run.pod)
        if pod is None and not Path(run.folder, "created").exists():
            return  # never created: it is launched again
        run.state = None if pod is None else state_of(pod)
        self._supervisor.supervise(run, token, may_have_begun=True)

    async def _take_away_orphans(self) -> None:
        """What is left of jobs that were removed while the cluster was away, and pods that only pulled."""
        for item in list(self._pods.objects.values()):
            job, name = item["metadata"]["labels"].get(pods.JOB), item["metadata"]["name"]
            with contextlib.suppress(ApiFault):
                if job is None:
                    await self._api.delete("pods", name, grace=0)
                elif job not in self._runs:
                    await self._take_away_objects(job, [name])

    def _token(self, job: str) -> str:
        if job not in self._tokens:
            (self._jobs_folder / job).mkdir(mode=0o700, exist_ok=True)
            self._tokens[job] = made_once(self._jobs_folder / job / "token", lambda: secrets.token_hex(32))
        return self._tokens[job]

    # Ending

    async def _take_away_objects(self, job: str, names: Iterable[str]) -> None:
        await asyncio.gather(*(take_away(self._api, name) for name in names))
        name = pods.job_object(self._id, job)
        await self._api.delete("services", name)
        await self._api.delete("secrets", name)

    def _pod_changed(self, item: Object, is_gone: bool) -> None:
        self._supervisor.pod_changed(item, is_gone)
        self._images.pod_changed(item, is_gone)

    def _node_changed(self, item: Object, is_gone: bool) -> None:
        self._offered = None
        self._images.node_changed(item, is_gone)

    def _any_pod_changed(self, item: Object, is_gone: bool) -> None:
        self._offered = None

    def _hint(self, job: str) -> None:
        for hint in self._hints:
            hint(job)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

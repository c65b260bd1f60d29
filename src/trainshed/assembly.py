"""The composition root: the only file, with backing.py, that names an adapter. Puts a server together.

It may assume settings that have been checked. It starts nothing: `Assembly.open` does, and `close` ends it.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

from trainshed import __version__
from trainshed.api.code import CodeHandlers
from trainshed.api.custom_jobs import CustomJobHandlers
from trainshed.api.google_tokens import GoogleTokens
from trainshed.api.health import HealthHandlers
from trainshed.api.images import ImageHandlers
from trainshed.api.legacy_jobs import LegacyJobHandlers
from trainshed.api.log_entries import LogHandlers
from trainshed.api.methods import Handlers
from trainshed.api.metrics import MetricHandlers
from trainshed.api.models import ModelHandlers
from trainshed.api.output import OutputOfJobs
from trainshed.api.runtimes import RuntimeHandlers
from trainshed.api.shells import ShellHandlers
from trainshed.api.stacks import StackHandlers
from trainshed.api.storage_table import StorageHandlers
from trainshed.api.training_pipelines import PipelineHandlers
from trainshed.api.watch import WatchOfJobs
from trainshed.api.why import WhyHandlers
from trainshed.backing import MachineBackends, keep_machine, keep_runtimes
from trainshed.buckets.store import DiskBuckets
from trainshed.caching import Caching, keep_caches
from trainshed.catalogue import load_catalogue
from trainshed.clock import SteadyClock
from trainshed.code.store import DiskCodeStore
from trainshed.console import file as console_file
from trainshed.control.janitor import Janitor
from trainshed.control.jobs import JobLoop
from trainshed.control.lifecycle import LifecycleSweeper
from trainshed.control.outputs import Outputs
from trainshed.control.queue import WorkQueue
from trainshed.control.scheduler import Scheduler
from trainshed.control.sweeper import Sweeper
from trainshed.core.admit import is_waiting
from trainshed.core.bucket_port import Buckets
from trainshed.core.fleet import Fit
from trainshed.core.names import ReplicaName
from trainshed.core.replica import Phase
from trainshed.identity.job_token import SignedJobTokens
from trainshed.logs.size import printed
from trainshed.logs.store import FileLogStore
from trainshed.measuring import Measuring, measure
from trainshed.metrics.store import FileMetricStore
from trainshed.runtimes.venvs import VenvRuntimes
from trainshed.service.access import AccessService
from trainshed.service.code import CodeService
from trainshed.service.hints import JobHints
from trainshed.service.images import ImageService
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.jobs import JobService
from trainshed.service.legacy import LegacyJobService
from trainshed.service.logs import LogService
from trainshed.service.metrics import MetricService
from trainshed.service.pipelines import ModelService, PipelineService
from trainshed.service.results_check import ResultsCheck
from trainshed.service.runtimes import RuntimeService
from trainshed.service.shells import ShellService
from trainshed.service.shortage import Shortage
from trainshed.service.stacks import StackService
from trainshed.service.storage import StorageService
from trainshed.service.why import WhyService
from trainshed.settings import Settings
from trainshed.store.sql import SqlStore
from trainshed.verdict_rules import load_rules
from trainshed.wire.pool import Offer

SOON = 0.02  # seconds until a job that comes to a queue is looked at
TICK = 10.0  # seconds between looks at everything that is not over: hints may be lost, ticks are not


@dataclass(slots=True)
class Assembly:
    """All parts, put together; `open` brings them up, `close` takes them down. Replicas outlive it."""

    settings: Settings
    store: SqlStore
    backend: MachineBackends
    logs: FileLogStore
    code: DiskCodeStore
    jobs: JobService
    scheduler: Scheduler
    job_queue: WorkQueue
    schedule_queue: WorkQueue
    tidying: WorkQueue
    handlers: Handlers
    measuring: Measuring
    runtimes: VenvRuntimes
    buckets: Buckets
    access: AccessService
    outputs: Outputs
    caching: Caching

    async def open(self) -> None:
        await self.store.start()
        await self.logs.start()
        await self.code.start()
        await self.measuring.store.start()
        await self.runtimes.start()
        await self.buckets.start()
        await self.backend.start()
        active = await self.store.active()
        for job in active:
            for replica in job.status.replicas:
                if replica.phase in (Phase.RUNNING, Phase.MISSING):
                    name = ReplicaName(job.id, job.status.attempt, replica.pool, replica.index)
                    stdout = self.logs.sink(name).stdout
                    self.measuring.collector.watch(job.key(replica), stdout, begun=False)
        self.outputs.begin(active)
        for job in self.scheduler.backlog.admitted.keys() | await self.backend.jobs():
            self.job_queue.hint(job)
        for job in active:
            if is_waiting(job) and job.spec.scheduling.max_wait is not None:
                self.job_queue.at(job.id, job.created_at + job.spec.scheduling.max_wait)
        self.schedule_queue.hint("cycle")
        for chore in ("look", "code", "lifecycle"):
            self.tidying.hint(chore)
        await self.caching.open()
        self.measuring.begin()

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            for job in list(self.scheduler.backlog.admitted):
                self.job_queue.hint(job)
            self.schedule_queue.hint("cycle")  # at all those that wait

    async def close(self) -> None:
        await self.measuring.close()
        await self.outputs.close()
        await self.buckets.close()
        await self.code.close()  # before the queues: it ends what a launch may be waiting for
        await self.tidying.close()
        await self.caching.close()
        await self.schedule_queue.close()
        await self.job_queue.close()
        await self.runtimes.close()
        await self.backend.close()
        await self.logs.close()
        await self.store.close()


def assemble(settings: Settings) -> Assembly:
    home = settings.home
    clock = SteadyClock(home / "clock.json")
    store = SqlStore(settings.database or f"sqlite:///{home / 'trainshed.db'}")
    code = DiskCodeStore(home / "code", clock)
    notifier, (storage, access) = JobNotifier(), keep_buckets(settings, store, clock)
    runtimes = keep_runtimes(settings, store, storage)
    backend = keep_machine(settings, code, runtimes, storage.buckets)
    logs = keep_logs(settings, lambda job, size: _later(job_loop.note_drop(job, size)))
    job_queue, schedule_queue, tidying = WorkQueue(clock), WorkQueue(clock), WorkQueue(clock)
    metrics, size_of = FileMetricStore(home / "metrics"), functools.partial(printed, home / "logs")
    outputs = keep_outputs(store, backend, storage.buckets, clock, job_queue.hint)
    measuring = measure(metrics, store, backend, clock, size_of, notifier.ring, job_queue.hint)

    def hint_scheduler() -> None:
        schedule_queue.hint("cycle")

    def hint_submitted() -> None:
        schedule_queue.within("cycle", SOON) if scheduler.is_full else hint_scheduler()

    job_loop = JobLoop(
        store=store,
        backend=backend,
        logs=logs,
        clock=clock,
        ring=notifier.ring,
        hint_scheduler=lambda job: scheduler.look_at(job),  # noqa: PLW0108 - made below
        rules=load_rules,
        collector=measuring.collector,
        freeing=lambda job: scheduler.freeing(job),  # noqa: PLW0108 - made below
        equip=access.equip,
        outputs=outputs,
    )
    scheduler = schedule(settings, store, backend, clock, notifier, hint_scheduler, job_queue)
    caching = keep_caches(settings, store, backend, clock)
    scheduler.cached = caching.keeper.matched
    job_queue.serve(job_loop.turn)
    schedule_queue.serve(scheduler.cycle)
    chores = {"look": Janitor(store, logs, job_queue.hint).look, "code": Sweeper(store, code, clock).look}
    chores["lifecycle"] = LifecycleSweeper(storage.buckets, clock).look
    storage.on_rules = lambda: tidying.hint("lifecycle")
    tidying.serve(lambda chore: chores[chore](chore))
    backend.on_change(job_queue.hint)
    jobs = JobService(
        store=store,
        clock=clock,
        notifier=notifier,
        hint_job=job_queue.hint,
        hint_scheduler=hint_submitted,
        waiting_reason=scheduler.reason,
        code=CodeService(code),
        default_output=settings.default_output,
        landing=ResultsCheck(storage.buckets),
        shortage=Shortage(backend, scheduler.fit),
    )
    runtime_desk, models = (
        RuntimeService(store, runtimes, backend.processes.warmth),
        ModelService(store, clock),
    )
    desks = PeopleServices(
        CodeService(code),
        measuring.where,
        runtime_desk,
        storage,
        models,
        access,
        caching,
        tell_commits(store),
    )
    handlers = answer(jobs, LogService(store, logs, notifier), backend, scheduler, measuring.service, desks)
    queues = (job_queue, schedule_queue, tidying)
    rest = (*queues, handlers, measuring, runtimes, storage.buckets, access, outputs, caching)
    return Assembly(settings, store, backend, logs, code, jobs, scheduler, *rest)


def tell_commits(store: SqlStore) -> JobHints:
    """Hints for whoever listens, made of what the store commits."""
    hints = JobHints()
    store.on_commit(hints.tell)
    return hints


def keep_logs(settings: Settings, on_drop: Callable[[str, int], None]) -> FileLogStore:
    return FileLogStore(settings.home / "logs", quota=settings.log_quota, on_drop=on_drop)


def keep_buckets(
    settings: Settings, store: SqlStore, clock: SteadyClock
) -> tuple[StorageService, AccessService]:
    """Where objects lie, and what jobs may do with them."""
    home = settings.home
    buckets, told = route_buckets(settings, DiskBuckets(home / "buckets", clock), clock)
    storage = StorageService(buckets, clock)
    access = AccessService(SignedJobTokens(home / "job-secret"), store, buckets, clock)
    access.granted, access.shown, access.beyond = told.granted, told.shown, told.beyond
    return storage, access


@dataclass(frozen=True, slots=True)
class RemoteBucketGrants:
    """What the settings tell jobs of buckets kept elsewhere."""

    granted: Callable[[str], Mapping[str, str]] = lambda _: {}  # variables for the jobs of a project
    shown: Callable[[str], Mapping[str, str]] = lambda _: {}  # ... for people to read
    beyond: frozenset[int] = frozenset()  # ports of this machine's loopback that are among them


def route_buckets(settings: Settings, own: Buckets, clock: SteadyClock) -> tuple[Buckets, RemoteBucketGrants]:
    """With those kept elsewhere, and what the settings tell jobs about them."""
    if settings.buckets is None and not settings.s3:
        return own, RemoteBucketGrants()
    from trainshed.backends.container.loopback import loopback_ports
    from trainshed.buckets.remote.beside import with_store
    from trainshed.buckets.remote.rows import load_rows as load_bucket_rows
    from trainshed.buckets.remote.store import RemoteBuckets
    from trainshed.buckets.router import RoutedBuckets
    from trainshed.buckets.seaweed import Seaweed

    rows, seaweed = load_bucket_rows(settings.buckets), None
    if settings.s3:
        seaweed = Seaweed(settings.home / "s3", settings.s3_buckets)
        rows = with_store(seaweed, rows)
    remote = RemoteBuckets(rows.remotes, settings.home / "spool", clock)
    told = RemoteBucketGrants(rows.granted, rows.shown, loopback_ports(rows.addresses()))
    return RoutedBuckets(own, remote, remote.names, seaweed), told


def keep_outputs(
    store: SqlStore,
    backend: MachineBackends,
    buckets: Buckets,
    clock: SteadyClock,
    hint: Callable[[str], None],
) -> Outputs:
    """What programs write below /gcs, on its way into buckets."""
    return Outputs(
        store=store,
        backend=backend,
        views=backend.views,
        buckets=buckets,
        clock=clock,
        queue=WorkQueue(clock),
        hint_job=hint,
    )


def schedule(
    settings: Settings,
    store: SqlStore,
    backend: MachineBackends,
    clock: SteadyClock,
    notifier: JobNotifier,
    hint: Callable[[], None],
    job_queue: WorkQueue,
) -> Scheduler:
    return Scheduler(
        store=store,
        backend=backend,
        clock=clock,
        fit=Fit(settings.fit),
        ring=notifier.ring,
        hint=hint,
        hint_job=job_queue.hint,
    )


@dataclass(frozen=True, slots=True)
class PeopleServices:
    """The smaller things people may do."""

    code: CodeService
    where: StackService
    runtimes: RuntimeService
    storage: StorageService
    models: ModelService
    access: AccessService
    caching: Caching
    hints: JobHints


def answer(
    jobs: JobService,
    logs: LogService,
    backend: MachineBackends,
    scheduler: Scheduler,
    metrics: MetricService,
    desks: PeopleServices,
) -> Handlers:
    """What people may do, put behind the methods of the API."""
    offer = Offer(
        catalogue=load_catalogue(), refuse_image=backend.refuse_image, refuse_together=backend.refuse_together
    )
    why = WhyService(
        jobs.store,
        backend,
        jobs.clock,
        scheduler.fit,
        offer.catalogue,
        landing=jobs.landing,
        is_unready=scheduler.is_unready,
    )
    return Handlers(
        custom_jobs=CustomJobHandlers(
            jobs, logs, offer, jobs.clock, metrics.board.progress, desks.access.told
        ),
        log_entries=LogHandlers(logs=logs, clock=jobs.clock),
        output=OutputOfJobs(jobs, logs, jobs.clock),
        watch=WatchOfJobs(jobs, desks.hints),
        health=HealthHandlers(version=__version__),
        why=WhyHandlers(why, offer),
        metrics=MetricHandlers(jobs, metrics, __version__, time.time()),
        stacks=StackHandlers(desks.where),
        shells=offer_shells(jobs, backend),
        code=CodeHandlers(desks.code),
        runtimes=RuntimeHandlers(desks.runtimes),
        legacy=LegacyJobHandlers(LegacyJobService(jobs, desks.storage.buckets), offer),
        storage=StorageHandlers.of(desks.storage),
        pipelines=PipelineHandlers(PipelineService(jobs), offer),
        models=ModelHandlers(desks.models),
        manifests=desks.caching.manifests(jobs, offer),
        caches=desks.caching.caches(),
        tokens=GoogleTokens(desks.access),
        images=ImageHandlers(ImageService(jobs.store, backend.shelf, desks.caching.kept)),
    )


def offer_shells(jobs: JobService, backend: MachineBackends) -> ShellHandlers:
    shells = backend if backend.capabilities.shells else None
    return ShellHandlers(ShellService(jobs.store, shells, jobs.clock), console_file)


_LATER: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references


def _later(work: Coroutine[None, None, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _LATER.add(task)
    task.add_done_callback(_LATER.discard)

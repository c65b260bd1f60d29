"""The composition root: the only file that names an adapter. Starts everything, serves, ends in order."""

import asyncio
import contextlib
import functools
import json
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from trainshed import __version__
from trainshed.api.app import make_app
from trainshed.api.code import Folders
from trainshed.api.custom_jobs import CustomJobs
from trainshed.api.health import Health
from trainshed.api.log_entries import LogEntries
from trainshed.api.methods import Handlers, methods
from trainshed.api.metrics import MetricsOfJobs
from trainshed.api.runtimes import RuntimesOfServer
from trainshed.api.stacks import StacksOfJobs
from trainshed.api.why import Explanations
from trainshed.backends.process.backend import ProcessBackend
from trainshed.catalogue import load_catalogue
from trainshed.clock import SteadyClock
from trainshed.code.store import DiskCodeStore
from trainshed.control.janitor import Janitor
from trainshed.control.jobs import JobLoop
from trainshed.control.queue import WorkQueue
from trainshed.control.scheduler import Scheduler
from trainshed.control.sweeper import Sweeper
from trainshed.core.errors import TrainshedError
from trainshed.core.event import Reason
from trainshed.core.fleet import Fit
from trainshed.core.job import JobSpec
from trainshed.core.names import ReplicaName
from trainshed.core.replica import Exit, Phase
from trainshed.core.verdict import Evidence, Verdict, judge
from trainshed.identity.open import OpenDoor
from trainshed.identity.origin import foreign_request
from trainshed.identity.token import TokenFile
from trainshed.logs.size import printed
from trainshed.logs.store import FileLogStore
from trainshed.measuring import Measuring, measure
from trainshed.metrics.store import FileMetricStore
from trainshed.runtimes.rows import load_rows
from trainshed.runtimes.venvs import Limits, VenvRuntimes
from trainshed.service.bell import Bell
from trainshed.service.code import Code
from trainshed.service.jobs import Jobs
from trainshed.service.logs import Logs
from trainshed.service.metrics import Metrics
from trainshed.service.runtimes import RuntimeDesk
from trainshed.service.stacks import Whereabouts
from trainshed.service.why import Why
from trainshed.settings import Settings, SettingsError
from trainshed.store.sql import SqlStore
from trainshed.verdict_rules import load_rules
from trainshed.wire.pool import Offer

log = logging.getLogger("trainshed")

SOON = 0.02  # seconds until a job that comes to a queue is looked at
TICK = 10.0  # seconds between looks at everything that is not over: hints may be lost, ticks are not


@dataclass(slots=True)
class Shed:
    """All parts, put together; `open` brings them up, `close` takes them down. Replicas outlive it."""

    settings: Settings
    store: SqlStore
    backend: ProcessBackend
    logs: FileLogStore
    code: DiskCodeStore
    jobs: Jobs
    scheduler: Scheduler
    job_queue: WorkQueue
    schedule_queue: WorkQueue
    tidying: WorkQueue
    handlers: Handlers
    measuring: Measuring
    runtimes: VenvRuntimes

    async def open(self) -> None:
        await self.store.start()
        await self.logs.start()
        await self.code.start()
        await self.measuring.store.start()
        await self.runtimes.start()
        await self.backend.start()
        active = await self.store.active()
        for job in active:
            for replica in job.status.replicas:
                if replica.phase in (Phase.RUNNING, Phase.MISSING):
                    name = ReplicaName(job.id, job.status.attempt, replica.pool, replica.index)
                    stdout = self.logs.sink(name).stdout
                    self.measuring.collector.watch(job.key(replica), stdout, begun=False)
        for job in {j.id for j in active} | await self.backend.jobs():
            self.job_queue.hint(job)
        self.schedule_queue.hint("cycle")
        for chore in ("look", "code"):
            self.tidying.hint(chore)
        self.measuring.begin()

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            for job in await self.store.active():
                self.job_queue.hint(job.id)
            self.schedule_queue.hint("cycle")

    async def close(self) -> None:
        await self.measuring.close()
        await self.code.close()  # before the queues: it ends what a launch may be waiting for
        await self.tidying.close()
        await self.schedule_queue.close()
        await self.job_queue.close()
        await self.runtimes.close()
        await self.backend.close()
        await self.logs.close()
        await self.store.close()


def assemble(settings: Settings) -> Shed:
    home = settings.home
    clock = SteadyClock(home / "clock.json")
    store = SqlStore(settings.database or f"sqlite:///{home / 'trainshed.db'}")
    code = DiskCodeStore(home / "code", clock)
    runtimes = keep_runtimes(settings, store)
    backend = ProcessBackend(
        home / "run", cpus=settings.cpus, memory=settings.memory, code=code, runtimes=runtimes
    )
    backend.keep_warm(settings.warm)
    logs = FileLogStore(
        home / "logs",
        quota=settings.log_quota,
        on_drop=lambda job, size: _later(job_loop.note_drop(job, size)),
    )
    bell = Bell()
    job_queue, schedule_queue, tidying = WorkQueue(clock), WorkQueue(clock), WorkQueue(clock)
    metrics, size_of = FileMetricStore(home / "metrics"), functools.partial(printed, home / "logs")
    measuring = measure(metrics, store, backend, clock, size_of, bell.ring, job_queue.hint)

    def hint_scheduler() -> None:
        schedule_queue.hint("cycle")

    def hint_submitted() -> None:
        schedule_queue.within("cycle", SOON) if scheduler.is_full else hint_scheduler()

    job_loop = JobLoop(
        store=store,
        backend=backend,
        logs=logs,
        clock=clock,
        ring=bell.ring,
        hint_scheduler=hint_scheduler,
        rules=load_rules,
        collector=measuring.collector,
        freeing=lambda job: scheduler.freeing(job),  # noqa: PLW0108 - made below
    )
    scheduler = schedule(settings, store, backend, clock, bell, hint_scheduler, job_queue)
    job_queue.serve(job_loop.turn)
    schedule_queue.serve(scheduler.cycle)
    chores = {"look": Janitor(store, logs, job_queue.hint).look, "code": Sweeper(store, code, clock).look}
    tidying.serve(lambda chore: chores[chore](chore))
    backend.on_change(job_queue.hint)
    jobs = Jobs(
        store=store,
        clock=clock,
        bell=bell,
        hint_job=job_queue.hint,
        hint_scheduler=hint_submitted,
        waiting_reason=scheduler.reason,
        code=Code(code),
    )
    readable = Logs(store=store, lines=logs, bell=bell)
    offer = Offer(catalogue=load_catalogue(), refuse_image=backend.refuse_image)
    why = Why(store, backend, clock, scheduler.fit, offer.catalogue)
    desks = Desks(Code(code), measuring.where, RuntimeDesk(store, runtimes, backend.warmth))
    handlers = answer(jobs, readable, why, offer, measuring.service, desks)
    queues = (job_queue, schedule_queue, tidying)
    return Shed(settings, store, backend, logs, code, jobs, scheduler, *queues, handlers, measuring, runtimes)


def schedule(
    settings: Settings,
    store: SqlStore,
    backend: ProcessBackend,
    clock: SteadyClock,
    bell: Bell,
    hint: Callable[[], None],
    job_queue: WorkQueue,
) -> Scheduler:
    return Scheduler(
        store=store,
        backend=backend,
        clock=clock,
        fit=Fit(settings.fit),
        ring=bell.ring,
        hint=hint,
        hint_job=job_queue.hint,
    )


@dataclass(frozen=True, slots=True)
class Desks:
    """The smaller things people may do."""

    code: Code
    where: Whereabouts
    runtimes: RuntimeDesk


def answer(jobs: Jobs, logs: Logs, why: Why, offer: Offer, metrics: Metrics, desks: Desks) -> Handlers:
    """What people may do, put behind the methods of the API."""
    return Handlers(
        custom_jobs=CustomJobs(jobs, logs, offer, jobs.clock, metrics.board.progress),
        log_entries=LogEntries(logs=logs, clock=jobs.clock),
        health=Health(version=__version__),
        why=Explanations(why, offer),
        metrics=MetricsOfJobs(jobs, metrics, __version__, time.time()),
        stacks=StacksOfJobs(desks.where),
        code=Folders(desks.code),
        runtimes=RuntimesOfServer(desks.runtimes),
    )


def keep_runtimes(settings: Settings, store: SqlStore) -> VenvRuntimes:
    """The environments jobs run in, and by whom they are wanted."""

    async def wanted() -> list[JobSpec]:
        return [job.spec for job in await store.active()]

    def judged(code: int, lines: tuple[str, ...]) -> Verdict:
        end = Exit(signal=code - 128) if code > 128 else Exit(code=code)
        return judge(Evidence(reason=Reason.PREPARATION_FAILED, exit=end, stderr=lines), load_rules())

    limits = Limits(room=settings.keep_free)
    folder = settings.home / "runtimes"
    return VenvRuntimes(folder, load_rows(settings.runtimes), judge=judged, wanted=wanted, limits=limits)


_LATER: set[asyncio.Task[None]] = set()  # the loop itself keeps only weak references


def _later(work: Coroutine[None, None, None]) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _LATER.add(task)
    task.add_done_callback(_LATER.discard)


async def serve(settings: Settings) -> None:
    authenticator = TokenFile(settings.home / "token") if settings.auth else OpenDoor()
    shed = assemble(settings)
    listener = listen(settings.host, settings.port)
    port = listener.getsockname()[1]
    url = f"http://{'127.0.0.1' if settings.host in ('0.0.0.0', '') else settings.host}:{port}"
    own = frozenset({settings.host, *settings.allowed_hosts})
    app = make_app(
        methods(shed.handlers),
        authenticator,
        lambda host, origin: foreign_request(host, origin, own),
    )
    config = uvicorn.Config(
        app,
        http="httptools",
        lifespan="off",
        ws="none",
        access_log=False,
        proxy_headers=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
    )
    await shed.open()
    server = _Server(config, lambda: announce(settings.home, url))
    ticker = asyncio.create_task(shed.tick())
    try:
        await server.serve(sockets=[listener])
    finally:
        ticker.cancel()
        (settings.home / "server.json").unlink(missing_ok=True)
        await shed.close()


class _Server(uvicorn.Server):
    """Says that it is ready once it is."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stop at a signal, and leave `serve` as from any other call: it is then that all is put away."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that no replica inherits; a restarted server can take its port again at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror}; is a server running already? "
            "Choose another port with --port."
        ) from error
    return listener


def announce(home: Path, url: str) -> None:
    """Tell people, and commands on this machine, where the server is."""
    ready = home / "server.json"
    draft = ready.with_suffix(".new")
    draft.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    draft.replace(ready)
    print(f"Trainshed {__version__} is ready at {url}", flush=True)
    print(f"  state and logs   {home}", flush=True)
    print('  use it           eval "$(trainshed env)"   or   trainshed submit FILE.yaml', flush=True)


def raise_file_limit() -> None:
    """A thousand replicas are a thousand watched processes: take all the file numbers we may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(args: Sequence[str]) -> int:
    raise_file_limit()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        settings = Settings.from_args(args)
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(KeyboardInterrupt):
            _run(settings)
    except (SettingsError, TrainshedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _run(settings: Settings) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(settings))
    else:
        uvloop.run(serve(settings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What runs jobs: processes always, containers where an engine answers, both as one machine.

Nothing of the container backend is imported before a job needs it.
"""

import functools
import os
from dataclasses import dataclass
from typing import Protocol, cast

from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.backends.container.engine_finder import AnsweringEngine, EngineFinder
from trainshed.backends.container.loopback import LoopbackPort
from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.process.backend import ProcessBackend
from trainshed.backends.routed_images import RoutedImages
from trainshed.backends.router import LazyBackend, Router
from trainshed.buckets.view import DiskViewSource
from trainshed.core.errors import NotFound
from trainshed.core.event import Reason
from trainshed.core.image_port import ImageInventory, ImageStore
from trainshed.core.ports import Backend
from trainshed.core.replica import Exit
from trainshed.core.verdict import Evidence, Verdict, judge
from trainshed.core.view import ViewSource
from trainshed.runtimes.packages import PackageFetcher
from trainshed.runtimes.rows import load_rows
from trainshed.runtimes.venvs import RuntimeLimits, VenvRuntimes
from trainshed.service.source import BucketSource
from trainshed.service.view_source import FetchingViewSource
from trainshed.settings import Settings
from trainshed.store.sql import SqlStore
from trainshed.verdict_rules import load_rules


class MachineBackend(Router):
    """Both backends as one, and what only that of containers can do."""

    def __init__(self, processes: Backend, containers: LazyBackend) -> None:
        super().__init__(processes, containers, own="trainshed/")
        self.image_store = RoutedImages(self._image_store)

    async def close(self) -> None:
        if self._other is not None:
            await cast(_WithImages, self._other).images.close()
        await super().close()

    @property
    def images(self) -> ImageInventory | None:
        """The images on this machine; None while no engine was looked for or found."""
        return None if self._other is None else cast(_WithImageInventory, self._other).images

    async def job_of_init(self, pid: int) -> str:
        """The job in whose container this process is the init; empty where there is none."""
        return "" if self._other is None else await cast(_WithInits, self._other).job_of_init(pid)

    async def _image_store(self) -> ImageStore:
        return cast(_WithImages, await self.second()).images


class _ClosableImages(ImageStore, Protocol):
    async def close(self) -> None: ...


class _WithImageInventory(Protocol):
    """The container backend, for the collector of images."""

    @property
    def images(self) -> ImageInventory: ...


class _WithInits(Protocol):
    """A backend whose runs have inits."""

    async def job_of_init(self, pid: int) -> str: ...


class _WithImages(Protocol):
    """A backend whose capabilities name images."""

    @property
    def images(self) -> _ClosableImages: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    machine: MachineBackend
    processes: ProcessBackend
    containers: EngineFinder
    runtimes: VenvRuntimes
    loopback: LoopbackPort  # by which programs in containers reach the server
    google: GoogleRedirect


def make_backends(shared: SharedParts, storage: Storage) -> Backends:
    settings = shared.settings
    views = FetchingViewSource(DiskViewSource(settings.home / "buckets"), storage.buckets)
    runtimes, google = make_runtimes(settings, storage), GoogleRedirect()
    loopback = make_loopback(shared, storage, google)
    processes = make_processes(settings, storage, runtimes, views, google)

    async def make(engine: AnsweringEngine) -> Backend:
        return await start_containers(settings, engine, storage, runtimes, views, loopback)

    containers = EngineFinder(settings.home / "containers", settings.engine, os.environ, make)
    return Backends(
        machine=MachineBackend(processes, containers),
        processes=processes,
        containers=containers,
        runtimes=runtimes,
        loopback=loopback,
        google=google,
    )


def make_loopback(shared: SharedParts, storage: Storage, google: GoogleRedirect) -> LoopbackPort:
    settings, ports = shared.settings, storage.grants.ports
    if settings.engine == "none":
        return LoopbackPort(google=google)
    return LoopbackPort(
        folder=settings.home / "hatch",
        address=shared.address,
        beyond=ports,
        passed=set(ports),
        google=google,
    )


def make_processes(
    settings: Settings, storage: Storage, runtimes: VenvRuntimes, views: ViewSource, google: GoogleRedirect
) -> ProcessBackend:
    processes = ProcessBackend(
        settings.home / "run",
        storage=storage.runs,
        cpus=settings.cpus,
        memory=settings.memory,
        runtimes=runtimes,
    )
    processes.hosts.redirect = google
    processes.keep_warm(settings.warm)
    processes.views.take_from(views)
    return processes


async def start_containers(
    settings: Settings,
    answering: AnsweringEngine,
    storage: Storage,
    runtimes: VenvRuntimes,
    views: ViewSource,
    loopback: LoopbackPort,
) -> Backend:
    """What runs images, started. Imported here: most servers never need it."""
    from trainshed.backends.container.auth import RegistryAuth
    from trainshed.backends.container.backend import ContainerBackend
    from trainshed.backends.container.engine import Engine
    from trainshed.backends.container.image_ledger import ImageLedger
    from trainshed.backends.container.images import EngineImages

    home = settings.home / "containers"
    engine = Engine(answering.socket, answering.api)
    ledger = ImageLedger(home / "images.json")
    images = EngineImages(engine, auth=RegistryAuth(settings.registry_auth), ledger=ledger)
    backend = ContainerBackend(
        home,
        engine,
        images,
        storage=storage.runs,
        size=(settings.cpus, settings.memory),
        subnets=settings.subnets,
        loopback=loopback,
    )
    backend.views.take_from(views)
    backend.derived.take_from(runtimes.supplies())
    try:
        await images.start()
        await backend.start()
    except BaseException:
        await engine.close()
        raise
    return backend


def make_runtimes(settings: Settings, storage: Storage) -> VenvRuntimes:
    """The environments jobs run in, for whom they are kept, and where packages for them come from."""
    return VenvRuntimes(
        settings.home / "runtimes",
        load_rows(settings.runtimes),
        judge=_judge_installation,
        wanted=storage.store.active,
        limits=RuntimeLimits(room=settings.keep_free),
        environ=pip_environ(settings),
        package_fetcher=PackageFetcher(
            source=BucketSource(dict.fromkeys(("gs", "s3", "az"), storage.buckets)),
            project_of=functools.partial(_project_of, storage.store),
        ),
    )


async def _project_of(store: SqlStore, job_id: str) -> str:
    if (job := await store.load(job_id)) is None:
        raise NotFound(f"There is no job {job_id} any more.")
    return job.project


def _judge_installation(code: int, lines: tuple[str, ...]) -> Verdict:
    end = Exit(signal=code - 128) if code > 128 else Exit(code=code)
    return judge(Evidence(reason=Reason.PREPARATION_FAILED, exit=end, stderr=lines), load_rules())


def pip_environ(settings: Settings) -> dict[str, str]:
    """The environment of pip: where it looks for packages, as people have set it."""
    environ = dict(os.environ)
    if settings.wheels is not None:  # as an address: pip takes spaces between several
        environ["PIP_FIND_LINKS"] = f"{settings.wheels.as_uri()} {environ.get('PIP_FIND_LINKS', '')}".strip()
    if settings.offline:
        environ["PIP_NO_INDEX"] = "1"
    return environ

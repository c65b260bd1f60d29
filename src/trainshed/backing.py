"""The backends, put together: processes always, containers where an engine answers, both as one machine.

A part of the composition root with a name of its own: it names adapters, as only that may. Nothing of the
container backend is imported before it is needed.
"""

import os
from typing import Protocol, cast

from trainshed.backends.container.engine_finder import AnsweringEngine, EngineFinder
from trainshed.backends.container.loopback import LoopbackPort
from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.process.backend import ProcessBackend
from trainshed.backends.routed_images import RoutedImages
from trainshed.backends.router import Router
from trainshed.buckets.view import DiskViewSource
from trainshed.core.bucket_port import Buckets
from trainshed.core.code_port import CodeStore
from trainshed.core.errors import NotFound
from trainshed.core.event import Reason
from trainshed.core.image_port import ImageInventory, ImageStore
from trainshed.core.layer_port import Supplies
from trainshed.core.ports import Backend
from trainshed.core.replica import Exit
from trainshed.core.verdict import Evidence, Verdict, judge
from trainshed.core.view import ViewSource
from trainshed.runtimes.packages import PackageFetcher
from trainshed.runtimes.rows import load_rows
from trainshed.runtimes.venvs import RuntimeLimits, VenvRuntimes
from trainshed.service.source import BucketSource
from trainshed.service.storage import StorageService
from trainshed.service.view_source import FetchingViewSource
from trainshed.settings import Settings
from trainshed.store.sql import SqlStore
from trainshed.verdict_rules import load_rules


class MachineBackends(Router):
    """All that runs on this machine."""

    def __init__(self, processes: ProcessBackend, containers: EngineFinder, google: GoogleRedirect) -> None:
        super().__init__(processes, containers, own="trainshed/")
        self.processes, self.containers, self.google = processes, containers, google
        self.shelf = RoutedImages(self._shelf)
        self.hatch = LoopbackPort(
            google=google
        )  # the way from inside containers to the server, once it is known

    async def close(self) -> None:
        if self._other is not None:
            await cast(_WithImages, self._other).images.close()
        await super().close()

    @property
    def images(self) -> ImageInventory | None:
        """What there is of them, where an engine was found already."""
        return None if self._other is None else cast(_WithImageInventory, self._other).images

    async def job_of_init(self, pid: int) -> str:
        """The job in whose container this process is the init; empty where there is none."""
        return "" if self._other is None else await cast(_Boxed, self._other).job_of_init(pid)

    async def _shelf(self) -> ImageStore:
        return cast(_WithImages, await self.second()).images


class _ImagesOfEither(ImageStore, Protocol):
    async def close(self) -> None: ...


class _WithImageInventory(Protocol):
    """The same, as the one sees it who makes room."""

    @property
    def images(self) -> ImageInventory: ...


class _Boxed(Protocol):
    """A backend whose runs have inits."""

    async def job_of_init(self, pid: int) -> str: ...


class _WithImages(Protocol):
    """A backend whose capabilities name images."""

    @property
    def images(self) -> _ImagesOfEither: ...


def keep_machine(
    settings: Settings, code: CodeStore, runtimes: VenvRuntimes, buckets: Buckets
) -> MachineBackends:
    """What runs jobs, as one backend."""
    home = settings.home
    shelf = FetchingViewSource(DiskViewSource(home / "buckets"), buckets)
    google = GoogleRedirect()
    processes = ProcessBackend(
        home / "run", cpus=settings.cpus, memory=settings.memory, code=code, runtimes=runtimes
    )
    processes.hosts.redirect = google
    processes.keep_warm(settings.warm)
    processes.views.take_from(shelf)

    async def make(engine: AnsweringEngine) -> Backend:
        return await begin_containers(settings, engine, code, shelf, machine.hatch, runtimes.supplies())

    machine = MachineBackends(
        processes, EngineFinder(home / "containers", settings.engine, os.environ, make), google
    )
    return machine


async def begin_containers(
    settings: Settings,
    found: AnsweringEngine,
    code: CodeStore,
    shelf: ViewSource,
    hatch: LoopbackPort,
    supplies: Supplies,
) -> Backend:
    """What runs images, started. Imported here: most servers never do."""
    from trainshed.backends.container.auth import RegistryAuth
    from trainshed.backends.container.backend import ContainerBackend
    from trainshed.backends.container.engine import Engine
    from trainshed.backends.container.image_ledger import ImageLedger
    from trainshed.backends.container.images import EngineImages

    engine = Engine(found.socket, found.api)
    ledger = ImageLedger(settings.home / "containers" / "images.json")
    images = EngineImages(engine, auth=RegistryAuth(settings.registry_auth), ledger=ledger)
    backend = ContainerBackend(
        settings.home / "containers",
        engine,
        images,
        size=(settings.cpus, settings.memory),
        code=code,
        subnets=settings.subnets,
        loopback=hatch,
    )
    backend.views.take_from(shelf)
    backend.derived.take_from(supplies)
    try:
        await images.start()
        await backend.start()
    except BaseException:
        await engine.close()
        raise
    return backend


def keep_runtimes(settings: Settings, store: SqlStore, storage: StorageService) -> VenvRuntimes:
    """The environments jobs run in, by whom they are wanted, and where packages for them come from."""

    async def project_of(job: str) -> str:
        if (found := await store.load(job)) is None:
            raise NotFound(f"There is no job {job} any more.")
        return found.project

    def judged(code: int, lines: tuple[str, ...]) -> Verdict:
        end = Exit(signal=code - 128) if code > 128 else Exit(code=code)
        return judge(Evidence(reason=Reason.PREPARATION_FAILED, exit=end, stderr=lines), load_rules())

    limits = RuntimeLimits(room=settings.keep_free)
    return VenvRuntimes(
        settings.home / "runtimes",
        load_rows(settings.runtimes),
        judge=judged,
        wanted=store.active,
        limits=limits,
        environ=pip_environ(settings),
        package_fetcher=PackageFetcher(
            source=BucketSource(dict.fromkeys(("gs", "s3", "az"), storage.buckets)), project_of=project_of
        ),
    )


def pip_environ(settings: Settings) -> dict[str, str]:
    """What pip is started with: where it looks for packages, as people have set it."""
    environ = dict(os.environ)
    if settings.wheels is not None:  # as an address: pip takes spaces between several
        environ["PIP_FIND_LINKS"] = f"{settings.wheels.as_uri()} {environ.get('PIP_FIND_LINKS', '')}".strip()
    if settings.offline:
        environ["PIP_NO_INDEX"] = "1"
    return environ

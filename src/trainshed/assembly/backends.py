"""What runs jobs: processes always, containers where an engine answers, both in one fleet on this machine.

Nothing of the container backend is imported before a job needs it.
"""

import functools
import os
import platform
from dataclasses import dataclass

from trainshed.assembly.pod_template import find_pod_template
from trainshed.assembly.run_as import find_users
from trainshed.assembly.shared import SharedParts
from trainshed.assembly.storage import Storage
from trainshed.backends.cluster.finder import ClusterFinder
from trainshed.backends.container.engine_finder import AnsweringEngine, EngineFinder
from trainshed.backends.fleet import Fleet
from trainshed.backends.fleet_member import LateMember, Member, PresentMember
from trainshed.backends.fleet_sites import Use
from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.backends.machine.node import LocalNode
from trainshed.backends.machine.process_group import ProcessCeiling
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process.backend import ProcessBackend
from trainshed.backends.process.interpreters import Interpreters
from trainshed.buckets.view import DiskViewSource
from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.event import Reason
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.verdict import Evidence, Verdict, judge
from trainshed.core.obstacle import PATIENCE
from trainshed.core.ports import Backend
from trainshed.data.catalogue import load_catalogue
from trainshed.data.verdict_rules import load_rules
from trainshed.runtimes.packages import PackageFetcher
from trainshed.runtimes.rows import load_rows
from trainshed.runtimes.venvs import RuntimeLimits, VenvRuntimes
from trainshed.service.source import BucketSource
from trainshed.service.view_source import FetchingViewSource
from trainshed.settings.table import Settings
from trainshed.settings.values import patience_of
from trainshed.store.sql import SqlStore

THIS_MACHINE, CLUSTER = "this machine", "the cluster"  # sites, as people read them


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    fleet: Fleet
    processes: ProcessBackend
    containers: EngineFinder
    cluster: ClusterFinder | None  # where images run, if it is not None
    runtimes: VenvRuntimes
    loopback: LoopbackPort  # by which programs in containers and pods reach the server
    google: GoogleRedirect


def make_backends(shared: SharedParts, storage: Storage) -> Backends:
    settings = shared.settings
    runtimes, google = make_runtimes(settings, storage), GoogleRedirect()
    loopback = make_loopback(shared, storage, google)
    node = LocalNode(settings.cpus, settings.memory, ProcessCeiling(settings.processes_per_replica))
    runs = RunStorage(
        files=storage.files,
        code=storage.code,
        buckets=FetchingViewSource(DiskViewSource(settings.home / "buckets"), storage.buckets),
        packages=runtimes.supplies(),
    )
    processes = ProcessBackend(
        settings.home / "run",
        node=node,
        interpreters=Interpreters(runtimes=runtimes, warm=settings.warm),
        storage=runs,
        redirect=google,
        run_as=find_users(settings),
    )

    async def make(engine: AnsweringEngine) -> Backend:
        return await start_containers(settings, engine, node, runs, loopback)

    containers = EngineFinder(settings.home / "containers", settings.engine, os.environ, make, node=node)
    here = (
        PresentMember(
            processes, runs_as="as a process of this machine", own_images="trainshed/", site=THIS_MACHINE
        ),
        LateMember(containers, runs_as="in a container", site=THIS_MACHINE),
    )
    cluster = make_cluster(settings, runs, loopback) if settings.kubernetes else None
    return Backends(
        fleet=make_fleet(here, cluster, Use(settings.here)),
        processes=processes,
        containers=containers,
        cluster=cluster,
        runtimes=runtimes,
        loopback=loopback,
        google=google,
    )


def make_fleet(here: tuple[Member, ...], cluster: ClusterFinder | None, use: Use) -> Fleet:
    """This machine and a cluster under one queue; or one of them alone."""
    if cluster is None:
        return Fleet(here, accelerator_of=_accelerator_of)
    there = LateMember(cluster, runs_as="in a pod", site=CLUSTER)
    if use is Use.NONE:
        return Fleet((there,), accelerator_of=_accelerator_of)
    of_cluster = Use.LAST if use is Use.FIRST else Use.FIRST
    return Fleet((*here, there), {THIS_MACHINE: use, CLUSTER: of_cluster}, _accelerator_of)


@functools.cache
def _accelerator_of(device: str) -> str:
    return load_catalogue().accelerator_of(device)


def make_cluster(settings: Settings, storage: RunStorage, loopback: LoopbackPort) -> ClusterFinder:
    """What finds the cluster that runs all jobs. Its client is imported late: most servers have none."""
    home = settings.home / "kubernetes"
    changed = {Reason(word): length for word, length in map(patience_of, settings.give_up)}
    patience = {**PATIENCE, **changed}
    template = find_pod_template(settings.pod_template).for_machine(platform.machine())

    async def make() -> Backend:
        try:
            from trainshed.backends.cluster.api import ClusterApi, find_config
            from trainshed.backends.cluster.backend import ClusterBackend
            from trainshed.backends.cluster.choices import ClusterChoices
            from trainshed.backends.machine.registry_auth import RegistryAuth
        except ImportError as error:
            raise Unavailable(f"{error.name} is missing: install trainshed[kubernetes].") from error
        config = find_config(str(settings.kubeconfig or ""), settings.context)
        backend = ClusterBackend(
            home,
            ClusterApi(config, settings.namespace),
            storage=storage,
            auth=RegistryAuth(settings.registry_auth),
            loopback=loopback,
            choices=ClusterChoices(patience=patience, template=template, queue=settings.kueue_queue),
            accelerator_of=_accelerator_of,
        )
        try:
            await backend.start()
        except BaseException:
            await backend.close()
            raise
        return backend

    return ClusterFinder(home, make)


def make_loopback(shared: SharedParts, storage: Storage, google: GoogleRedirect) -> LoopbackPort:
    settings, ports = shared.settings, storage.grants.ports
    if settings.engine == "none" and not settings.kubernetes:
        return LoopbackPort(google=google)
    return LoopbackPort(
        folder=None if settings.engine == "none" else settings.home / "hatch",
        address=shared.address,
        beyond=ports,
        passed=set(ports),
        google=google,
    )


async def start_containers(
    settings: Settings,
    answering: AnsweringEngine,
    node: LocalNode,
    storage: RunStorage,
    loopback: LoopbackPort,
) -> Backend:
    """What runs images, started. Imported here: most servers never need it."""
    from trainshed.backends.container.backend import ContainerBackend
    from trainshed.backends.container.engine import Engine
    from trainshed.backends.container.image_ledger import ImageLedger
    from trainshed.backends.container.images import EngineImages
    from trainshed.backends.machine.registry_auth import RegistryAuth

    home = settings.home / "containers"
    engine = Engine(answering.socket, answering.api)
    ledger = ImageLedger(home / "images.json")
    images = EngineImages(engine, auth=RegistryAuth(settings.registry_auth), ledger=ledger)
    backend = ContainerBackend(
        home,
        engine,
        images,
        storage=storage,
        node=node,
        subnets=settings.subnets,
        loopback=loopback,
    )
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
        limits=RuntimeLimits(room=settings.keep_free, inward_hosts=settings.inward_hosts),
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

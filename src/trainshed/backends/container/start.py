"""Starts one run: its mounts, its network, its files, its container.

The backend calls it, never for two runs of a replica at once, and only when earlier runs are gone. Every
step can be repeated: a killed server leaves at most a container that was not started, and the next launch
continues there. A record that an init has begun is never started again; the init checks that too.
"""

import asyncio
import contextlib
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.derived_images import DerivedImages
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.limits import JobGroups
from trainshed.backends.container.mount_preparer import MountPreparer
from trainshed.backends.container.network import JobNetwork, Networks
from trainshed.backends.container.render import REMOTE, ContainerFrame, render, without_secrets
from trainshed.backends.container.run import ContainerRun
from trainshed.backends.container.run_mounts import is_root
from trainshed.backends.machine.compiled import compiled
from trainshed.backends.machine.process_group import ProcessCeiling
from trainshed.backends.machine.secret_files import ANYBODY, OWN, secrets_folder, write_secret_files
from trainshed.core.errors import TrainshedError, Unavailable
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.limits import memory_limit
from trainshed.core.jobs.remote_start import with_remote_program
from trainshed.core.ports import RunFiles, Sink
from trainshed.core.supplies.image_port import Images
from trainshed.core.supplies.runtime import RuntimeNeed
from trainshed.disk.regular_file import write_regular

_SOURCE = Path(__file__).with_name("init.c")
_STUBBORN = 12  # refusals: about a minute


def make_init(tools: Path, compiler: str = "cc") -> str:
    """The path of the init: compiled once and static, for any image. Raise Unavailable where it cannot be."""
    try:
        tools.mkdir(mode=0o700, parents=True, exist_ok=True)
        if program := compiled(_SOURCE, tools, compiler):
            return str(program)
    except OSError as error:
        raise Unavailable(f"The init of containers cannot be made: {error}.") from error
    if shutil.which(compiler) is None:
        raise Unavailable(f"Containers need a C compiler once, to make their init: there is no '{compiler}'.")
    raise Unavailable(f"The init of containers cannot be compiled by '{compiler}', or does not run here.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Starter:
    home: str  # its id
    init: str
    podman: bool
    containers: EngineContainers
    networks: Networks
    images: Images
    mount_preparer: MountPreparer
    derived: DerivedImages
    groups: JobGroups
    ceiling: ProcessCeiling
    files: RunFiles

    async def begin(self, run: ContainerRun, launch: Launch, *, shared: bool) -> None:
        """`shared`: other replicas of its attempt are alive. On return the record tells all else."""
        job = run.key.name.job
        image = await self.images.resolve(launch.image, job)
        if launch.packages or launch.requirements:
            image = await self.derived.resolve(need_of(launch), image, job)
        output, report = self.files.output(run.key.name), self.files.report(run.key.name)
        launch, run_mounts = await self.mount_preparer.prepare(
            with_remote_program(launch, REMOTE), image, run.folder, report, shared=shared
        )
        run.note = run_mounts.note
        run.memory = memory_limit(launch.placement, launch.room)
        run.most_processes = self.ceiling.of(launch.placement, launch.room)
        run.group = self.groups.make(job, launch.room)
        net = await self.networks.make(job, len(launch.peers), internal=launch.isolated)
        body = render(launch, image, self.frame(run, launch, net, output), run_mounts)
        written = without_secrets(body, launch.secrets)
        record = run.read()
        try:
            if launch.secret_files and not (record and record.begun):
                mode = OWN if is_root(image.user) else ANYBODY  # the uid of a name is known in the image only
                write_secret_files(run.folder, launch.secret_files, mode=mode)
            if record is None:
                run.holds = launch.held
                run.prepare(written, (output.stdout, output.stderr))
            elif not record.begun:
                run.describe(written)
        except OSError as error:
            raise Unavailable(f"No place could be made for {run.key}: {error}.") from error
        if record is not None and record.begun:
            return
        try:
            await self.containers.create(run.container, body)
            await self.containers.start(run.container)
        except EngineFault as error:
            await self._not_started(run, launch, error, output.stderr, shared=shared)

    def frame(
        self, run: ContainerRun, launch: Launch, net: JobNetwork | None = None, output: Sink | None = None
    ) -> ContainerFrame:
        hosts = {name: net.address(number) for number, name in enumerate(launch.peers)} if net else {}
        pairs = zip(launch.peers, launch.names, strict=True) if net and launch.names else ()
        hosts |= {name: hosts[peer] for peer, names in pairs for name in names if name not in hosts}
        return ContainerFrame(
            home=self.home,
            init=self.init,
            record=run.record,
            secrets=secrets_folder(run.folder),
            podman=self.podman,
            network=self.networks.name(run.key.name.job),
            address=hosts.get(launch.placement.host, ""),
            hosts=hosts,
            processes=self.ceiling.of(launch.placement, launch.room),
            parent=run.group,
            output=output,
        )

    async def _not_started(
        self, run: ContainerRun, launch: Launch, error: EngineFault, stderr: str, *, shared: bool
    ) -> None:
        """The engine refused. Returns if the run began anyway, or never can; else raises Unavailable."""
        run.refusals += 1
        record = run.read()
        if record is not None and record.begun:
            return
        with contextlib.suppress(EngineFault):
            await self.containers.remove(run.container)
        message, stuck = error.stable_message, run.refusals > _STUBBORN
        if error.kind is FaultKind.ADDRESS_TAKEN:
            if shared and stuck:
                return  # a new network would need its living peers to stop: the run is lost
            if not shared:
                with contextlib.suppress(TrainshedError):
                    await self.networks.replace(run.key.name.job)
        elif error.kind is FaultKind.CANNOT_START or (stuck and not error.passing):
            await asyncio.to_thread(_refuse, run, stderr, message)
            return
        self.networks.forget(run.key.name.job)
        self.images.forget(launch.image, run.key.name.job)
        self.derived.forget(need_of(launch), run.key.name.job)
        raise Unavailable(f"The container engine does not start {run.key}: {message}")


def need_of(launch: Launch) -> RuntimeNeed:
    return RuntimeNeed(launch.image, launch.requirements, launch.packages)


def _refuse(run: ContainerRun, stderr: str, message: str) -> None:
    with contextlib.suppress(OSError):
        text = f"trainshed: the container cannot be started: {message}\n"
        write_regular(stderr, text.encode(), os.O_APPEND)
    run.unstarted = f"its container cannot be started: {message}"
    write_regular(f"{run.folder}/unstarted", run.unstarted.encode())
    run.write_end(126, datetime.now(UTC))

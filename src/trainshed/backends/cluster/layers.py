"""Layers: what jobs need on top of an image, installed once by a pod of that image and kept by the server.

The backend asks whether a job's layer is ready, and which folder each pod is brought. A layer is there whole
or not at all: it is fetched beside and renamed. A pod that a killed server left is removed at the next start,
and the layer is made anew. All calls come from one event loop, and the image is on a node already.
"""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.job_objects import take_away
from trainshed.backends.cluster.pod import PodFrame, job_object, pod_name, render_secret
from trainshed.backends.cluster.pod_places import PodPlaces
from trainshed.backends.cluster.pod_state import state_of
from trainshed.backends.cluster.render_layer import LENT, layer_digest, render_installer, title
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.cluster.run_supervisor import PodRunSupervisor
from trainshed.backends.cluster.surroundings import Surroundings
from trainshed.backends.machine.additions import INSTALLER, NOT_FOUND, ONCE, failed, no_installer, no_python
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.core.errors import NotYet, TrainshedError
from trainshed.core.jobs.readiness import (
    READY,
    PreparationKind,
    PreparationProgress,
    Readiness,
    ReadinessState,
)
from trainshed.core.jobs.replica import Exit
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Sink
from trainshed.core.supplies.layer_port import InstallKit, NotInstallable, PipListener, Supplies
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import RuntimeNeed
from trainshed.disk.regular_file import read_regular, write_regular
from trainshed.preparation import Preparation, Preparations

_PROGRAMS = {  # what the pod runs, by its name there
    "layer_installer.py": Path(__file__).with_name("layer_installer.py"),
    "fit.py": INSTALLER,
}
_JOB = "layer-"  # and its digest: the job of a pod that installs
_LOOK = 0.3  # seconds between two looks at what pip prints
_LONGEST = 7200.0  # seconds: an installation that hangs is ended
_MOST_HEARD = 1 << 20  # bytes of output at a look
_BEGUN = 10  # its start is a line of the job's history
_PAUSE = 1.0  # seconds before a cluster that did not answer is asked again
log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, kw_only=True)
class LayerBuild(Preparation):
    need: RuntimeNeed
    packages: tuple[Package, ...]
    digest: str
    listener: PipListener
    heard: dict[str, int] = field(default_factory=dict[str, int])  # bytes of each output of pip
    lines: dict[str, bytes] = field(default_factory=dict[str, bytes])  # of each its last, which has not ended

    @property
    def title(self) -> str:
        return title(self.need)

    def readiness(self) -> Readiness:
        message = f"Installing {title(self.need)}: {self.progress}."
        mark = 0 if self.begun is None else _BEGUN
        return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=ONCE, mark=mark)

    def hear(self, output: Sink) -> None:
        for path in (output.stdout, output.stderr):
            with contextlib.suppress(FileNotFoundError):
                piece = read_regular(path, _MOST_HEARD, self.heard.get(path, 0))
                self.heard[path] = self.heard.get(path, 0) + len(piece)
                *lines, rest = (self.lines.get(path, b"") + piece).split(b"\n")
                self.lines[path] = rest[-_MOST_HEARD:]
                for line in lines:
                    self.listener.hear(line.decode(errors="replace"))
        if self.heard:
            self.sentence = self.listener.now


@dataclass(frozen=True, slots=True)
class LayerFiles:
    """Implements RunFiles for pods that install."""

    folder: Path

    def output(self, name: ReplicaName) -> Sink:
        """Inside the draft of its layer, and gone with it."""
        place = self.folder / f"{name.job.removeprefix(_JOB)}.new"
        return Sink(stdout=str(place / "out"), stderr=str(place / "err"))

    def report(self, name: ReplicaName) -> str:
        return ""


class ClusterLayers:
    def __init__(
        self, folder: Path, api: ClusterApi, hint: Callable[[str], None], supplies: Supplies | None
    ) -> None:
        self._folder, self._api, self._supplies = folder, api, supplies
        self._files = LayerFiles(folder)
        self._builds = Preparations[str, LayerBuild](hint)  # by digest
        self._runs: dict[str, PodRun] = {}
        self.supervisor = PodRunSupervisor(
            api,
            self._files,
            lambda _: None,
            Surroundings(
                peers=lambda name: [run for run in self._runs.values() if run.key.name == name],
                is_node_silent=lambda _: False,
                is_drained=lambda _: False,
                read_state=state_of,
            ),
            LoopbackPort(),
        )
        self._frame: Callable[[PodPlaces], PodFrame]

    def open(self, frame: Callable[[PodPlaces], PodFrame]) -> None:
        """Remove what a killed server was making. For threads."""
        self._frame = frame
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.suffix:
                shutil.rmtree(path)

    async def close(self) -> None:
        await self._builds.close()
        await self.supervisor.close()

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        if not need.requirements and not need.packages:
            return READY
        if self._supplies is None:
            return no_installer(title(need))
        packages = self._supplies.of(need.packages, job) if need.packages else ()
        if packages is None:
            return self._supplies.readiness(need.packages, job)
        digest = layer_digest(need.image, packages, need.requirements)
        if (outcome := self._builds.outcome(digest, job)) is not None:
            return outcome
        build = self._builds.going.get(digest)
        if build is None and (self._folder / digest).exists():
            return Readiness(installed=tuple(package.sentence for package in packages))
        if build is None and job:
            build = LayerBuild(need=need, packages=packages, digest=digest, listener=self._supplies.listen())
            supplies = self._supplies
            self._builds.begin(digest, build, lambda build: self._build(build, supplies))
        if build is None:
            message = f"Not here yet: {title(need)}; it is installed first."
            return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=ONCE)
        if job:
            build.jobs.add(job)
        return build.readiness()

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self._builds.under_way(PreparationKind.DERIVED_IMAGE)

    def folder(self, need: RuntimeNeed, job: str) -> str:
        """Of the layer; empty where it needs none. NotYet where it is not there."""
        if not need.requirements and not need.packages:
            return ""
        supplies = self._supplies
        packages = supplies.of(need.packages, job) if supplies is not None and need.packages else ()
        if packages is not None:
            place = self._folder / layer_digest(need.image, packages, need.requirements)
            with contextlib.suppress(FileNotFoundError):
                os.utime(place)  # unused ones are known by that, and removed (layer_inventory.py)
                return str(place)
        raise NotYet(f"It is installed first: {title(need)}.")

    # How it is made

    async def _build(self, build: LayerBuild, supplies: Supplies) -> Readiness | None:
        build.begin("it begins")
        draft = self._folder / f"{build.digest}.new"
        try:
            kit = await supplies.lay_out(build.packages, build.need.requirements, build.jobs, LENT)
            await asyncio.to_thread(_lay_out, draft, kit)
            end = await self._install(build, draft)
            if end == Exit(code=NOT_FOUND):
                return failed(build.title, no_python(build.need.image))
            if end != Exit(code=0):
                return self._failed(build, supplies, 128 + end.signal if end.signal else end.code or 1)
            (draft / "plain").rename(self._folder / build.digest)
            sentences = tuple(package.sentence for package in build.packages)
            return Readiness(installed=(*sentences, f"Installed {build.title} in {build.took:.1f} s."))
        except NotInstallable as error:
            return failed(build.title, error.verdict)
        except ApiFault as fault:
            if not fault.passing:
                return self._failed(build, supplies, 1, fault.message)
            log.debug("%s: %s", build.title, fault.message)
            await asyncio.sleep(_PAUSE)
            return None
        except (OSError, TrainshedError) as error:
            return self._failed(build, supplies, 1, str(error))
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, draft, True))

    def _failed(self, build: LayerBuild, supplies: Supplies, code: int, why: str = "") -> Readiness:
        more = (f"ERROR: {why}",) if why else ()
        verdict = supplies.judge(code, (*build.listener.last_words(), *more))
        log.warning("%s could not be installed: %s", build.title, verdict.summary)
        return failed(build.title, verdict)

    async def _install(self, build: LayerBuild, draft: Path) -> Exit:
        """How the pod that installs ended; what it made is in the draft then."""
        key = RunKey(ReplicaName(f"{_JOB}{build.digest}", 0, 0, 0), 0)
        job, token = key.name.job, secrets.token_hex(32)
        places = PodPlaces(code=str(draft / "kit"), gcs=str(draft / "plain"), waits=True)
        frame = self._frame(places)
        run = PodRun(key, str(draft), pod_name(frame.home, key), places=places)
        try:
            await take_away(self._api, run.pod)
            await self._api.delete("secrets", job_object(frame.home, job))
            await self._api.create("secrets", render_secret(frame.home, job, {"token": token}))
            pod = await self._api.create("pods", render_installer(key, build.need.image, frame))
            run.state = state_of(pod)
            self._runs[run.pod] = run
            self.supervisor.supervise(run, token, may_have_begun=False)
            await self._watch(run, build)
            seen = run.observation
            return seen.exit if seen is not None and seen.exit is not None else Exit(code=1)
        finally:
            self._runs.pop(run.pod, None)
            await asyncio.shield(self._clear(run.pod, job_object(frame.home, job)))

    async def _watch(self, run: PodRun, build: LayerBuild) -> None:
        loop, output = asyncio.get_running_loop(), self._files.output(run.key.name)
        until = loop.time() + _LONGEST
        while not run.gone.is_set():
            await run.pause(_LOOK)
            build.hear(output)
            if not run.record.begun and run.observation is not None and run.observation.obstacle:
                build.sentence = run.observation.obstacle.message.rstrip(".")
            if loop.time() > until:
                build.listener.hear(f"ERROR: it took longer than {_LONGEST / 60:.0f} minutes.")
                await self.supervisor.kill(run)
                return

    async def _clear(self, pod: str, secret: str) -> None:
        try:
            await take_away(self._api, pod)
            await self._api.delete("secrets", secret)
        except ApiFault as fault:  # the next start of the server removes it
            log.debug("%s: %s", pod, fault.message)


def _lay_out(draft: Path, kit: InstallKit) -> None:
    """All that the pod needs, as it finds it."""
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "plain").mkdir(parents=True, mode=0o700)
    inside = draft / "kit"
    inside.mkdir()
    shown: dict[str, str] = {}  # where the pod is to find each, by its place in the kit
    for number, (here, there) in enumerate(kit.shown):
        place = f"shown/{number}"
        shown[place], target = there, inside / place
        target.parent.mkdir(exist_ok=True)
        if Path(here).is_dir():
            shutil.copytree(here, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(here, target)
    for name, source in _PROGRAMS.items():
        shutil.copyfile(source, inside / name)
    write_regular(inside / "plan.json", json.dumps(kit.plan).encode())
    write_regular(inside / "shown.json", json.dumps(shown).encode())

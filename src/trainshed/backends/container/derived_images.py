"""Derived images: a job's image with its packages and requirements on top, built once and kept by the engine.

The container backend asks whether a job's image is ready. A container of the image installs the packages
with the image's own interpreter and is committed (install.py). The engine's tags say which derived images
exist. All calls come from one event loop, and the job's own image is already here. A build that a killed
server left is no image: its container is removed, and the image is built anew.
"""

import asyncio
import contextlib
import functools
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.install import Installation, InstallFailed
from trainshed.backends.container.render_installer import (
    LENT,
    container_name,
    image_name,
    repository,
    title,
)
from trainshed.backends.machine.additions import NOT_FOUND, ONCE, digest_of, failed, no_installer, no_python
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import NotYet, TrainshedError, Unavailable
from trainshed.core.jobs.readiness import (
    READY,
    PreparationKind,
    PreparationProgress,
    Readiness,
    ReadinessState,
)
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.supplies.image import ImageConfig
from trainshed.core.supplies.image_port import Images
from trainshed.core.supplies.layer_port import NotInstallable, PipListener, Supplies
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.runtime import RuntimeNeed
from trainshed.preparation import Preparation, Preparations, remember

_BEGUN = 10  # more than a pull reaches: its start is a line of the job's history
log = logging.getLogger(__name__)

PAUSE = 1.0  # seconds before an engine that did not answer is asked again
_SMALL = 4  # with fewer cores, one build at a time keeps them busy

_Key = tuple[RuntimeNeed, str]  # and the job


class DerivedImageNames:
    def __init__(self, engine: Engine, home: str) -> None:
        self._engine, self._repository = engine, repository(home)
        self._ids: dict[str, str] = {}  # by digest
        self._is_current = False

    def find(self, digest: str) -> str | None:
        return self._ids.get(digest)

    def add(self, digest: str, image: str) -> None:
        self._ids[digest] = image

    def invalidate(self) -> None:
        """Others may have removed some."""
        self._is_current = False

    async def refresh(self) -> None:
        """Ask the engine, unless the list is current."""
        if self._is_current:
            return
        listed: list[dict[str, Any]] = await self._engine.ask("GET", "/images/json") or []
        tags = [(str(tag), str(row["Id"])) for row in listed for tag in row.get("RepoTags") or ()]
        begins = f"{self._repository}:"
        ours = [(tag.removeprefix(begins), image) for tag, image in tags if tag.startswith(begins)]
        self._ids = {digest: f"sha256:{image.removeprefix('sha256:')}" for digest, image in ours}
        self._is_current = True


@dataclass(slots=True, eq=False, kw_only=True)
class ImageBuild(Preparation):
    need: RuntimeNeed
    base: ImageConfig
    packages: tuple[Package, ...]
    digest: str
    listener: PipListener

    def move(self) -> None:
        self.sentence = self.listener.now

    @property
    def title(self) -> str:
        return title(self.need)

    def readiness(self) -> Readiness:
        message = f"Making {title(self.need)}: {self.progress}."
        mark = 0 if self.begun is None else _BEGUN
        return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=ONCE, mark=mark)


def not_built_yet(need: RuntimeNeed) -> Readiness:
    message = f"Not here yet: {title(need)}; it is made first."
    return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=ONCE)


def verdict_of(
    need: RuntimeNeed, failure: InstallFailed, listener: PipListener, supplies: Supplies
) -> Verdict:
    """Why it failed, by pip's last lines where pip ran."""
    if failure.code == NOT_FOUND:
        return no_python(need.image, " (`trainshed images build`)")
    more = (f"ERROR: {failure.why}",) if failure.why else ()
    return supplies.judge(failure.code, (*listener.last_words(), *more))


@dataclass(frozen=True, slots=True)
class ImageBuildTools:
    """What a build needs."""

    engine: Engine
    containers: EngineContainers
    home: str  # its id
    init: str
    memory: int  # bytes an installation may take


class DerivedImages:
    def __init__(
        self,
        folder: Path,
        images: Images,
        loopback: LoopbackPort,
        hint: Callable[[str], None],
        supplies: Supplies | None,
    ) -> None:
        self._folder, self._images = folder, images
        self._loopback, self._hint, self._supplies = loopback, hint, supplies
        self._outcomes: dict[_Key, Readiness] = {}  # the outcome for each job
        self._looking: dict[_Key, ImageBuild | None] = {}  # None: not known yet what to build
        self._builds = Preparations[str, ImageBuild](hint)  # by digest
        self._slots = asyncio.Semaphore(1 if (os.cpu_count() or 1) < _SMALL else 2)
        self._background = BackgroundTasks()
        self._tools: ImageBuildTools
        self._names: DerivedImageNames

    def open(self, tools: ImageBuildTools) -> None:
        self._tools, self._names = tools, DerivedImageNames(tools.engine, tools.home)
        self._clear()

    async def close(self) -> None:
        """Give up running builds."""
        await self._builds.close()
        await self._background.close()

    @property
    def containers(self) -> frozenset[str]:
        """Those of running builds."""
        return frozenset(container_name(self._tools.home, digest) for digest in self._builds.going)

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        """Readiness of what is installed on top of an image that is here."""
        if not need.requirements and not need.packages:
            return READY
        if (result := self._outcomes.get((need, job))) is not None:
            return result
        if self._supplies is None:
            return no_installer(title(need))
        if need.packages and self._supplies.of(need.packages, job) is None:
            return self._supplies.readiness(need.packages, job)
        if job and (need, job) not in self._looking:
            self._looking[need, job] = None
            self._background.run(self._prepare(need, job, self._supplies))
        build = self._looking.get((need, job))
        if build is not None:
            return build.readiness()
        return READY if not job and self._is_here(need) else not_built_yet(need)

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self._builds.under_way(PreparationKind.DERIVED_IMAGE)

    def _is_here(self, need: RuntimeNeed) -> bool:
        """Whether it exists, as far as known without asking the engine."""
        base = None if need.packages else self._images.config(need.image)
        return base is not None and self._names.find(digest_of(base.id, (), need.requirements)) is not None

    async def resolve(self, need: RuntimeNeed, base: ImageConfig, job: str) -> ImageConfig:
        """The derived image, with the base's other settings. Raise NotYet where it does not exist."""
        if not need.requirements and not need.packages:
            return base
        packages = self._supplies.of(need.packages, job) if self._supplies is not None else None
        digest = digest_of(base.id, packages or (), need.requirements)
        image = self._names.find(digest) if packages is not None else None
        if image is None:
            self.forget(need, job)
            raise NotYet(f"It is made first: {title(need)}.")
        self._images.made(image, image_name(self._tools.home, digest))
        return replace(base, id=image)

    def forget(self, need: RuntimeNeed, job: str) -> None:
        """The engine no longer has it: look again when next asked."""
        if self._outcomes.pop((need, job), None) is not None:
            self._names.invalidate()

    # How it is done

    async def _prepare(self, need: RuntimeNeed, job: str, supplies: Supplies) -> None:
        """Find out which image the job needs, and build it where it does not exist."""
        try:
            base = await self._images.resolve(need.image, job)
            packages = supplies.of(need.packages, job) or ()
            digest = digest_of(base.id, packages, need.requirements)
            await self._names.refresh()
            if self._names.find(digest) is not None:
                remember(self._outcomes, (need, job), Readiness(installed=_sentences(packages)))
                return
            build = self._builds.going.get(digest)
            if build is None:
                build = ImageBuild(
                    need=need, base=base, packages=packages, digest=digest, listener=supplies.listen()
                )
                self._builds.begin(digest, build, functools.partial(self._build, supplies))
            build.jobs.add(job)
            self._looking[need, job] = build
            assert build.task is not None
            await asyncio.wait((build.task,))
            if (outcome := self._builds.forget(digest, job)) is not None:
                remember(self._outcomes, (need, job), outcome)
        except TrainshedError as error:  # the engine does not answer: the next call to readiness starts anew
            log.debug("%s: %s", title(need), error.message)
            await asyncio.sleep(PAUSE)
        finally:
            self._looking.pop((need, job), None)
            self._hint(job)

    async def _build(self, supplies: Supplies, build: ImageBuild) -> Readiness | None:
        try:
            if self._slots.locked():
                build.sentence = "it waits for another one to be made"
            async with self._slots:
                build.begin("it begins")
                image = await self._install(build, supplies)
            outcome = f"Made {title(build.need)} ({image[:19]}) in {build.took:.1f} s."
            return Readiness(installed=(*_sentences(build.packages), outcome))
        except NotInstallable as error:
            return _failed(build, error.verdict)
        except InstallFailed as error:
            return _failed(build, verdict_of(build.need, error, build.listener, supplies))
        except Unavailable as error:  # the engine or the image is gone: start anew
            log.debug("%s: %s", title(build.need), error.message)
            for job in build.jobs:
                self._images.forget(build.need.image, job)
            await asyncio.sleep(PAUSE)
            return None
        except (OSError, TrainshedError) as error:
            failure = InstallFailed(1, error.message if isinstance(error, TrainshedError) else str(error))
            return _failed(build, verdict_of(build.need, failure, build.listener, supplies))

    async def _install(self, build: ImageBuild, supplies: Supplies) -> str:
        build.sentence = "looking into its packages" if build.packages else "it begins"
        tools, folder = self._tools, self._folder / build.digest
        installation = Installation(
            engine=tools.engine,
            containers=tools.containers,
            base=build.base,
            name=container_name(tools.home, build.digest),
            folder=folder,
            init=tools.init,
            home=tools.home,
            loopback=self._loopback,
            listener=build.listener,
            memory=tools.memory,
        )
        try:
            kit = await supplies.lay_out(build.packages, build.need.requirements, build.jobs, LENT)
            await installation.run(kit, build.move)
            build.sentence = "keeping it"
            name = image_name(tools.home, build.digest)
            image = await installation.commit(name, build.digest)
            self._names.add(build.digest, image)
            self._images.made(image, name)
            return image
        finally:
            with contextlib.suppress(TrainshedError):
                await asyncio.shield(tools.containers.remove(installation.name))
            await asyncio.to_thread(shutil.rmtree, folder, True)

    def _clear(self) -> None:
        """Remove what a killed server was building."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _failed(build: ImageBuild, verdict: Verdict) -> Readiness:
    log.warning("%s could not be made: %s", title(build.need), verdict.summary)
    return failed(build.title, verdict)


def _sentences(packages: tuple[Package, ...]) -> tuple[str, ...]:
    return tuple(package.sentence for package in packages)

"""Implements core.supplies.runtime_port.Runtimes with virtual environments under the home.

The process backend asks it whether an environment is ready, and people ask it for lists. It knows in memory
which environments are whole, so a ready one costs two look-ups. It alone works on its folder, and all calls
come from one event loop. It never removes an environment that an unfinished job needs.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import PreparationKind, PreparationProgress, Readiness, ReadinessState
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.supplies.package import Package
from trainshed.core.supplies.requirements import normal
from trainshed.core.supplies.runtime import (
    PLAIN,
    Runtime,
    RuntimeNeed,
    RuntimePhase,
    room_to_keep,
    victims,
    with_below,
)
from trainshed.preparation import Preparations, remember
from trainshed.runtimes import interpreters
from trainshed.runtimes.build import Build, BuildFailed
from trainshed.runtimes.environment_build import (
    EnvironmentBuild,
    absent,
    absent_runtime,
    failed,
    is_try_of,
    title,
)
from trainshed.runtimes.folders import PACKAGES, RuntimeFolders
from trainshed.runtimes.outward import Outward
from trainshed.runtimes.packages import Judge, PackageFetcher, Packages
from trainshed.runtimes.recipe import EnvironmentRecipe, Interpreter, layered, recipe_of
from trainshed.runtimes.refusal import PackageRefused
from trainshed.runtimes.rows import RuntimeRow
from trainshed.runtimes.sites import sites_of
from trainshed.runtimes.supplies import ImageSupplies

log = logging.getLogger(__name__)

Wanted = Callable[[], Awaitable[Iterable[Job]]]  # the jobs that are not over

ROOM_PACE = 60.0  # seconds between two looks at the disk
TOUCHED = timedelta(seconds=60)  # a use within that of the last need not be noted

_SMALL = 4  # with fewer cores one build at a time is enough to keep them busy
_Key = tuple[RuntimeNeed, tuple[Package, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLimits:
    room: int | None = None  # bytes of the disk that stay free
    at_once: int | None = None  # builds
    inward_hosts: tuple[str, ...] = ()  # HOST or HOST:PORT inside the network that requirements may name


class VenvRuntimes:
    def __init__(
        self,
        folder: Path,
        rows: tuple[RuntimeRow, ...],
        *,
        judge: Judge,
        wanted: Wanted,
        limits: RuntimeLimits | None = None,
        environ: Mapping[str, str] | None = None,
        package_fetcher: PackageFetcher | None = None,
    ) -> None:
        self._folders = RuntimeFolders(folder.absolute())
        self._rows = rows
        self._judge, self._wanted = judge, wanted
        self._limits = limits or RuntimeLimits()
        self._packages = Packages(
            folder.absolute() / PACKAGES, package_fetcher or PackageFetcher(), judge, self._hint
        )
        self._environ = os.environ if environ is None else environ
        self._outward = Outward(self._environ, self._limits.inward_hosts)
        self._own = interpreters.own()
        self._others: dict[str, Interpreter] | None = None  # None: not looked for yet
        self._looking: asyncio.Task[None] | None = None
        self._known: dict[_Key, EnvironmentRecipe] = {}
        self._kept: dict[str, Runtime] = {
            "": Runtime(id="", name=PLAIN, phase=RuntimePhase.READY, python=self._own.version)
        }
        self._builds = Preparations[str, EnvironmentBuild](self._hint)  # by digest
        self._last: dict[str, Runtime] = {}  # builds that failed, until the next try
        self._unsure: set[str] = set()  # jobs that wait for the interpreters to be looked for
        self._hints: list[Callable[[str], None]] = []
        self._slots = asyncio.Semaphore(self._limits.at_once or (1 if (os.cpu_count() or 1) < _SMALL else 2))
        self._background = BackgroundTasks()

    async def start(self) -> None:
        report = Path(__file__).parents[1] / "report.py"
        try:
            self._kept |= await asyncio.to_thread(self._folders.open, report)
            await asyncio.to_thread(self._packages.open)
        except OSError as error:
            raise Unavailable(f"The folder of runtimes cannot be opened: {error}.") from error
        self._background.run(self._watch_room())

    async def close(self) -> None:
        """Builds are given up; what they left goes at the next start."""
        await self._builds.close()
        await self._background.close()
        await self._packages.close()
        await self._outward.close()

    # What a backend asks

    def refuse(self, image: str) -> str | None:
        if self._find(RuntimeNeed(image)) is not None or (
            self._others is None and interpreters.may_be(image)
        ):
            return None
        version = self._own.version
        if image.partition(":")[0] == PLAIN:
            return (
                f"Image '{image}' cannot run here: the interpreter of this server is Python {version}, "
                f"as image '{PLAIN}:3' or '{PLAIN}:{version}'{self._also()}."
            )
        names = ", ".join(dict.fromkeys(row.name for row in self._rows))
        return (
            f"Image '{image}' cannot run here: this server has the process backend, which runs '{PLAIN}:3' "
            f"(Python {version}), {names} and Google's prebuilt training images; "
            "a container engine (Docker or Podman) is needed for other images."
        )

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        if need.packages and self._packages.of(need.packages, job) is None:
            return self._packages.readiness(need.packages, job)
        recipe, image = self._find(need, job), need.image
        if self._others is None and (recipe is None or recipe.lacks):
            return self._unsure_for(job)
        if recipe is None:
            return failed(image, self._judge(1, (self.refuse(image) or f"There is no runtime for {image}.",)))
        if recipe.digest in self._kept:
            return recipe.ready
        if (failure := self._builds.outcome(recipe.digest, job)) is not None:
            return failure
        build = self._builds.going.get(recipe.digest)
        if build is None:
            if not job:
                return absent(recipe)
            build = self._build(recipe)
        if job:
            build.jobs.add(job)
        return build.readiness()

    def _unsure_for(self, job: str) -> Readiness:
        """Another interpreter may be the right one. They are looked for once, when first one is asked for."""
        if self._looking is None:
            self._looking = self._background.run(self._look_around())
        self._unsure.add(job)
        return Readiness(
            standing=ReadinessState.PREPARING, message="Looking for this machine's interpreters."
        )

    def python(self, need: RuntimeNeed, job: str = "") -> str:
        recipe, image = self._find(need, job), need.image
        if recipe is None or recipe.digest not in self._kept:
            raise Unavailable(f"The runtime for '{image}' is not there yet.")
        if not recipe.digest:
            return self._own.path
        path = self._folders.place(recipe.digest) / "bin" / "python"
        if not path.exists():  # somebody removed it behind our back: it is made again
            del self._kept[recipe.digest]
            raise Unavailable(f"The runtime for '{image}' has been removed; it is made again.")
        self._use(recipe.digest)
        return str(path)

    def warm_imports(self, image: str) -> tuple[str, ...]:
        recipe = self._find(RuntimeNeed(image))
        return recipe.imports if recipe else ()

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return (*self._builds.under_way(PreparationKind.RUNTIME), *self._packages.preparing())

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    def supplies(self) -> ImageSupplies:
        """The same packages, for images."""
        return ImageSupplies(self._packages, self._judge, self._environ)

    # What people ask

    def all(self) -> tuple[Runtime, ...]:
        """Every runtime: those on disk, those being built, those that could be."""
        runtimes = {item.id: item for item in self._kept.values()}
        runtimes |= self._last
        runtimes |= {digest: build.runtime() for digest, build in self._builds.going.items()}
        for row in self._rows:
            recipe = self._find(RuntimeNeed(f"{row.name}:{row.version}" if row.version else row.name))
            if recipe is not None and recipe.digest not in runtimes:
                runtimes[recipe.digest] = absent_runtime(recipe)
        return tuple(sorted(runtimes.values(), key=lambda item: (item.name, item.requirements, item.id)))

    def get(self, identity: str) -> Runtime:
        for item in self.all():
            if item.id == identity:
                return item
        raise NotFound(f"There is no runtime {identity or PLAIN}.")

    def begin(self, image: str, requirements: tuple[str, ...]) -> Runtime:
        """Build it where it is not there; it is not made again where it is."""
        recipe = self._find(RuntimeNeed(image, requirements))
        if recipe is None:
            raise NotFound(self.refuse(image))
        if recipe.digest not in self._kept and recipe.digest not in self._builds.going:
            self._build(recipe)
        return self.get(recipe.digest)

    def ids(self, jobs: Iterable[Job]) -> frozenset[str]:
        """The environments these ask for, and those they are laid on."""
        ids: set[str] = set()
        for job in jobs:
            spec = job.spec
            for need in {
                RuntimeNeed(p.image, spec.requirements, p.packages) for p in spec.pools if not p.is_empty
            }:
                if (recipe := self._find(need, job.id) or self._find(RuntimeNeed(need.image))) is not None:
                    ids |= {recipe.digest, recipe.below.digest if recipe.below else ""}
        return with_below(ids, self._kept.values())

    async def remove(self, identities: Iterable[str]) -> None:
        """Take them away, or stop building them. Whoever calls has seen to it that no job wants them."""
        for digest in filter(None, tuple(identities)):
            self._last.pop(digest, None)
            if (build := self._builds.going.get(digest)) is not None and build.task is not None:
                build.task.cancel()
            if self._kept.pop(digest, None) is not None:
                self._folders.withdraw(digest)
        await asyncio.to_thread(self._folders.empty_trash)
        await asyncio.to_thread(self._packages.tidy)

    # How it is done

    def _find(self, need: RuntimeNeed, job: str = "") -> EnvironmentRecipe | None:
        """The recipe; None where there is none for the image, or packages of it are still to be fetched."""
        packages = self._packages.of(need.packages, job) if need.packages else ()
        if packages is None:
            return None
        return self._known.get((need, packages)) or self._recipe(need, packages)

    def _recipe(self, need: RuntimeNeed, packages: tuple[Package, ...]) -> EnvironmentRecipe | None:
        others = self._others or {}
        recipe = recipe_of(need.image, self._rows, self._own, others)
        if recipe is None:
            return None
        recipe = layered(recipe, normal(need.requirements), packages)
        if self._others is not None or not recipe.lacks:
            remember(self._known, (need, packages), recipe)
        return recipe

    def _also(self) -> str:
        more = ", ".join(f"'{PLAIN}:{version}'" for version in self._others or {})
        return f"; others found here: {more}" if more else ""

    def _use(self, digest: str) -> None:
        kept, now = self._kept[digest], datetime.now(UTC)
        if kept.used_at is None or now - kept.used_at > TOUCHED:
            self._kept[digest] = replace(kept, used_at=now)
            self._folders.touch(digest)
        if kept.below in self._kept and kept.below:
            self._use(kept.below)

    def _build(self, recipe: EnvironmentRecipe) -> EnvironmentBuild:
        build = Build(recipe, self._folders, sites_of(recipe, self._folders), self._environ)
        below = None
        if recipe.below is not None and recipe.below.digest not in self._kept:
            below = self._builds.going.get(recipe.below.digest) or self._build(recipe.below)
        self._last = {key: item for key, item in self._last.items() if not is_try_of(recipe, item)}
        environment = EnvironmentBuild(recipe=recipe, build=build, below=below, is_unwanted=self._is_unwanted)
        return self._builds.begin(recipe.digest, environment, self._built)

    async def _built(self, making: EnvironmentBuild) -> Readiness | None:
        digest = making.recipe.digest
        try:
            if making.below is not None and making.below.task is not None:
                await asyncio.wait((making.below.task,))
                if making.below.recipe.digest not in self._kept:
                    raise BuildFailed(1, making.below.build.progress.last_words())
            if self._slots.locked():
                making.sentence = "it waits for another build to end"
            async with self._slots:
                making.begin("making the environment")
                await self._make_room()
                await self._fetch_packages(making)
                making.build.outward = await self._outward.variables(making.recipe.operator_addresses)
                await making.build.run()
                self._kept[digest] = await asyncio.to_thread(self._folders.complete, making.recipe)
            self._background.run(asyncio.to_thread(self._folders.settle, digest))
            return None
        except PackageRefused as refused:
            return self._failed(making, refused.verdict)
        except BuildFailed as failure:
            return self._failed(making, self._judge(failure.code, failure.lines))
        except OSError as error:
            words = (*making.build.progress.last_words(), f"ERROR: {error}")
            return self._failed(making, self._judge(1, words))
        finally:
            if digest not in self._kept:  # before another build may begin in the same place
                await asyncio.to_thread(self._folders.discard, digest)

    async def _fetch_packages(self, making: EnvironmentBuild) -> None:
        """Have at hand what the build takes besides pip."""
        if making.recipe.packages:
            making.build.files = await self._packages.at_hand(making.recipe.packages, making.jobs)
            making.build.tools = await asyncio.to_thread(self._packages.build_tools)

    def _failed(self, making: EnvironmentBuild, verdict: Verdict) -> Readiness:
        digest = making.recipe.digest
        failure = failed(title(making.recipe), verdict)
        log.warning("runtime %s: %s (%s)", making.recipe.name, failure.message, self._folders.log(digest))
        self._last[digest] = making.runtime(failure)
        return failure

    async def _is_unwanted(self, jobs: set[str]) -> bool:
        try:
            return jobs.isdisjoint(job.id for job in await self._wanted())
        except Unavailable:
            return False

    async def _make_room(self) -> None:
        free, disk = await asyncio.to_thread(self._folders.free)
        short = room_to_keep(disk, self._limits.room) - free
        if short <= 0:
            return
        going = self._builds.going
        wanted = self.ids(await self._wanted()) | going.keys()
        wanted |= {build.recipe.below.digest for build in going.values() if build.recipe.below}
        leaving = victims((runtime for runtime in self._kept.values() if runtime.id), wanted, short)
        if leaving:
            log.warning("the disk runs low: removing %s", ", ".join(runtime.name for runtime in leaving))
            await self.remove(runtime.id for runtime in leaving)

    async def _watch_room(self) -> None:
        while True:
            await asyncio.sleep(ROOM_PACE)
            try:
                await self._make_room()
                await self._forget_packages()
            except (OSError, Unavailable) as error:
                log.warning("the room on the disk of runtimes cannot be looked at: %s", error)

    async def _forget_packages(self) -> None:
        known = self._packages.jobs  # before those that are not over are asked for: none of them is missed
        if known:
            gone = known.difference(job.id for job in await self._wanted())
            await asyncio.to_thread(self._packages.forget, gone)

    async def _look_around(self) -> None:
        self._others = await asyncio.to_thread(interpreters.others)
        self._known.clear()
        unsure, self._unsure = self._unsure, set()
        for job in unsure:
            self._hint(job)

    def _hint(self, job: str) -> None:
        for hint in self._hints if job else ():
            hint(job)

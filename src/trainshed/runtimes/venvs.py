"""VenvRuntimes: the promises of core.runtime_port.Runtimes, kept with virtual environments under the home.

What is whole is known in memory, so the answer for a ready one is two look-ups. A build is a task: jobs that
ask meanwhile join it. It may assume that it alone works on its folder and that all calls come from one
event loop. It never removes an environment that a job which is not over wants.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trainshed.core.errors import NotFound, Unavailable
from trainshed.core.job import Job
from trainshed.core.package import Package
from trainshed.core.readiness import Readiness, ReadinessState
from trainshed.core.requirements import normal
from trainshed.core.runtime import Runtime, RuntimeNeed, RuntimePhase, room_to_keep, victims, with_below
from trainshed.core.verdict import Verdict
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
from trainshed.runtimes.packages import Judge, PackageFetcher, Packages
from trainshed.runtimes.recipe import PLAIN, EnvironmentRecipe, Interpreter, layered, recipe_of
from trainshed.runtimes.refusal import PackageRefused
from trainshed.runtimes.rows import RuntimeRow
from trainshed.runtimes.sites import sites_of
from trainshed.runtimes.supplies import ImageSupplies

log = logging.getLogger(__name__)

Wanted = Callable[[], Awaitable[Iterable[Job]]]  # the jobs that are not over

PACE = 1.0  # seconds between two looks at how far a build is
ROOM_PACE = 60.0  # ... and at the disk
TOUCHED = timedelta(seconds=60)  # a use within that of the last need not be noted
MOST_KNOWN = 10_000

_SMALL = 4  # with fewer cores one build at a time is enough to keep them busy
_Key = tuple[RuntimeNeed, tuple[Package, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLimits:
    room: int | None = None  # bytes of the disk that stay free
    at_once: int | None = None  # builds


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
        self._shelf = RuntimeFolders(folder.absolute())
        self._rows = rows
        self._judge, self._wanted = judge, wanted
        self._limits = limits or RuntimeLimits()
        self._packages = Packages(
            folder.absolute() / PACKAGES, package_fetcher or PackageFetcher(), judge, self._hint
        )
        self._environ = os.environ if environ is None else environ
        self._own = interpreters.own()
        self._others: dict[str, Interpreter] | None = None  # None: not looked for yet
        self._looking: asyncio.Task[None] | None = None
        self._known: dict[_Key, EnvironmentRecipe] = {}
        self._kept: dict[str, Runtime] = {
            "": Runtime(id="", name=PLAIN, phase=RuntimePhase.READY, python=self._own.version)
        }
        self._makings: dict[str, EnvironmentBuild] = {}
        self._failures: dict[tuple[str, str], Readiness] = {}  # digest, job
        self._last: dict[str, Runtime] = {}  # builds that failed, until the next try
        self._unsure: set[str] = set()  # jobs that wait for the interpreters to be looked for
        self._hints: list[Callable[[str], None]] = []
        self._slots = asyncio.Semaphore(self._limits.at_once or (1 if (os.cpu_count() or 1) < _SMALL else 2))
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        report = Path(__file__).parents[1] / "report.py"
        try:
            self._kept |= await asyncio.to_thread(self._shelf.open, report)
            await asyncio.to_thread(self._packages.open)
        except OSError as error:
            raise Unavailable(f"The folder of runtimes cannot be opened: {error}.") from error
        self._spawn(self._watch_room())

    async def close(self) -> None:
        """Builds are given up; what they left goes at the next start."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._packages.close()

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
        if (failure := self._failures.get((recipe.digest, job))) is not None and job:
            return failure
        making = self._makings.get(recipe.digest)
        if making is None:
            if not job:
                return absent(recipe)
            making = self._make(recipe)
        if job:
            making.jobs.add(job)
        return making.readiness()

    def _unsure_for(self, job: str) -> Readiness:
        """Another interpreter may be the right one. They are looked for once, when first one is asked for."""
        if self._looking is None:
            self._looking = self._spawn(self._look_around())
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
        path = self._shelf.place(recipe.digest) / "bin" / "python"
        if not path.exists():  # somebody removed it behind our back: it is made again
            del self._kept[recipe.digest]
            raise Unavailable(f"The runtime for '{image}' has been removed; it is made again.")
        self._use(recipe.digest)
        return str(path)

    def warm_imports(self, image: str) -> tuple[str, ...]:
        recipe = self._find(RuntimeNeed(image))
        return recipe.imports if recipe else ()

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    def supplies(self) -> ImageSupplies:
        """The same packages, for images."""
        return ImageSupplies(self._packages, self._judge, self._environ)

    # What people ask

    def all(self) -> tuple[Runtime, ...]:
        """Every runtime: those on disk, those being built, those that could be."""
        found = {one.id: one for one in self._kept.values()}
        found |= self._last
        found |= {digest: making.told() for digest, making in self._makings.items()}
        for row in self._rows:
            recipe = self._find(RuntimeNeed(f"{row.name}:{row.version}" if row.version else row.name))
            if recipe is not None and recipe.digest not in found:
                found[recipe.digest] = absent_runtime(recipe)
        return tuple(sorted(found.values(), key=lambda one: (one.name, one.requirements, one.id)))

    def get(self, identity: str) -> Runtime:
        for one in self.all():
            if one.id == identity:
                return one
        raise NotFound(f"There is no runtime {identity or PLAIN}.")

    def begin(self, image: str, requirements: tuple[str, ...]) -> Runtime:
        """Build it where it is not there; it is not made again where it is."""
        recipe = self._find(RuntimeNeed(image, requirements))
        if recipe is None:
            raise NotFound(self.refuse(image))
        if recipe.digest not in self._kept and recipe.digest not in self._makings:
            self._make(recipe)
        return self.get(recipe.digest)

    def ids(self, jobs: Iterable[Job]) -> frozenset[str]:
        """The environments these ask for, and those they are laid on."""
        found: set[str] = set()
        for job in jobs:
            spec = job.spec
            for need in {
                RuntimeNeed(p.image, spec.requirements, p.packages) for p in spec.pools if not p.is_empty
            }:
                if (recipe := self._find(need, job.id) or self._find(RuntimeNeed(need.image))) is not None:
                    found |= {recipe.digest, recipe.below.digest if recipe.below else ""}
        return with_below(found, self._kept.values())

    async def remove(self, identities: Iterable[str]) -> None:
        """Take them away, or stop building them. Whoever calls has seen to it that no job wants them."""
        for digest in filter(None, tuple(identities)):
            self._last.pop(digest, None)
            if (making := self._makings.get(digest)) is not None and making.task is not None:
                making.task.cancel()
            if self._kept.pop(digest, None) is not None:
                self._shelf.withdraw(digest)
        await asyncio.to_thread(self._shelf.empty_trash)
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
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[need, packages] = recipe
        return recipe

    def _also(self) -> str:
        more = ", ".join(f"'{PLAIN}:{version}'" for version in self._others or {})
        return f"; others found here: {more}" if more else ""

    def _use(self, digest: str) -> None:
        kept, now = self._kept[digest], datetime.now(UTC)
        if kept.used_at is None or now - kept.used_at > TOUCHED:
            self._kept[digest] = replace(kept, used_at=now)
            self._shelf.touch(digest)
        if kept.below in self._kept and kept.below:
            self._use(kept.below)

    def _make(self, recipe: EnvironmentRecipe) -> EnvironmentBuild:
        build = Build(recipe, self._shelf, sites_of(recipe, self._shelf), self._environ)
        making = self._makings[recipe.digest] = EnvironmentBuild(recipe, build)
        self._last = {digest: one for digest, one in self._last.items() if not is_try_of(recipe, one)}
        if recipe.below is not None and recipe.below.digest not in self._kept:
            making.below = self._makings.get(recipe.below.digest) or self._make(recipe.below)
        making.task = self._spawn(self._made(making))
        return making

    async def _made(self, making: EnvironmentBuild) -> None:
        digest = making.recipe.digest
        pace: asyncio.Task[None] | None = None
        try:
            if making.below is not None and making.below.task is not None:
                await asyncio.wait((making.below.task,))
                if making.below.recipe.digest not in self._kept:
                    raise BuildFailed(1, making.below.build.progress.last_words())
            if self._slots.locked():
                making.sentence = "it waits for another build to end"
            async with self._slots:
                making.begin()
                pace = asyncio.create_task(self._tell(making))
                await self._make_room()
                await self._bring(making)
                await making.build.run()
                self._kept[digest] = await asyncio.to_thread(self._shelf.complete, making.recipe)
            self._spawn(asyncio.to_thread(self._shelf.settle, digest))
        except PackageRefused as refused:
            await self._fail(making, refused.verdict)
        except BuildFailed as broken:
            await self._fail(making, self._judge(broken.code, broken.lines))
        except OSError as error:
            words = (*making.build.progress.last_words(), f"ERROR: {error}")
            await self._fail(making, self._judge(1, words))
        finally:
            if pace is not None:
                pace.cancel()
            if self._makings.get(digest) is making:
                if digest not in self._kept:  # given up; before another build may begin in the same place
                    await asyncio.to_thread(self._shelf.discard, digest)
                del self._makings[digest]
            for job in making.jobs:
                self._hint(job)

    async def _bring(self, making: EnvironmentBuild) -> None:
        """Have at hand what the build takes besides pip."""
        if making.recipe.packages:
            making.build.files = await self._packages.at_hand(making.recipe.packages, making.jobs)
            making.build.tools = await asyncio.to_thread(self._packages.build_tools)

    async def _fail(self, making: EnvironmentBuild, verdict: Verdict) -> None:
        digest = making.recipe.digest
        await asyncio.to_thread(self._shelf.discard, digest)
        failure = failed(title(making.recipe), verdict)
        log.warning("runtime %s: %s (%s)", making.recipe.name, failure.message, self._shelf.log(digest))
        self._failures.update(((digest, job), failure) for job in making.jobs)
        while len(self._failures) > MOST_KNOWN:
            del self._failures[next(iter(self._failures))]
        self._last[digest] = making.told(failure)
        self._makings.pop(digest, None)  # from here on whoever asks begins anew

    async def _tell(self, making: EnvironmentBuild) -> None:
        """While it is built: a hint to one of those who wait, upon which the cycle looks at the others too.

        What jobs brought is of no use to others: it is not built on once all who asked for it are over.
        """
        while True:
            await asyncio.sleep(PACE)
            if making.recipe.packages and making.task is not None and await self._is_unwanted(making):
                making.task.cancel()
            making.sentence = making.build.progress.sentence(making.build.installed())
            for job in list(making.jobs)[:1]:
                self._hint(job)

    async def _is_unwanted(self, making: EnvironmentBuild) -> bool:
        try:
            return making.jobs.isdisjoint(job.id for job in await self._wanted())
        except Unavailable:
            return False

    async def _make_room(self) -> None:
        free, disk = await asyncio.to_thread(self._shelf.free)
        short = room_to_keep(disk, self._limits.room) - free
        if short <= 0:
            return
        wanted = self.ids(await self._wanted()) | self._makings.keys()
        wanted |= {making.recipe.below.digest for making in self._makings.values() if making.recipe.below}
        going = victims((one for one in self._kept.values() if one.id), wanted, short)
        if going:
            log.warning("the disk runs low: removing %s", ", ".join(one.name for one in going))
            await self.remove(one.id for one in going)

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

    def _spawn(self, work: "Awaitable[None]") -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

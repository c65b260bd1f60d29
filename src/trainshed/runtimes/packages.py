"""The packages of jobs: fetched once for each job, pinned to their content, and handed to builds.

Environments (venvs.py) and derived images (supplies.py) take packages from here. All calls come from one
event loop. It never looks into a package, and never gives a job another content than the one it began with.
"""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from trainshed.core.errors import NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.readiness import PreparationKind, PreparationProgress, Readiness, ReadinessState
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.supplies.package import LARGEST, Package
from trainshed.core.supplies.source_port import PackageSource
from trainshed.preparation import Preparation, Preparations, remember
from trainshed.runtimes import tools
from trainshed.runtimes.pins import COMING, KEPT, Pinned, Pins
from trainshed.runtimes.refusal import PackageRefused, replaced, too_large, unfetched

Judge = Callable[[int, tuple[str, ...]], Verdict]  # exit code and last words of a build to why it failed
ProjectOf = Callable[[str], Awaitable[str]]  # that of a job

TRIES = 4  # of a place that does not answer
PAUSE = 0.5  # seconds before the second try; each further one waits twice as long

_ONCE = "They are fetched and installed once; the job starts by itself then."


async def _nobody(_job: str) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFetcher:
    """Where packages come from, and for whom."""

    source: PackageSource | None = None
    project_of: ProjectOf = _nobody


@dataclass(slots=True, eq=False, kw_only=True)
class Fetching(Preparation):
    """The packages of one job on their way, and how far they are."""

    uris: dict[str, None] = field(default_factory=dict[str, None])
    at: str = ""
    number: int = 0
    size: int = 0
    file: Path | None = None

    @property
    def message(self) -> str:
        if not self.at:
            return "Its packages are fetched first."
        return f"Fetching package {self.number} of {len(self.uris)}, {self.at}{self._far()}."

    @property
    def title(self) -> str:
        return ", ".join(self.uris)

    def readiness(self) -> Readiness:
        return Readiness(standing=ReadinessState.PREPARING, message=self.message, remedy=_ONCE)

    def _far(self) -> str:
        try:
            there = self.file.stat().st_size if self.file and self.size else 0
        except OSError:
            return ""
        return f": {there} of {self.size} bytes" if there else ""


@dataclass(slots=True)
class Packages:
    folder: Path
    package_fetcher: PackageFetcher
    judge: Judge
    hint: Callable[[str], None]
    pins: Pins = field(init=False)
    _pinned: dict[str, Pinned] = field(init=False, default_factory=dict[str, Pinned])  # by job
    _fetches: Preparations[str, Fetching] = field(init=False)  # by job
    _known: dict[tuple[str, str], Package] = field(
        init=False, default_factory=dict[tuple[str, str], Package]
    )  # by address and mark

    def __post_init__(self) -> None:
        self.pins = Pins(self.folder)
        self._fetches = Preparations(self.hint)

    def open(self) -> None:
        self._pinned = self.pins.open()

    async def close(self) -> None:
        """Give up what is on its way; the next server fetches it anew."""
        await self._fetches.close()

    def of(self, uris: tuple[str, ...], job: str) -> tuple[Package, ...] | None:
        """What the job has for these addresses, each content once; None where not all are fetched yet."""
        pinned = self._pinned.get(job, {})
        packages = [pinned[uri] for uri in uris if uri in pinned]
        if len(packages) < len(uris):
            return None
        return tuple({item.sha256: item for item in reversed(packages)}.values())[::-1]

    def readiness(self, uris: tuple[str, ...], job: str) -> Readiness:
        """Of packages that are not all there: they are fetched, unless nobody in particular asks."""
        if (failure := self._fetches.outcome(job, job)) is not None:
            return failure
        fetching = self._fetches.going.get(job) or Fetching(jobs={job})
        if job:
            fetching.uris.update(dict.fromkeys(uris))
            if fetching.task is None:
                self._fetches.begin(job, fetching, functools.partial(self._fetch, job))
        return fetching.readiness()

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self._fetches.under_way(PreparationKind.PACKAGES)

    async def at_hand(
        self, packages: Iterable[Package], jobs: Iterable[str]
    ) -> tuple[tuple[Package, Path], ...]:
        """Their files, fetched again where they are gone; Refused where that brings another content."""
        for package in packages:
            if await asyncio.to_thread(self.pins.has, package):
                continue
            project = await self._project(next(iter(jobs), ""))
            if await self._brought(package.uri, project, Fetching()) != package:
                raise replaced(package)
        return tuple((package, self.pins.path(package)) for package in packages)

    def build_tools(self) -> Path | None:
        return tools.lay_out(self.pins.tools)

    def forget(self, jobs: Iterable[str]) -> None:
        """They are over: what only they had is kept no longer than need be. It blocks."""
        gone = set(jobs)
        for job in gone:
            self._pinned.pop(job, None)
            self._fetches.forget(job, job)
        self.pins.forget(gone)
        self.tidy(KEPT)

    def tidy(self, kept: float = COMING) -> None:
        """Remove packages no job has any more. It blocks."""
        wanted = frozenset(item.sha256 for pinned in list(self._pinned.values()) for item in pinned.values())
        self.pins.tidy(wanted, kept)

    @property
    def jobs(self) -> frozenset[str]:
        return frozenset(self._pinned) | self._fetches.remembered

    async def _fetch(self, job: str, fetching: Fetching) -> Readiness | None:
        try:
            project = await self._project(job)
            pinned: dict[str, Package] = dict(self._pinned.get(job, {}))
            while missing := [uri for uri in fetching.uris if uri not in pinned]:
                fetching.at, fetching.number = missing[0], len(fetching.uris) - len(missing) + 1
                pinned[missing[0]] = await self._brought(missing[0], project, fetching)
            await asyncio.to_thread(self.pins.pin, job, pinned)
            self._pinned[job] = pinned
            return None
        except PackageRefused as refused:
            return _failed(refused.verdict)
        except OSError as error:
            return _failed(self.judge(1, (f"ERROR: {fetching.at}: {error}",)))

    async def _project(self, job: str) -> str:
        try:
            return await self.package_fetcher.project_of(job)
        except TrainshedError as error:
            raise unfetched("", error) from error

    async def _brought(self, uri: str, project: str, fetching: Fetching) -> Package:
        """The package as it is now, its file among ours."""
        pause = PAUSE
        for left in reversed(range(TRIES)):
            try:
                return await self._take(uri, project, fetching)
            except Unavailable as error:
                if not left:
                    raise unfetched(uri, error) from error
            except TrainshedError as error:
                raise unfetched(uri, error) from error
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")

    async def _take(self, uri: str, project: str, fetching: Fetching) -> Package:
        source = self.package_fetcher.source
        if source is None:
            raise NotFound("This server fetches no packages.")
        info = await source.look(uri, project)
        if info.size > LARGEST:
            raise too_large(uri, f"it has {info.size} bytes.")
        known = self._known.get((uri, info.mark)) if info.mark else None
        if known is not None and await asyncio.to_thread(self.pins.has, known):
            self.pins.touch(known)
            return known
        file = self.pins.coming()
        fetching.size, fetching.file = info.size, file
        try:
            fetched = await source.fetch(uri, project, str(file), LARGEST)
            package = Package(uri=uri, sha256=fetched.sha256, size=fetched.size)
            await asyncio.to_thread(self.pins.keep, package, file)
        finally:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
        remember(self._known, (uri, fetched.mark), package)
        return package


def _failed(verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message="The packages of the job could not be fetched.",
        remedy=verdict.advice,
        verdict=verdict,
    )

"""A derived image on its way: who waits for it, and what is said to them meanwhile, or when it fails."""

import asyncio
import time
from dataclasses import dataclass, field

from trainshed.backends.container.install import InstallFailed
from trainshed.backends.container.render_installer import NOT_FOUND, title
from trainshed.core.image import ImageConfig
from trainshed.core.layer_port import PipListener, Supplies
from trainshed.core.package import Package
from trainshed.core.readiness import Readiness, ReadinessState
from trainshed.core.runtime import RuntimeNeed
from trainshed.core.verdict import Cause, Verdict

_BEGUN = 10  # more than a pull comes to: that it has begun is a line of the job's history
_ONCE = "It is made once and kept; the job starts by itself then."


@dataclass(slots=True, kw_only=True)
class ImageBuild:
    need: RuntimeNeed
    base: ImageConfig
    packages: tuple[Package, ...]
    digest: str
    hearing: PipListener
    jobs: set[str] = field(default_factory=set[str])
    sentence: str = "it begins"
    begun: float | None = None  # monotonic
    task: "asyncio.Task[None] | None" = None

    def move(self) -> None:
        self.sentence = self.hearing.now

    def readiness(self) -> Readiness:
        took = f", {time.monotonic() - self.begun:.0f} s" if self.begun is not None else ""
        message = f"Making {title(self.need)}: {self.sentence}{took}."
        mark = 0 if self.begun is None else _BEGUN
        return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=_ONCE, mark=mark)


def to_be_made(need: RuntimeNeed) -> Readiness:
    message = f"Not here yet: {title(need)}; it is made first."
    return Readiness(standing=ReadinessState.PREPARING, message=message, remedy=_ONCE)


def failed(need: RuntimeNeed, verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Packages could not be installed: {title(need)}.",
        remedy=verdict.advice,
        verdict=verdict,
    )


def judged(need: RuntimeNeed, broken: InstallFailed, hearing: PipListener, supplies: Supplies) -> Verdict:
    """Why it failed, by pip's own last lines where it got so far."""
    if broken.code == NOT_FOUND:
        return _verdict(
            Cause.COMMAND_NOT_FOUND,
            f"Image {need.image} has no Python: neither python3 nor python is on its PATH.",
            "Packages and requirements are installed with the image's own interpreter: take an image that "
            "has one, or build one with all it needs (`trainshed images build`).",
        )
    more = (f"ERROR: {broken.why}",) if broken.why else ()
    return supplies.judge(broken.code, (*hearing.last_words(), *more))


def unsupplied(need: RuntimeNeed) -> Readiness:
    return failed(
        need, _verdict(Cause.UNKNOWN, "This server installs no packages.", "Put them into the image itself.")
    )


def _verdict(cause: Cause, summary: str, advice: str) -> Verdict:
    return Verdict(cause=cause, summary=summary, lines=(summary,), advice=advice)

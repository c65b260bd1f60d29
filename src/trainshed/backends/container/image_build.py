"""One derived image that is being made, and its words: for the jobs that wait, and for a failure."""

from dataclasses import dataclass

from trainshed.backends.container.install import InstallFailed
from trainshed.backends.container.render_installer import NOT_FOUND, title
from trainshed.core.image import ImageConfig
from trainshed.core.layer_port import PipListener, Supplies
from trainshed.core.package import Package
from trainshed.core.readiness import Readiness, ReadinessState
from trainshed.core.runtime import RuntimeNeed
from trainshed.core.verdict import Cause, Verdict
from trainshed.preparation import Preparation

_BEGUN = 10  # more than a pull comes to: that it has begun is a line of the job's history
_ONCE = "It is made once and kept; the job starts by itself then."


@dataclass(slots=True, eq=False, kw_only=True)
class ImageBuild(Preparation):
    need: RuntimeNeed
    base: ImageConfig
    packages: tuple[Package, ...]
    digest: str
    hearing: PipListener

    def move(self) -> None:
        self.sentence = self.hearing.now

    def readiness(self) -> Readiness:
        message = f"Making {title(self.need)}: {self.progress}."
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

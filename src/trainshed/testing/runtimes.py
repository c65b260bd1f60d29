"""Runtimes in memory that keep the promises of their port; a test says when one is made, how well.

FakeBackend answers by them, and the real backends are tried with them. They never make anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from trainshed.core.errors import Unavailable
from trainshed.core.jobs.readiness import (
    READY,
    PreparationKind,
    PreparationProgress,
    Readiness,
    ReadinessState,
)
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.supplies.runtime import RuntimeNeed

BROKEN = Readiness(
    standing=ReadinessState.FAILED,
    message="The fake was told that it cannot be made.",
    verdict=Verdict(cause=Cause.BUILD_FAILED, summary="told so", advice="Tell it otherwise."),
)


@dataclass(slots=True)
class FakeRuntimes:
    path: str = "python"
    unmade: set[str] = field(default_factory=set[str])  # images that have to be made ready before a launch
    making: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])  # for which jobs
    disappointed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])  # image, job
    hints: list[Callable[[str], None]] = field(default_factory=list[Callable[[str], None]])

    def make(self, image: str, *, well: bool = True) -> None:
        """What jobs need of an image has been made, or cannot be; those that waited for it are hinted."""
        jobs = self.making.pop(image, {})
        if well:
            self.unmade.discard(image)
        else:
            self.disappointed |= {(image, job) for job in jobs}
        for job in jobs:
            for hint in list(self.hints):
                hint(job)

    def refuse(self, image: str) -> str | None:
        if image.startswith("trainshed/"):
            return None
        return f"Image '{image}' cannot run here: the fake runs trainshed/python:3 and nothing else."

    def readiness(self, need: RuntimeNeed, job: str = "") -> Readiness:
        image = need.image
        if (image, job) in self.disappointed:
            return BROKEN
        if image not in self.unmade:
            return READY
        if job:
            self.making.setdefault(image, {})[job] = None
        return Readiness(standing=ReadinessState.PREPARING, message=f"Making {image}.", remedy="It comes.")

    def python(self, need: RuntimeNeed, job: str = "") -> str:
        if need.image in self.unmade:
            raise Unavailable(f"What '{need.image}' needs is not there (any more).")
        return self.path

    def warm_imports(self, image: str) -> tuple[str, ...]:
        return ()

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return tuple(
            PreparationProgress(
                kind=PreparationKind.RUNTIME, name=image, message=f"Making {image}.", jobs=tuple(sorted(jobs))
            )
            for image, jobs in self.making.items()
        )

    def on_change(self, hint: Callable[[str], None]) -> None:
        self.hints.append(hint)

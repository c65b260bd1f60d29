"""One image that is being pulled, and its words: for the jobs that wait, for people, for a failure."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from trainshed.backends.container.layers import Layers
from trainshed.backends.container.unpulled import error_of
from trainshed.core.image import ImageConfig, ImageStep, Reference
from trainshed.core.readiness import Readiness, ReadinessState
from trainshed.core.verdict import Verdict
from trainshed.preparation import Preparation

QUARTER = 25  # percent: each is a line in the history of those who wait
_ONCE = "It is pulled once and kept; the job starts by itself then."


@dataclass(slots=True, eq=False, kw_only=True)
class Fetch(Preparation):
    """Its sentence, where there is one, stands in place of what the layers tell."""

    reference: Reference
    layers: Layers
    fresh: bool = False  # its registry is asked also where it is here
    pulled: bool = False
    config: ImageConfig | None = None  # once it is here
    verdict: Verdict | None = None  # once it is known that it cannot be
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self) -> None:
        self.move()

    def move(self) -> None:
        """Wake those who follow: something new can be said."""
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self.config is not None or self.verdict is not None

    @property
    def step(self) -> ImageStep:
        if self.sentence:
            return ImageStep(text=f"{self.layers.doing}: {self.sentence}", percent=self.layers.percent)
        return self.layers.step

    def readiness(self) -> Readiness:
        return Readiness(
            standing=ReadinessState.PREPARING,
            message=f"{self.step.text}.",
            remedy=_ONCE,
            mark=(self.step.percent or 0) // QUARTER,
        )

    async def follow(self) -> AsyncIterator[ImageStep]:
        """Every new word, and the last; raises what went wrong."""
        said: ImageStep | None = None
        while not self.is_over:
            moved = self._moved
            if self.step != said:
                said = self.step
                yield said
            await moved.wait()
        if self.verdict is not None:
            raise error_of(self.verdict)
        assert self.config is not None
        yield ImageStep(text=self.outcome, percent=100, image=self.config.id)

    @property
    def outcome(self) -> str:
        assert self.config is not None
        size, name = self.config.size / 1e6, self.reference.familiar
        if not self.pulled:
            return f"Image {name} is here ({self.config.id[:19]})"
        return f"Pulled image {name} ({self.config.id[:19]}, {size:.0f} MB) in {self.took:.1f} s"


def absent(reference: Reference) -> Readiness:
    """Nobody has asked for it yet, and this is no asking."""
    return Readiness(
        standing=ReadinessState.PREPARING,
        message=f"Image {reference.familiar} is not here: it is pulled from {reference.domain} first.",
        remedy=_ONCE,
    )


def failed(reference: Reference, verdict: Verdict) -> Readiness:
    return Readiness(
        standing=ReadinessState.FAILED,
        message=f"Image {reference.familiar} could not be pulled.",
        remedy=verdict.advice,
        verdict=verdict,
    )

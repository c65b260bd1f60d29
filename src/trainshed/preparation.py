"""What must be there before a job starts, made by one task per key however many jobs need it.

Environments, packages, images and derived images are prepared this way. An adapter says what a key is and how
to make it; this module guarantees the rest. At most one task works on a key. Every job that joined gets a
hint when the task ends. One of them gets a hint every second until then: the scheduler's cycle looks at all.
The outcome is remembered for each job that joined, so a failure is reported to it and not tried again.
All calls come from one event loop. It never decides what is made, and never stores anything on disk.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trainshed.background_tasks import BackgroundTasks
from trainshed.core.jobs.readiness import PreparationKind, PreparationProgress, Readiness

PACE = 1.0  # seconds between two hints while something is prepared
MOST_REMEMBERED = 10_000  # what is forgotten is asked for again


@dataclass(slots=True, eq=False, kw_only=True)
class Preparation:
    """One thing on its way. Subclasses say what it is and word its readiness."""

    jobs: set[str] = field(default_factory=set[str])
    sentence: str = "it begins"
    begun: float | None = None  # monotonic; None while it waits for its turn
    task: "asyncio.Task[None] | None" = None

    def begin(self, sentence: str) -> None:
        self.begun, self.sentence = time.monotonic(), sentence

    @property
    def took(self) -> float:
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    @property
    def progress(self) -> str:
        """The sentence, and for how long it has been going on."""
        return self.sentence if self.begun is None else f"{self.sentence}, {self.took:.0f} s"

    async def look(self) -> None:
        """Called before each hint: bring the sentence up to date."""

    @property
    def title(self) -> str:
        """The name of what is prepared, as people know it."""
        raise NotImplementedError

    @property
    def percent(self) -> int | None:
        """How much of it is done; None where that is not known."""
        return None

    def readiness(self) -> Readiness:
        """As jobs that wait for it are told."""
        raise NotImplementedError

    def told_as(self, kind: PreparationKind) -> PreparationProgress:
        return PreparationProgress(
            kind=kind,
            name=self.title,
            message=self.readiness().message,
            percent=self.percent,
            took=self.took,
            jobs=tuple(sorted(filter(None, self.jobs))),
        )


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Prepared = TypeVar("_Prepared", bound=Preparation)


class Preparations(Generic[_Key, _Prepared]):
    def __init__(self, hint: Callable[[str], None]) -> None:
        self._hint = hint
        self._going: dict[_Key, _Prepared] = {}
        self._outcomes: dict[tuple[_Key, str], Readiness] = {}
        self._background = BackgroundTasks()

    @property
    def going(self) -> dict[_Key, _Prepared]:
        """What is being prepared now, by key. Not to be changed by the caller."""
        return self._going

    def under_way(self, kind: PreparationKind) -> tuple[PreparationProgress, ...]:
        """How far everything is that is being prepared now."""
        return tuple(item.told_as(kind) for item in self._going.values())

    def begin(
        self,
        key: _Key,
        preparation: _Prepared,
        work: Callable[[_Prepared], Coroutine[None, None, Readiness | None]],
    ) -> _Prepared:
        """Start the task. `work` returns the outcome to remember for the jobs that joined, or None."""
        self._going[key] = preparation
        preparation.task = self._background.run(self._carry_out(key, preparation, work))
        return preparation

    def outcome(self, key: _Key, job: str) -> Readiness | None:
        return self._outcomes.get((key, job)) if job else None

    def remember(self, key: _Key, job: str, outcome: Readiness) -> None:
        remember(self._outcomes, (key, job), outcome)

    def forget(self, key: _Key, job: str) -> Readiness | None:
        return self._outcomes.pop((key, job), None)

    @property
    def remembered(self) -> frozenset[str]:
        """The jobs for which an outcome is remembered."""
        return frozenset(job for _, job in self._outcomes)

    def tell(self, preparation: _Prepared) -> None:
        """Hint one of the jobs that wait: the cycle then looks at them all."""
        for job in list(preparation.jobs)[:1]:
            self._hint_job(job)

    async def close(self) -> None:
        """Give up what is being prepared."""
        await self._background.close()

    async def _carry_out(
        self,
        key: _Key,
        preparation: _Prepared,
        work: Callable[[_Prepared], Coroutine[None, None, Readiness | None]],
    ) -> None:
        pace = asyncio.create_task(self._keep_telling(preparation))
        try:
            outcome = await work(preparation)
            if outcome is not None:
                for job in preparation.jobs:
                    self.remember(key, job, outcome)
        finally:
            pace.cancel()
            if self._going.get(key) is preparation:
                del self._going[key]  # from here on whoever asks begins anew
            for job in preparation.jobs:
                self._hint_job(job)

    async def _keep_telling(self, preparation: _Prepared) -> None:
        while True:
            await asyncio.sleep(PACE)
            await preparation.look()
            self.tell(preparation)

    def _hint_job(self, job: str) -> None:
        if job:
            self._hint(job)


def remember(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value; beyond MOST_REMEMBERED the oldest go."""
    kept[key] = value
    while len(kept) > MOST_REMEMBERED:
        del kept[next(iter(kept))]

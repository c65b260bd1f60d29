"""Hints about changed jobs: "job J is at version V", sent as soon as the change is committed.

The store calls `JobHints.tell` at each commit; `api/watch.py` listens for its streams. A hint may be lost,
late or repeated: it is only a reason to look. The collector tells new samples, for listeners that ask for the
metrics of a job. A listener that does not read gets the newest version of each
job; with too many jobs it gets one message that says to look at all. Without listeners a commit costs one
list entry.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from trainshed.core.jobs.job import Job
from trainshed.core.tuning.study import Study

REMEMBERED = 1024  # commits after which a listener that reconnects can still resume
ANY_JOB = "-"  # whom a listener names that wants to hear of all that is measured
MOST_WAITING = 1024  # hints kept for a listener that does not read


@dataclass(frozen=True, slots=True)
class JobHint:
    sequence: int
    project: str
    location: str
    job: str
    name: str
    version: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class News:
    """One message to a listener. A listener that sends `id` back resumes after it."""

    id: str
    hints: tuple[JobHint, ...]
    is_everything: bool  # hints may be missing: the listener must look at all jobs
    grown: tuple[tuple[str, str], ...] = ()  # the name of a job, and what of it has grown, such as "log"


class HintListener:
    def __init__(
        self, id_of: Callable[[int], str], fits: Callable[[JobHint], bool], sequence: int, measured: str = ""
    ) -> None:
        self.measured = measured  # the name of the job whose new samples it wants to hear of
        self._id_of = id_of
        self._fits = fits
        self._sequence = sequence
        self._waiting: dict[str, JobHint] = {}
        self._is_everything = False
        self._grown: dict[tuple[str, str], None] = {}
        self._event = asyncio.Event()

    def tell(self, hint: JobHint) -> None:
        if not self._fits(hint):
            return
        self._waiting.pop(hint.job, None)
        if len(self._waiting) >= MOST_WAITING:
            self.tell_everything()
        self._waiting[hint.job] = hint
        self._sequence = hint.sequence
        self._event.set()

    def tell_everything(self) -> None:
        self._waiting.clear()
        self._is_everything = True
        self._event.set()

    def tell_growth(self, name: str, what: str) -> None:
        """Tell that something of that job has more to read: once, however often before it is read."""
        self._grown[name, what] = None
        self._event.set()

    async def next(self) -> News:
        """Wait for the next message."""
        await self._event.wait()
        self._event.clear()
        hints = tuple(self._waiting.values())
        news = News(self._id_of(self._sequence), hints, self._is_everything, tuple(self._grown))
        self._waiting, self._is_everything, self._grown = {}, False, {}
        return news


class JobHints:
    """Only for the event loop's thread. In memory only: after a restart every listener starts over."""

    def __init__(self) -> None:
        self._start = secrets.token_hex(4)  # tells ids of this server from those of an earlier one
        self._sequence = 0
        self._recent: deque[JobHint] = deque(maxlen=REMEMBERED)
        self.listeners: set[HintListener] = set()

    def tell(self, job: Job | Study, is_deleted: bool = False) -> None:
        """A job or a study has changed."""
        self._sequence += 1
        place = (job.project, job.location, job.id, job.name)
        hint = JobHint(self._sequence, *place, job.version, is_deleted)
        self._recent.append(hint)
        for listener in self.listeners:
            listener.tell(hint)

    @property
    def last_id(self) -> str:
        """The id of the newest hint: whoever reads jobs now and listens after it misses nothing."""
        return self._id(self._sequence)

    def tell_measured(self, jobs: Collection[str]) -> None:
        """There are new samples of the jobs with these ids."""
        for listener in self.listeners:
            if listener.measured == ANY_JOB or listener.measured.rpartition("/")[2] in jobs:
                listener.tell_growth(listener.measured, "metrics")

    @contextmanager
    def listen(
        self, project: str, location: str, job: str = "", after: str = "", measured: str = ""
    ) -> Generator[HintListener]:
        """Listen to one job, or to all of a project and location ("-": all), from the id `after` on.

        `measured` is the name of a job: the listener also hears that there are new samples of it.
        """

        def fits(hint: JobHint) -> bool:
            return (
                project in (hint.project, "-") and location in (hint.location, "-") and job in (hint.job, "")
            )

        listener = HintListener(self._id, fits, self._sequence, measured)
        missed = self._since(after)
        if missed is None:
            listener.tell_everything()
        else:
            for hint in missed:
                listener.tell(hint)
        self.listeners.add(listener)
        try:
            yield listener
        finally:
            self.listeners.discard(listener)

    def _id(self, sequence: int) -> str:
        return f"{self._start}.{sequence}"

    def _since(self, after: str) -> list[JobHint] | None:
        """The hints after that id; None where some of them are forgotten or the id is not ours."""
        start, _, text = after.partition(".")
        if start != self._start or not (text.isascii() and text.isdigit() and len(text) < REMEMBERED):
            return None
        sequence = int(text)
        oldest = self._recent[0].sequence if self._recent else self._sequence + 1
        if not oldest - 1 <= sequence <= self._sequence:
            return None
        return [hint for hint in self._recent if hint.sequence > sequence]

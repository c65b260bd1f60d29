"""What is known of a replica: how a run of it ended, what a backend sees, what the job remembers."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trainshed.core.names import RunKey

Handle = Mapping[str, object]  # opaque JSON by which a backend finds a run again; the core never reads it


@dataclass(frozen=True, slots=True)
class Exit:
    """How a run ended: a code, a signal, or neither when nobody saw it end (it was lost)."""

    code: int | None = None
    signal: int | None = None

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def lost(self) -> bool:
        return self.code is None and self.signal is None

    def __str__(self) -> str:
        if self.lost:
            return "was lost: it is gone and nobody saw how it ended"
        if self.signal is not None:
            return f"was killed by signal {self.signal} ({signal_name(self.signal)})"
        return f"exited with code {self.code}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Sight(StrEnum):
    """What a backend sees of a run it has launched."""

    RUNNING = "RUNNING"  # something of it is still alive, be it only a leftover child
    HELD = (
        "HELD"  # its program has ended badly, its exit status is known, and its place is kept until stopped
    )
    ENDED = "ENDED"  # all of it is gone and its exit status is known
    LOST = "LOST"  # all of it is gone and its exit status is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One run as a backend sees it now."""

    key: RunKey
    sight: Sight
    exit: Exit | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    handle: Handle | None = None
    out_of_memory: str = ""  # a sentence, where the system itself says that it killed for want of memory
    no_gcs: str = ""  # why it had no /gcs, where it had none
    disk_full: str = ""  # a sentence, where it was ended because it had filled the disk it asked for
    over_limit: bool = False  # what ended it was a limit of its own, which the next run would meet too
    unstarted: str = ""  # why its program never began, where it did not
    last_words: str | None = None  # of a crash (core/crash.py); None where nobody has looked
    note: str = ""  # a sentence on how it was started, where there is something to tell

    @property
    def alive(self) -> bool:
        return self.sight in (Sight.RUNNING, Sight.HELD)


class Phase(StrEnum):
    """Where a replica stands in its attempt, as the job remembers it."""

    PLANNED = "PLANNED"  # to be launched, at once or after its back-off
    RUNNING = "RUNNING"
    MISSING = "MISSING"  # was running; the backend does not show it any more, not yet given up
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """The run of a replica before the current one. The status keeps one; the ledger has them all."""

    attempt: int
    run: int
    exit: Exit | None = None  # None: it was never started
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica of the job's current attempt, as durably recorded. `run` counts its restarts."""

    pool: int
    index: int
    phase: Phase = Phase.PLANNED
    run: int = 0
    exit: Exit | None = None
    over_limit: bool = False  # as its observation says
    unstarted: str = ""  # as its observation says; kept while it is tried again
    crash: str = ""  # the place where its last run crashed (core/crash.py)
    crashes: int = 0  # runs in a row that crashed there
    not_before: datetime | None = None
    missing_since: datetime | None = None
    started_at: datetime | None = None  # these two by the backend's clock, for people to read
    ended_at: datetime | None = None
    noticed_at: datetime | None = None  # when its end was taken in, by our own clock: what waits count from
    previous: EndedRun | None = None  # the run that this one follows, of this attempt or of the one before
    counted_until: datetime | None = None  # the ledger has the run's time up to here (core.ledger)

    def as_ended(self, attempt: int) -> EndedRun:
        return EndedRun(
            attempt=attempt,
            run=self.run,
            exit=self.exit,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

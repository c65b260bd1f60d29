"""A replica as values: how a run ended, what a backend sees of it, and what the job's status keeps.

`store/codec.py` stores these classes by their field names: never rename a field.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trainshed.core.names import RunKey, task_name
from trainshed.core.obstacle import Obstacle

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

    STARTING = "STARTING"  # it was launched, and its program has not begun: it may have to wait for its place
    RUNNING = "RUNNING"  # at least one of its processes is alive
    HELD = "HELD"  # its program has failed with a known exit status; its files stay until it is stopped
    ENDED = "ENDED"  # all processes are gone and its exit status is known
    LOST = "LOST"  # all processes are gone and its exit status is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One run as a backend sees it now."""

    key: RunKey
    sight: Sight
    exit: Exit | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    handle: Handle | None = None
    node: str = ""  # where it is; empty: where it was placed
    out_of_memory: str = ""  # a sentence, where the kernel counted a kill for memory
    no_gcs: str = ""  # why it had no /gcs; empty: it had one
    disk_full: str = ""  # a sentence, where it was killed because its disk was full
    process_limit: str = ""  # a sentence, where it had too many processes, or was refused one
    over_limit: bool = False  # it exceeded a limit of its own, as the next run would
    no_room: bool = False  # the disk of its output was full when its end was seen
    unstarted: str = ""  # why its program never started; empty: it did
    obstacle: Obstacle | None = None  # where it is starting and has to wait
    interrupted: str = ""  # a sentence, where somebody else ended it: by whom and why
    last_words: str | None = None  # of a crash (core/jobs/crash.py); None: not read
    note: str = ""  # a remark about its start, for the job's history

    @property
    def alive(self) -> bool:
        return self.sight in (Sight.STARTING, Sight.RUNNING, Sight.HELD)


class Phase(StrEnum):
    """The phase of a replica in its attempt, as the job's status keeps it."""

    PLANNED = "PLANNED"  # to be launched, at once or after its back-off
    RUNNING = "RUNNING"
    MISSING = "MISSING"  # it ran, and the backend no longer shows it; soon it counts as lost
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """The run of a replica before the current one. The status keeps only one; the ledger has all."""

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
    no_room: bool = False  # as its observation says
    unstarted: str = ""  # as its observation says; kept during retries
    interrupted: str = ""  # as its observation says
    interruptions: int = 0  # in a row before this run, none of which had run for long
    uncounted: int = 0  # runs of this attempt before this one that were interrupted
    crash: str = ""  # the place where its last run crashed (core/jobs/crash.py)
    crashes: int = 0  # runs in a row that crashed there
    not_before: datetime | None = None
    missing_since: datetime | None = None
    started_at: datetime | None = None  # these two are by the backend's clock, for people to read
    ended_at: datetime | None = None
    noticed_at: datetime | None = None  # when its end was seen, by our own clock: delays count from it
    previous: EndedRun | None = None  # the run before, of this attempt or of the one before
    counted_until: datetime | None = None  # the ledger has the run's time up to here (core.ledger)

    @property
    def task(self) -> str:
        return task_name(self.pool, self.index)

    @property
    def restarts(self) -> int:
        """Those that count against the limit of the restart rule."""
        return self.run - self.uncounted

    def as_ended(self, attempt: int) -> EndedRun:
        return EndedRun(
            attempt=attempt,
            run=self.run,
            exit=self.exit,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )

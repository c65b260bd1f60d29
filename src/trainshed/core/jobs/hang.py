"""Whether a job hangs: the rule that a person sets, and the function that judges. Pure: no clock, no files.

`control/hangs.py` calls `felt` for every run at every look and `judge` for every job. A Pulse keeps when a
run last *spoke* (printed, or reported a step) and when it last *worked* (used CPU, disk or GPU noticeably).
Time in which nobody looked never counts against a run: its silence begins at the first look, and again after
a gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

BUSY_SHARE = 0.05  # of a core: watchdogs and polling loops use less, computation uses more
GPU_SHARE = 0.02  # of a GPU's time
DISK_PACE = 65536.0  # bytes a second
LOOKS = 20  # during the time after which a job counts as hung
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(seconds=60)  # between two looks
GAP = 5  # missed looks after which a pulse starts over ...
LEAST_GAP = timedelta(seconds=30)  # ... but at least this long: taking stacks is slow

_OFF = timedelta()


class HangPolicy(StrEnum):
    WARN = "WARN"
    RESTART = "RESTART"  # a new attempt of the whole job, while it has retries left
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class HangRule:
    """When a job counts as hung, and what follows. Zero: not watched."""

    after: timedelta = timedelta(minutes=20)  # nothing moves
    exit_after: timedelta = timedelta(minutes=10)  # one replica succeeded, the others are silent and go on
    policy: HangPolicy = HangPolicy.WARN
    asked: bool = False  # set by a person; else only jobs of several replicas are watched

    def watches(self, replicas: int) -> bool:
        return self.after > _OFF and (self.asked or replicas > 1)

    def watches_exits(self, replicas: int) -> bool:
        return self.exit_after > _OFF and replicas > 1

    def pace(self) -> timedelta:
        """How often to look."""
        shortest = min(length for length in (self.after, self.exit_after, LOOKS * LONGEST) if length > _OFF)
        return min(max(shortest / LOOKS, SHORTEST), LONGEST)


DEFAULT_WATCH = HangRule()


class StallKind(StrEnum):
    STILL = "STILL"  # no output, no step, no CPU, disk or GPU movement
    BUSY = "BUSY"  # it computes but no longer reports steps: its stacks have to confirm it
    EXIT = "EXIT"  # one replica succeeded, the others are silent and go on


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A hang that is in the job's history and is not over."""

    kind: StallKind
    since: datetime
    message: str
    noticed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunActivity:
    """One run at one look. What the backend cannot measure is None."""

    printed: int = 0  # bytes of output so far
    said: object = None  # what it last reported of its progress; None: it never did
    cpu_seconds: float | None = None
    disk_bytes: int | None = None
    gpu: float | None = None  # the busiest of its GPUs since the last look


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """The state of a run between two looks."""

    sign: RunActivity
    begun_at: datetime
    seen_at: datetime
    spoke_at: datetime
    worked_at: datetime


def felt(before: Pulse | None, sign: RunActivity, now: datetime, pace: timedelta) -> Pulse:
    """The pulse after one more look."""
    if before is None or now < before.seen_at or now - before.seen_at > max(GAP * pace, LEAST_GAP):
        return Pulse(sign=sign, begun_at=now, seen_at=now, spoke_at=now, worked_at=now)
    old, passed = before.sign, (now - before.seen_at).total_seconds()
    spoke = sign.printed != old.printed or sign.said != old.said
    worked = (sign.gpu or 0.0) >= GPU_SHARE or (
        passed > 0
        and (
            _grown(old.cpu_seconds, sign.cpu_seconds) / passed >= BUSY_SHARE
            or _grown(old.disk_bytes, sign.disk_bytes) / passed >= DISK_PACE
        )
    )
    return replace(
        before,
        sign=sign,
        seen_at=now,
        spoke_at=now if spoke else before.spoke_at,
        worked_at=now if worked else before.worked_at,
    )


def _grown(old: float | None, new: float | None) -> float:
    return new - old if old is not None and new is not None else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLife:
    """One replica, as `judge` takes it: alive with a pulse, or succeeded at `done_at`."""

    task: str
    pulse: Pulse | None = None
    done_at: datetime | None = None  # ended well
    waited_for: bool = True  # False for replicas that never end by themselves (parameter servers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    kind: StallKind
    since: datetime
    done: tuple[str, ...] = ()  # tasks that have succeeded, in order of time


def judge(rule: HangRule, lives: Sequence[ReplicaLife], now: datetime) -> Stall | None:
    """Whether the whole job stands still, since when, and how. One active replica is enough to be alive."""
    pulses = [life.pulse for life in lives if life.pulse is not None]
    if not pulses:
        return None
    silent = max(pulse.spoke_at for pulse in pulses)
    still = max(silent, *(pulse.worked_at for pulse in pulses))
    watched = rule.watches(len(lives))
    if watched and now - still >= rule.after:
        return Stall(kind=StallKind.STILL, since=still)
    done = sorted((life.done_at, life.task) for life in lives if life.done_at is not None)
    left = any(life.pulse is not None and life.waited_for for life in lives)
    if done and left and rule.watches_exits(len(lives)):
        since = max(silent, done[0][0])
        if now - since >= rule.exit_after:
            return Stall(kind=StallKind.EXIT, since=since, done=tuple(task for _, task in done))
    if watched and any(pulse.sign.said is not None for pulse in pulses) and now - silent >= rule.after:
        return Stall(kind=StallKind.BUSY, since=silent)
    return None


def is_over(suspicion: Suspicion, lives: Sequence[ReplicaLife]) -> bool:
    """Whether the job was seen to move since. A pulse that only began (a new server) is no movement."""
    for life in lives:
        if (pulse := life.pulse) is None:
            continue
        spoke = pulse.spoke_at > max(pulse.begun_at, suspicion.noticed_at)
        worked = pulse.worked_at > max(pulse.begun_at, suspicion.noticed_at)
        if spoke or (worked and suspicion.kind is StallKind.STILL):
            return True
    return False

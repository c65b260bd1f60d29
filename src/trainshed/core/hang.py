"""Whether a job hangs: the rule a person gives, and the judge. Pure: no clock, no files.

A judge is fed with signs of life, one per run and look, and keeps of each run a pulse: when it last *spoke*
(printed, or reported a step) and when it last *worked* (used CPU, disk or a GPU to speak of). What it has not
seen it does not hold against anybody: a run begins to be still when it is first seen, and again after a gap
in which nobody looked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

BUSY_SHARE = 0.05  # of a core: watchdogs and sleeping loops use less, whatever computes uses more
GPU_SHARE = 0.02  # of a GPU's time
DISK_PACE = 65536.0  # bytes a second
LOOKS = 20  # in the time after which a job counts as hung
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(seconds=60)  # between two looks
GAP = 5  # looks left out, after which nothing is known of what happened meanwhile ...
LEAST_GAP = timedelta(seconds=30)  # ... but looking at stacks may take this long

_OFF = timedelta()


class HangPolicy(StrEnum):
    WARN = "WARN"
    RESTART = "RESTART"  # a new attempt of the whole job, while it has retries left
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True, kw_only=True)
class HangRule:
    """When a job counts as hung, and what is done then. Zero: not watched."""

    after: timedelta = timedelta(minutes=20)  # nothing moves
    exit_after: timedelta = timedelta(minutes=10)  # a replica is done, the others are silent and do not end
    policy: HangPolicy = HangPolicy.WARN
    asked: bool = False  # said by a person; else only jobs of several replicas are watched

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
    BUSY = "BUSY"  # computes, but the steps it used to report do not come: to be confirmed by its stacks
    EXIT = "EXIT"  # a replica is done, the others are silent and do not end


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A hang that has been told of and is not over."""

    kind: StallKind
    since: datetime
    message: str
    noticed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunActivity:
    """One run at one look. What cannot be told is None."""

    printed: int = 0  # bytes of output so far
    said: object = None  # what it last reported of its progress; None: it never did
    cpu_seconds: float | None = None
    disk_bytes: int | None = None
    gpu: float | None = None  # the busiest of its GPUs since the last look


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What is remembered of a run between looks."""

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
    """One replica to the judge: alive with a pulse, or done since."""

    task: str
    pulse: Pulse | None = None
    done_at: datetime | None = None  # ended well
    waited_for: bool = True  # it should end by itself, as parameter servers do not


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    kind: StallKind
    since: datetime
    done: tuple[str, ...] = ()  # those that have ended well, the first first


def judge(rule: HangRule, lives: Sequence[ReplicaLife], now: datetime) -> Stall | None:
    """Whether the job as a whole stands still, since when, and in which way. One that moves moves the job."""
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
    """Whether it was seen to move since. That nothing is known of it (a new server) is no movement."""
    for life in lives:
        if (pulse := life.pulse) is None:
            continue
        spoke = pulse.spoke_at > max(pulse.begun_at, suspicion.noticed_at)
        worked = pulse.worked_at > max(pulse.begun_at, suspicion.noticed_at)
        if spoke or (worked and suspicion.kind is StallKind.STILL):
            return True
    return False

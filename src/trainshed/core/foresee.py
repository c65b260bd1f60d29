"""foresee: when a waiting job may start, by playing the queue forward with the scheduler's own rule.

Three plays: every job ends as soon as such jobs ever do, as such jobs usually do, and only with its
timeout. Where no job like one of those that have to end before has ended yet, there is no usual, and none
is told. Later jobs of higher priority are not foreseen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from trainshed.core.admit import Cycle, order
from trainshed.core.explanation import Eta, World
from trainshed.core.history import RemainingTime, rest
from trainshed.core.job import Job
from trainshed.core.waiting_jobs import WaitingJobs

MOST_WORK = 30_000  # of one play, in questions times those that hold something: bounds the cost
A_CYCLE = 50  # what a cycle costs of that before it asks anything
PASSERS = 10  # jobs behind this one are played too, as they may pass it: so many of them
NAMED = 3


@dataclass(frozen=True, slots=True)
class _Play:
    """How one play went: when the job started (None: never) and who had to end before."""

    at: datetime | None
    whole: bool = True  # False: given up there, the start is later
    ended: tuple[str, ...] = ()


def foresee(world: World, job: Job) -> Eta | None:
    """None for a job that cannot start on these machines, however long it waits."""
    guess = _guesses(world)
    soon = _play(world, job, lambda id: guess(id).least)
    usual = _play(world, job, lambda id: _or(guess(id).likely, guess(id).most))
    slow = _play(world, job, lambda id: guess(id).most)
    if soon.at is None or usual.at is None or slow.at is None:
        return None
    unknown = {id for id in (*usual.ended, *slow.ended) if guess(id).likely is None}
    known = usual.whole and not unknown.intersection(usual.ended)
    # A job that ends sooner may let another in that holds more for longer: plays are not always in order.
    times = [soon.at, slow.at] if not known else [soon.at, usual.at, slow.at]
    earliest, latest = min(times), max(times)
    return Eta(
        earliest=earliest,
        likely=usual.at if known else None,
        latest=latest if slow.whole else None,
        basis=_basis(world, slow, {*usual.ended, *slow.ended}, unknown),
    )


def _guesses(world: World) -> Callable[[str], RemainingTime]:
    """How long a job, once it holds something, goes on from now or from then."""
    jobs = {job.id: job for job in (*world.running, *world.waiting)}
    until = {item.job: item.until for item in world.snapshot.held}

    @cache
    def guess(id: str) -> RemainingTime:
        if id in jobs:
            return rest(world.history, jobs[id], world.now)
        return RemainingTime(timedelta(), None, max(until[id] - world.now, timedelta()))

    return guess


def _play(world: World, job: Job, length: Callable[[str], timedelta]) -> _Play:
    now, held = world.now, {h.job: h for h in world.snapshot.held}
    ends = {id: now + length(id) for id in held}
    ahead = sorted({j.id: j for j in (*world.waiting, job)}.values(), key=order)
    waiting = WaitingJobs(ahead[: ahead.index(job) + 1 + PASSERS])
    ended: list[str] = []
    work = 0
    while work < MOST_WORK:
        work += A_CYCLE
        cycle = Cycle(replace(world.snapshot, held=tuple(held.values())), now)
        for other in waiting.in_order(cycle.refused):
            work += 10 + len(held)
            if cycle.is_over:
                break
            if cycle.answer(other).admission is None:
                continue
            if other.id == job.id:
                return _Play(now, ended=tuple(ended))
            held[other.id] = cycle.held[-1]
            ends[other.id] = now + length(other.id)
        for id in held:
            waiting.remove(id)
        if not held:
            return _Play(None)
        now = max(now, min(ends.values()))
        for id in [id for id, at in ends.items() if at <= now]:
            ended.append(id)
            del held[id], ends[id]
    return _Play(now, whole=False, ended=tuple(ended))


def _or(length: timedelta | None, otherwise: timedelta) -> timedelta:
    return otherwise if length is None else length


def _basis(world: World, slow: _Play, ended: set[str], unknown: set[str]) -> str:
    """From what it is known, in a few sentences."""
    if not slow.ended and slow.whole:
        return "There is room for it now."
    by_id = {job.id: job for job in (*world.running, *world.waiting)}
    known: dict[str, str] = {}
    strange: dict[str, str] = {}
    overdue: dict[str, str] = {}
    for id in sorted(ended):
        name = by_id[id].display_name if id in by_id else id
        runs = len(world.history.of(by_id[id])) if id in by_id else 0
        if id not in unknown and runs:
            known[name] = f"{runs} of '{name}'"
        elif id in unknown:
            (overdue if runs else strange)[name] = f"'{name}'"
    parts: list[str] = []
    if known:
        parts.append(f"From earlier runs: {_listed(known)}.")
    if overdue:
        parts.append(f"{_listed(overdue)}: runs longer than any like it before.")
    if strange:
        parts.append(f"No job like {_listed(strange)} has ended before.")
    if slow.whole:
        parts.append("The latest is if each uses its whole timeout.")
    else:
        parts.append(f"More than {len(slow.ended)} jobs have to end before it: too far to see the latest.")
    return " ".join([*parts, "Jobs of higher priority that are still to come are not counted."])


def _listed(found: dict[str, str]) -> str:
    names = list(found.values())
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more

"""foresee: when a waiting job may start, by simulating the queue with the scheduler's own rule. Pure.

`core/why.py` calls it. It runs three simulations: every job ends as early as such jobs ever did, as such jobs
usually do, and at its timeout. Where no earlier run like one of the jobs that must end is known, no usual
time is given. Jobs of higher priority that are submitted later are not considered.
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

MOST_WORK = 30_000  # of one simulation, in answers times running jobs: bounds the cost
A_CYCLE = 50  # the fixed cost of a cycle in the same unit
PASSERS = 10  # jobs behind this one that are simulated too, because they may pass it
NAMED = 3


@dataclass(frozen=True, slots=True)
class _Simulation:
    """The result of one simulation: when the job started (None: never), and which jobs ended before."""

    at: datetime | None
    whole: bool = True  # False: it was stopped at MOST_WORK; the start is later
    ended: tuple[str, ...] = ()


def foresee(world: World, job: Job) -> Eta | None:
    """None for a job that cannot start on these machines, however long it waits."""
    guess = _guesses(world)
    soon = _simulate(world, job, lambda id: guess(id).least)
    usual = _simulate(world, job, lambda id: _or(guess(id).likely, guess(id).most))
    slow = _simulate(world, job, lambda id: guess(id).most)
    if soon.at is None or usual.at is None or slow.at is None:
        return None
    unknown = {id for id in (*usual.ended, *slow.ended) if guess(id).likely is None}
    known = usual.whole and not unknown.intersection(usual.ended)
    # A job that ends sooner may let a larger and longer one in: the three times are not always in order.
    times = [soon.at, slow.at] if not known else [soon.at, usual.at, slow.at]
    earliest, latest = min(times), max(times)
    return Eta(
        earliest=earliest,
        likely=usual.at if known else None,
        latest=latest if slow.whole else None,
        basis=_basis(world, slow, {*usual.ended, *slow.ended}, unknown),
    )


def _guesses(world: World) -> Callable[[str], RemainingTime]:
    """How long a job will run, from now or from its start."""
    jobs = {job.id: job for job in (*world.running, *world.waiting)}
    until = {item.job: item.until for item in world.snapshot.held}

    @cache
    def guess(id: str) -> RemainingTime:
        if id in jobs:
            return rest(world.history, jobs[id], world.now)
        return RemainingTime(timedelta(), None, max(until[id] - world.now, timedelta()))

    return guess


def _simulate(world: World, job: Job, length: Callable[[str], timedelta]) -> _Simulation:
    now, running = world.now, {h.job: h for h in world.snapshot.held}
    ends = {id: now + length(id) for id in running}
    ahead = sorted({j.id: j for j in (*world.waiting, job)}.values(), key=order)
    waiting = WaitingJobs(ahead[: ahead.index(job) + 1 + PASSERS])
    ended: list[str] = []
    work = 0
    while work < MOST_WORK:
        work += A_CYCLE
        cycle = Cycle(replace(world.snapshot, held=tuple(running.values())), now)
        for other in waiting.in_order(cycle.refused):
            work += 10 + len(running)
            if cycle.is_over:
                break
            if cycle.answer(other).admission is None:
                continue
            if other.id == job.id:
                return _Simulation(now, ended=tuple(ended))
            running[other.id] = cycle.held[-1]
            ends[other.id] = now + length(other.id)
        for id in running:
            waiting.remove(id)
        if not running:
            return _Simulation(None)
        now = max(now, min(ends.values()))
        for id in [id for id, at in ends.items() if at <= now]:
            ended.append(id)
            del running[id], ends[id]
    return _Simulation(now, whole=False, ended=tuple(ended))


def _or(length: timedelta | None, otherwise: timedelta) -> timedelta:
    return otherwise if length is None else length


def _basis(world: World, slow: _Simulation, ended: set[str], unknown: set[str]) -> str:
    """What the estimate is based on, in a few sentences."""
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


def _listed(sentences: dict[str, str]) -> str:
    names = list(sentences.values())
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more

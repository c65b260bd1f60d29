"""foresee: when a waiting job may start, by simulating the queue with the scheduler's own rule. Pure.

`core/explain/why.py` calls it for one job, `service/queue.py` for the first of the queue. It runs three
simulations: every job ends as early as such jobs ever did, as such jobs usually do, and at its timeout. Where
no job of the same project ever ran for so long as one of those that must end, no usual time is given. Jobs of
higher priority that are submitted later are not considered.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from trainshed.core.explain.explanation import Eta, World
from trainshed.core.explain.history import RemainingTime, rest
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import Cycle, in_turn
from trainshed.core.queue.refusal import UNNAMED
from trainshed.core.queue.waiting_jobs import WaitingJobs

MOST_WORK = 30_000  # of one simulation, in answers times running jobs: bounds the cost
A_CYCLE = 50  # the fixed cost of a cycle in the same unit
PASSERS = 10  # jobs behind this one that are simulated too, because they may pass it
NAMED = 3


@dataclass(frozen=True, slots=True)
class _SimulatedStart:
    """When the job started in one simulation (None: never), and which jobs ended before."""

    at: datetime | None
    whole: bool = True  # False: it was stopped at MOST_WORK; the start is later
    ended: tuple[str, ...] = ()


def foresee(world: World, job: Job) -> Eta | None:
    """None for a job that cannot start on these machines, however long it waits."""
    return foresee_several(world, (job,)).get(job.id)


def foresee_several(world: World, jobs: Sequence[Job]) -> dict[str, Eta]:
    """By the jobs' ids, for little more than the last of them alone would cost.

    A job that cannot start on these machines, however long it waits, is left out.
    """
    guess, wanted = _guesses(world), {job.id for job in jobs}
    everyone = tuple({job.id: job for job in (*world.waiting, *jobs)}.values())
    ahead = in_turn(world.snapshot, everyone, world.now)
    last = max((at for at, job in enumerate(ahead) if job.id in wanted), default=-1)
    queue = ahead[: last + 1 + PASSERS]
    soon = _simulate(world, queue, wanted, lambda id: guess(id).least)
    usual = _simulate(world, queue, wanted, lambda id: _or(guess(id).likely, guess(id).most))
    slow = _simulate(world, queue, wanted, lambda id: guess(id).most)
    etas: dict[str, Eta] = {}
    for id in wanted:
        if (eta := _eta(world, guess, soon[id], usual[id], slow[id])) is not None:
            etas[id] = eta
    return etas


def _eta(
    world: World,
    guess: Callable[[str], RemainingTime],
    soon: _SimulatedStart,
    usual: _SimulatedStart,
    slow: _SimulatedStart,
) -> Eta | None:
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
        basis=_basis(world, slow, {id: guess(id) for id in (*usual.ended, *slow.ended)}),
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


def _simulate(
    world: World, queue: Sequence[Job], wanted: set[str], length: Callable[[str], timedelta]
) -> dict[str, _SimulatedStart]:
    """The start of each wanted job; the queue is in order."""
    now, running = world.now, {h.job: h for h in world.snapshot.held}
    ends = {id: now + length(id) for id in running}
    waiting, missing = WaitingJobs(queue, world.snapshot.sites, world.snapshot.tree), set(wanted)
    pauses = [at for job in queue if job.status.requeue and (at := job.status.requeue.pauses_until)]
    starts: dict[str, _SimulatedStart] = {}
    ended: list[str] = []
    work = 0
    while missing and work < MOST_WORK:
        work += A_CYCLE
        earmarks = {
            id: replace(mark, left=tuple(item for item in mark.left if item.job in running))
            for id, mark in world.snapshot.earmarks.items()
            if id in waiting
        }
        snapshot = replace(world.snapshot, held=tuple(running.values()), earmarks=earmarks)
        cycle = Cycle(snapshot, now, waiting)
        for other in cycle.walk(waiting):
            work += 10 + len(running)
            if cycle.is_over:
                break
            if cycle.answer(other).admission is None:
                continue
            running[other.id] = cycle.held[-1]
            ends[other.id] = now + length(other.id)
            if other.id in missing:
                starts[other.id] = _SimulatedStart(now, ended=tuple(ended))
                missing.discard(other.id)
                if not missing:
                    return starts
        for id in running:
            waiting.remove(id)
        later = [*ends.values(), *(until for until in pauses if until > now)]
        if not later:
            return starts | dict.fromkeys(missing, _SimulatedStart(None))
        now = max(now, min(later))
        for id in [id for id, at in ends.items() if at <= now]:
            ended.append(id)
            del running[id], ends[id]
    return starts | dict.fromkeys(missing, _SimulatedStart(now, whole=False, ended=tuple(ended)))


def _or(length: timedelta | None, otherwise: timedelta) -> timedelta:
    return otherwise if length is None else length


def _basis(world: World, slow: _SimulatedStart, ended: Mapping[str, RemainingTime]) -> str:
    """What the estimate is based on, in a few sentences."""
    if not slow.ended and slow.whole:
        return "There is room for it now."
    by_id = {job.id: job for job in (*world.running, *world.waiting)}
    known: dict[str, str] = {}
    guessed: dict[str, str] = {}
    strange: dict[str, str] = {}
    overdue: dict[str, str] = {}
    for id in sorted(ended):
        name = by_id[id].display_name if id in by_id else id
        name = name if world.shown(id) else UNNAMED
        runs = len(world.history.of(by_id[id])) if id in by_id else 0
        if ended[id].likely is not None and runs and ended[id].is_own:
            known[name] = f"{runs} of '{name}'"
        elif ended[id].likely is not None and not ended[id].is_own:
            guessed[name] = f"'{name}'"
        elif ended[id].likely is None:
            (overdue if runs else strange)[name] = f"'{name}'"
    parts: list[str] = []
    if known:
        parts.append(f"From earlier runs: {_listed(known)}.")
    if guessed:
        parts.append(f"{_listed(guessed)}: guessed from other jobs of the same user or project.")
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

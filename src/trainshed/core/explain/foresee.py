"""foresee: when a waiting job may start, by simulating the queue with the scheduler's own rule. Pure.

`core/explain/why.py` calls it for one job, `service/queue.py` for the first of the queue. In one simulation
every job ends as early as such jobs ever did, in one at its timeout. In five each takes as long as one of
those before it, each time another one, and as many jobs come as came of late. The middle of these five is the
likely time where three are within a tenth of the wait of it, or a minute; else the five are a range. One in
which a job must end that runs longer than any of its project ever did tells nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from zlib import crc32

from trainshed.core.explain.arrivals import TO_COME, original, to_come
from trainshed.core.explain.explanation import Eta, World, lasting
from trainshed.core.explain.history import RemainingTime, rest
from trainshed.core.explain.simulate import SimulatedStart, Simulation
from trainshed.core.jobs.job import Job, Status
from trainshed.core.queue.admit import in_turn
from trainshed.core.queue.refusal import UNNAMED
from trainshed.core.queue.waiting_jobs import WaitingJobs

PASSERS = 10  # jobs behind this one that are simulated too, because they may pass it
PLAYS = 5
AGREEING = 3  # of them, so that there is a likely time
NEAR, SECONDS = 0.1, timedelta(minutes=1)  # of the wait, or so much: so far from each other they may be
NAMED = 3

Guess = Callable[[str], RemainingTime]


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
    queue = WaitingJobs(ahead[: last + 1 + PASSERS], world.snapshot.sites, world.snapshot.tree)
    soon = Simulation(world, lambda id: guess(id).least, queue.copy()).starts(wanted)
    slow = Simulation(world, lambda id: guess(id).most, queue.copy()).starts(wanted)
    plays = [_play(world, queue, wanted, guess, number) for number in range(PLAYS)]
    etas: dict[str, Eta] = {}
    for id in wanted:
        if (eta := _eta(world, guess, soon[id], slow[id], [play[id] for play in plays])) is not None:
            etas[id] = eta
    return etas


def _play(
    world: World, queue: WaitingJobs, wanted: set[str], guess: Guess, number: int
) -> dict[str, SimulatedStart]:
    """Each job takes as long as another run before it in each play. Not all have short ones at once."""

    def length(id: str) -> timedelta:
        return guess(id).at(((number + crc32(id.encode())) % PLAYS + 0.5) / PLAYS)

    coming = to_come(world.arrivals, world.now, number / PLAYS)
    return Simulation(world, length, queue.copy()).starts(wanted, coming, is_rough=True)


def _eta(
    world: World, guess: Guess, soon: SimulatedStart, slow: SimulatedStart, plays: Sequence[SimulatedStart]
) -> Eta | None:
    if soon.at is None or slow.at is None or any(play.at is None for play in plays):
        return None
    ended = {id for play in plays for id in play.ended if not id.startswith(TO_COME)}
    unknown = {id for id in ended if guess(id).likely is None}
    starts = [p.at for p in plays if p.at is not None and p.whole and unknown.isdisjoint(p.ended)]
    likely = _agreed(starts, world.now)
    # A job that ends sooner may let a larger and longer one in: the times are not always in order.
    times = [soon.at, slow.at, *starts]
    between = (min(starts), max(starts)) if len(starts) == PLAYS else None
    is_range = likely is None and between is not None
    return Eta(
        earliest=min(times),
        likely=likely,
        latest=max(times) if slow.whole else None,
        basis=_basis(world, slow, {id: guess(id) for id in {*ended, *slow.ended}}, is_range=is_range),
        between=between,
    )


def _agreed(starts: Sequence[datetime], now: datetime) -> datetime | None:
    """The middle of all plays, where so many of them are near it. Those that tell nothing count as later."""
    if len(starts) < AGREEING:
        return None
    middle = sorted(starts)[PLAYS // 2]
    near = max(NEAR * (middle - now), SECONDS)
    return middle if sum(abs(at - middle) <= near for at in starts) >= AGREEING else None


def _guesses(world: World) -> Guess:
    """How long a job will run, from now or from its start."""
    jobs = {job.id: job for job in (*world.running, *world.waiting)}
    late = {job.id: job for job in world.arrivals.jobs}
    until = {item.job: item.until for item in world.snapshot.held}

    @cache
    def like(id: str) -> RemainingTime:
        return rest(world.history, replace(late[id], status=Status()), world.now)

    @cache
    def guess(id: str) -> RemainingTime:
        if id.startswith(TO_COME):
            return like(original(id))
        if id in jobs:
            return rest(world.history, jobs[id], world.now)
        return RemainingTime(timedelta(), None, max(until[id] - world.now, timedelta()))

    return guess


def _basis(world: World, slow: SimulatedStart, ended: Mapping[str, RemainingTime], *, is_range: bool) -> str:
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
        parts.append(f"{_listed(guessed)}: guessed from other jobs of the same project.")
    if overdue:
        parts.append(f"{_listed(overdue)}: runs longer than any like it before.")
    if strange:
        parts.append(f"No job like {_listed(strange)} has ended before.")
    if is_range:
        parts.append("These took too differently for a single time.")
    if slow.whole:
        parts.append("The latest is if each uses its whole timeout.")
    else:
        parts.append(f"More than {len(slow.ended)} jobs have to end before it: too far to see the latest.")
    return " ".join([*parts, _counted(world)])


def _counted(world: World) -> str:
    """What is assumed of jobs that are still to come."""
    if (since := world.arrivals.since) is None or not world.arrivals.jobs:
        return "Jobs that are still to come are not counted."
    many, period = len(world.arrivals.jobs), lasting(world.now - since)
    came = "1 job was" if many == 1 else f"{many} jobs were"
    return f"{came} submitted in the last {period}: for what is likely, as many are to come."


def _listed(sentences: dict[str, str]) -> str:
    names = list(sentences.values())
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more

"""foresee: when a waiting job may start, by playing the queue forward with the scheduler's own rule.

Three plays: every job ends as soon as such jobs ever do, as such jobs usually do, and only with its
timeout. Where no job like one of those that have to end before has ended yet, there is no usual, and none
is told. Later jobs of higher priority are not foreseen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainshed.core.admit import Reservation, admit, order
from trainshed.core.explanation import Eta, World
from trainshed.core.history import RemainingTime, rest
from trainshed.core.job import Job

MOST_WORK = 30_000  # of one play, in questions times those that hold something: bounds the cost
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
    guesses = _guesses(world)
    unknown = {id for id, guess in guesses.items() if guess.likely is None}

    soon = _play(world, job, lambda id: guesses[id].least)
    usual = _play(world, job, lambda id: _or(guesses[id].likely, guesses[id].most))
    slow = _play(world, job, lambda id: guesses[id].most)
    if soon.at is None or usual.at is None or slow.at is None:
        return None
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


def _guesses(world: World) -> dict[str, RemainingTime]:
    """How long each job, once it holds something, goes on from now or from then."""
    found = {job.id: rest(world.history, job, world.now) for job in (*world.running, *world.waiting)}
    for held in world.snapshot.held:
        most = max(held.until - world.now, timedelta())
        found.setdefault(held.job, RemainingTime(timedelta(), None, most))
    return found


def _play(world: World, job: Job, length: Callable[[str], timedelta]) -> _Play:
    now, held = world.now, {h.job: h for h in world.snapshot.held}
    ends = {id: now + length(id) for id in held}
    ahead = sorted({j.id: j for j in (*world.waiting, job)}.values(), key=order)
    waiting: list[Job] = ahead[: ahead.index(job) + 1 + PASSERS]
    ended: list[str] = []
    work = 0
    while work < MOST_WORK:
        work += len(waiting) * (10 + len(held))
        snapshot = replace(world.snapshot, held=tuple(held.values()))
        for verdict in admit(snapshot, waiting, now):
            if verdict.admission is None:
                continue
            one = verdict.job
            if one.id == job.id:
                return _Play(now, ended=tuple(ended))
            until = now + one.spec.scheduling.timeout
            places = verdict.admission.placements
            held[one.id] = Reservation(
                job=one.id, display_name=one.display_name, placements=places, until=until
            )
            ends[one.id] = now + length(one.id)
        waiting = [one for one in waiting if one.id not in held]
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

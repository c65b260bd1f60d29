"""change: which single field, set differently, would start a waiting job now. Pure.

`core/explain/why.py` calls it. Every change it names has been tried: the scheduler's own rule admits the job
in the changed world. A field of the job is tried as a person would change it: the job is cancelled and
submitted again, last of its priority. The search is bounded: it may miss a change, but never names one that
does not work.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice, takewhile
from typing import TypeVar

from trainshed.core.explain.explanation import NEWEST, Change, ChangeCost, World, lasting
from trainshed.core.jobs.job import Job, JobSpec, Outcome, Pool
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.place import Amount, needs, total
from trainshed.core.queue.shape import order
from trainshed.core.queue.snapshot import Snapshot
from trainshed.core.queue.waiting_jobs import WaitingJobs

MOST_ANSWERS = 3000  # of the scheduler's rule for one explanation: bounds the cost
MOST_OTHERS = 10  # how many other jobs are tried to be cancelled
MOST_PRIORITY = 2**31 - 1  # what the wire can carry
SPEC, POOL = "jobSpec.scheduling", "jobSpec.workerPoolSpecs"
_SIZE = re.compile(r"-\d+[a-z]*$")
_TOLLS = list(ChangeCost)

T = TypeVar("T")


def changes(world: World, job: Job) -> tuple[Change, ...]:
    """All changes that work, by whom they cost something: nobody, the job itself, the queue, another job."""
    trials = _Trials(world, job)
    working = [
        *_timeout(trials),
        *_accelerators(trials),
        *_replicas(trials),
        *_machines(trials),
        *_priority(trials),
        *_others(trials),
    ]
    return tuple(sorted(working, key=lambda c: (_TOLLS.index(c.toll), c.loss)))


@dataclass(slots=True)
class _Trials:
    world: World
    job: Job
    left: int = MOST_ANSWERS
    queue: WaitingJobs = field(init=False)
    # By priority: a cycle that has answered all jobs before one that is submitted now.
    cycles: dict[int, Cycle] = field(default_factory=dict[int, Cycle])

    def __post_init__(self) -> None:
        self.queue = WaitingJobs(self.world.waiting, self.world.snapshot.sites, self.world.snapshot.tree)

    def again(self, spec: JobSpec) -> bool:
        """Whether the job starts now if it is cancelled and submitted again with this spec."""
        created_at = max(self.world.now, self.job.created_at)
        new = replace(self.job, id=NEWEST, spec=spec, created_at=created_at)
        priority = spec.scheduling.priority
        self.left -= 1
        if self.world.snapshot.tree is not None:  # rights depend on what the job asks for
            return self.left >= 0 and self._starts_by_shares(new, self.world.snapshot)
        if priority not in self.cycles:
            self.cycles[priority] = self._up_to(new, self.world.snapshot)
        return self.left >= 0 and self.cycles[priority].copy().answer(new).admission is not None

    def without(self, other: str) -> bool:
        """Whether the unchanged job starts as soon as the other one is gone."""
        remaining = tuple(h for h in self.world.snapshot.held if h.job != other)
        snapshot = replace(self.world.snapshot, held=remaining)
        if self.left <= 0:
            return False
        if snapshot.tree is not None:
            return self._starts_by_shares(self.job, snapshot, other)
        return self._up_to(self.job, snapshot, other).answer(self.job).admission is not None

    def ahead(self, most: int) -> list[Job]:
        """The first so many jobs before this one, as a cycle would try them now."""
        snapshot = self.world.snapshot
        turn = None if snapshot.tree is None else Cycle(snapshot, self.world.now, self.queue).turn
        queue = takewhile(lambda other: other.id != self.job.id, self.queue.in_order((), turn))
        return list(islice(queue, most))

    def _up_to(self, job: Job, snapshot: Snapshot, without: str = "") -> Cycle:
        """A cycle that has answered the jobs before this one, except itself and the one that is gone."""
        cycle = Cycle(snapshot, self.world.now)
        for other in self.queue.in_order(cycle.refused):
            if cycle.is_over or order(other) >= order(job):
                break  # jobs behind this one do not change its answer
            if other.id not in (self.job.id, without):
                cycle.answer(other)
                self.left -= 1
        return cycle

    def _starts_by_shares(self, job: Job, snapshot: Snapshot, without: str = "") -> bool:
        """Whether the job starts now where shares are set: whose turn it is depends on all that wait.

        The one queue has it in place of the unchanged job, and lacks the one that is gone, as long as that
        is asked: to make another of all that wait costs more than the answers.
        """
        gone = [known for id in {self.job.id, job.id, without} if (known := self.queue.get(id)) is not None]
        for other in gone:
            self.queue.remove(other.id)
        self.queue.put(job, snapshot.sites.get(job.id, ()))
        try:
            cycle = Cycle(snapshot, self.world.now, self.queue)
            for other in cycle.walk(self.queue):
                if cycle.is_over or other.id == job.id:
                    break
                cycle.answer(other)
                self.left -= 1
            return cycle.answer(job).admission is not None
        finally:
            self.queue.remove(job.id)
            for other in gone:
                self.queue.put(other, snapshot.sites.get(other.id, ()))


def _first(options: Sequence[T], works: Callable[[T], bool]) -> T | None:
    """The smallest change that works, by bisection. The options are sorted from the largest change."""
    if not options or not works(options[0]):
        return None
    good, bad = 0, len(options)
    while bad - good > 1:
        middle = (good + bad) // 2
        if works(options[middle]):
            good = middle
        else:
            bad = middle
    return options[good]


def _timeout(trials: _Trials) -> Iterator[Change]:
    """A timeout so short that the job is over when the first in the queue could start."""
    spec, now = trials.job.spec, trials.world.now
    own = trials.world.history.of(trials.job)
    least = max(timedelta(seconds=1), *own) if own else timedelta(seconds=1)
    lengths = {_round(item.until - now) for item in trials.world.snapshot.held}
    options = sorted(length for length in lengths if least <= length < spec.scheduling.timeout)

    def with_timeout(length: timedelta) -> JobSpec:
        return replace(spec, scheduling=replace(spec.scheduling, timeout=length))

    best = _first(options, lambda length: trials.again(with_timeout(length)))
    if best is not None:
        before, after = spec.scheduling.timeout, best
        yield Change(
            field=f"{SPEC}.timeout",
            before=f"{before.total_seconds():g}s",
            after=f"{after.total_seconds():.0f}s",
            sentence=f"Submit it with a timeout of {lasting(after)} instead of {lasting(before)}: "
            "it may then go before the first in the queue, which it does not delay.",
            toll=ChangeCost.NOBODY,
            loss=1 - after / before,
        )


def _round(length: timedelta) -> timedelta:
    """A little less, in round numbers, because a person needs time to submit the job again."""
    seconds = length.total_seconds()
    seconds -= max(10.0, seconds * 0.02)
    unit = 3600 if seconds >= 86400 else 60 if seconds >= 3600 else 1
    return timedelta(seconds=seconds // unit * unit)


def _replicas(trials: _Trials) -> Iterator[Change]:
    for number, pool in enumerate(trials.job.spec.pools):
        best = _first(
            range(1, pool.replicas),
            lambda count, at=number, old=pool: trials.again(
                _with(trials, {at: replace(old, replicas=count)})
            ),
        )
        if best is not None:
            yield Change(
                field=f"{POOL}[{number}].replicaCount",
                before=str(pool.replicas),
                after=str(best),
                sentence=f"Submit it with {best} instead of {pool.replicas} replicas in pool {number}.",
                toll=ChangeCost.ITSELF,
                loss=_loss(trials, {number: replace(pool, replicas=best)}),
            )


def _accelerators(trials: _Trials) -> Iterator[Change]:
    for number, pool in enumerate(trials.job.spec.pools):
        machine = trials.world.catalogue.machines.get(pool.machine_type)
        if pool.is_empty or (machine and machine.accelerators):
            continue  # the GPUs are part of the machine type: see _machines
        best = _first(
            range(pool.accelerators),
            lambda count, at=number, old=pool: trials.again(_with(trials, {at: _with_gpus(old, count)})),
        )
        if best is not None:
            yield Change(
                field=f"{POOL}[{number}].machineSpec.acceleratorCount",
                before=str(pool.accelerators),
                after=str(best),
                sentence=f"Submit it with {best or 'no'} {pool.accelerator} instead of {pool.accelerators} "
                f"for each replica of pool {number}.",
                toll=ChangeCost.ITSELF,
                loss=_loss(trials, {number: _with_gpus(pool, best)}),
            )


def _machines(trials: _Trials) -> Iterator[Change]:
    """A smaller machine for one pool; or for all pools of one machine type, where one is not enough."""
    pools = {n: p for n, p in enumerate(trials.job.spec.pools) if not p.is_empty}
    single = [change for n in pools if (change := _smaller(trials, {n: pools[n]}, f"[{n}]"))]
    yield from single
    types = {p.machine_type for p in pools.values()}
    if not single and len(pools) > 1 and len(types) == 1:
        change = _smaller(trials, pools, "[*]")
        if change is not None:
            yield change


def _smaller(trials: _Trials, pools: dict[int, Pool], which: str) -> Change | None:
    pool = next(iter(pools.values()))
    machines = trials.world.catalogue.machines
    built_in = (known := machines.get(pool.machine_type)) is not None and known.accelerators > 0
    family = [
        m
        for m in machines.values()
        if _SIZE.sub("", m.name) == _SIZE.sub("", pool.machine_type)
        and m.cpus <= pool.cpus
        and m.memory <= pool.memory
        and (m.cpus, m.memory) != (pool.cpus, pool.memory)
    ]
    family.sort(key=lambda m: (m.cpus, m.memory))

    def on(name: str) -> dict[int, Pool]:
        m = machines[name]
        gpus = {"accelerator": m.accelerator, "accelerators": m.accelerators} if built_in else {}
        size = {"machine_type": m.name, "cpus": m.cpus, "memory": m.memory}
        return {n: replace(p, **size, **gpus) for n, p in pools.items()}

    best = _first([m.name for m in family], lambda name: trials.again(_with(trials, on(name))))
    if best is None:
        return None
    where = f"pool {which[1:-1]}" if which != "[*]" else "all pools"
    return Change(
        field=f"{POOL}{which}.machineSpec.machineType",
        before=pool.machine_type,
        after=best,
        sentence=f"Submit it on {best} instead of {pool.machine_type} in {where}.",
        toll=ChangeCost.ITSELF,
        loss=_loss(trials, on(best)),
    )


def _priority(trials: _Trials) -> Iterator[Change]:
    spec = trials.job.spec
    own = spec.scheduling.priority
    others = {j.spec.scheduling.priority for j in trials.world.waiting if j.id != trials.job.id}
    higher = {p for other in others for p in (other, other + 1) if own < p <= MOST_PRIORITY}
    best = _first(
        sorted(higher, reverse=True),
        lambda p: trials.again(replace(spec, scheduling=replace(spec.scheduling, priority=p))),
    )
    if best is not None:
        yield Change(
            field=f"{SPEC}.priority",
            before=str(own),
            after=str(best),
            sentence=f"Submit it with priority {best} instead of {own}: others then wait for it.",
            toll=ChangeCost.QUEUE,
        )


def _others(trials: _Trials) -> Iterator[Change]:
    """Cancel a job before it in the queue; or the smallest running job that makes enough room."""
    for other in trials.ahead(MOST_OTHERS):
        if trials.world.shown(other.id) and trials.without(other.id):
            yield _cancel(other.id, other.display_name, "QUEUED", 0)
            break
    ending = {j.id for j in trials.world.running if _ends(j)}
    everything = max(1.0, sum(n.cpus for n in trials.world.snapshot.nodes))
    sized = [
        (sum(p.cpus for p in h.placements), h) for h in trials.world.snapshot.held if h.job not in ending
    ]
    for cpus, running in sorted(sized, key=lambda pair: (pair[0], pair[1].job))[:MOST_OTHERS]:
        if trials.world.shown(running.job) and trials.without(running.job):
            yield _cancel(running.job, running.display_name, "RUNNING", min(1.0, cpus / everything))
            break


def _ends(job: Job) -> bool:
    closing = job.status.closing
    return job.status.cancel_asked_at is not None or bool(closing and closing.outcome is not Outcome.RETRY)


def _cancel(job: str, name: str, before: str, loss: float) -> Change:
    when = "as soon as it has stopped" if before == "RUNNING" else "at once"
    return Change(
        field="cancel",
        before=before,
        after="CANCELLED",
        sentence=f"Cancel job {job} '{name}': this one then starts {when}.",
        toll=ChangeCost.OTHER,
        loss=loss,
        job=job,
    )


def _with(trials: _Trials, changed: dict[int, Pool]) -> JobSpec:
    spec = trials.job.spec
    return replace(spec, pools=tuple(changed.get(n, p) for n, p in enumerate(spec.pools)))


def _with_gpus(pool: Pool, count: int) -> Pool:
    return replace(pool, accelerators=count, accelerator=pool.accelerator if count else "")


def _loss(trials: _Trials, changed: dict[int, Pool]) -> float:
    """The share of what was asked for that is lost, averaged over the kinds of resource."""
    before, after = total(needs(trials.job.spec)), total(needs(_with(trials, changed)))
    kept = [now / then for now, then in zip(_kinds(after), _kinds(before), strict=True) if then]
    return 1 - sum(kept) / len(kept) if kept else 0


def _kinds(amount: Amount) -> tuple[float, float, float]:
    return amount.cpus, float(amount.memory), float(amount.gpus)

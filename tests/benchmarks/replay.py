"""A replay of a trace of 30 days against the core: how good the forecasts are, and what preemption destroys.

A discrete-event simulation. `SimulatedScheduler` decides as a server does, the trace says how long each job
really runs, and `PastRuns` finds earlier runs as a server finds them. Nothing here decides anything.

The first row asks for the forecast of jobs that have just been submitted and must wait, of every so many
one, as the page of the queue gives it. A likely time is right where the start is within 25 % of the wait, or
a minute; a job may have a range instead. The second row counts who gets a likely time: half of those that
wait should. The third compares the GPU time that preemption destroys with that of a replay that differs in
one thing: among those that may be stopped, the youngest is.

`python -m tests.benchmarks.replay JOBS DAYS` prints the rows for another size.
"""

import asyncio
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import islice, takewhile
from typing import cast

from tests.benchmarks.row import Row, table
from tests.benchmarks.simulated import SimulatedScheduler
from tests.benchmarks.trace import BEGIN, TraceJob, gpus_of, machines_for, nodes_of, trace, tree_of
from trainshed.control.preemption import losses
from trainshed.core.explain.explanation import Eta, World
from trainshed.core.explain.foresee import PASSERS, foresee
from trainshed.core.jobs.job import Job
from trainshed.core.ports import JobPage, Store
from trainshed.core.query import AllOf, Compare, JobQuery, Operator, QueryField
from trainshed.core.queue.admit import in_turn
from trainshed.core.queue.machine import Catalogue
from trainshed.service.past_runs import PastRuns

JOBS, DAYS = 50_000, 30.0
LOAD = 0.9  # of the GPUs
PAUSE = timedelta(seconds=60)  # between two cycles: what happens in between is looked at together
STOPPING = timedelta(seconds=10)  # until a job that is asked to stop has stopped
ASKED = 500  # forecasts
NEAR = 0.25
MINUTE = timedelta(minutes=1)
ZERO = timedelta()


def replayed(jobs: int = JOBS, days: float = DAYS) -> list[Row]:
    items = trace(1, jobs, days)
    nodes = machines_for(items, days, LOAD)
    ours, youngest = Replay(items, nodes), Replay(items, nodes, youngest=True, asked=0)
    for replay in (ours, youngest):
        replay.play()
    given = [id for id, (_, eta) in ours.etas.items() if eta is not None and eta.likely is not None]
    right = sum(ours.is_right(id) for id in given)
    ranges = [inside for id in ours.etas if (inside := ours.is_in_range(id)) is not None]
    asked = max(1, len(ours.etas))
    lost, floor = (replay.lost / timedelta(hours=1) for replay in (ours, youngest))
    size = f"{jobs:,} jobs, {days:g} days, {nodes} nodes"
    return [
        Row(
            what=f"replay of {size}: likely times within 25 %",
            floor=f"{len(given)} given, to {100 * len(given) / asked:.0f} % of {asked} jobs that wait",
            ours=f"{right} right, {100 * right / asked:.0f} % of all that wait",
            value=100 * right / max(1, len(given)),
            goal=80,
            unit="%",
            at_least=True,
        ),
        Row(
            what="the same: jobs that wait and get a likely time",
            floor=f"{len(ranges)} others get a range, {sum(ranges)} start in it",
            ours=f"{len(given)} of {asked}",
            value=100 * len(given) / asked,
            goal=50,
            unit="%",
            at_least=True,
        ),
        Row(
            what="the same: work lost to preemption",
            floor=f"{floor:,.0f} GPU h, youngest first",
            ours=f"{lost:,.0f} GPU h of {ours.used / timedelta(hours=1):,.0f}",
            value=lost / max(floor, 1e-9),
            goal=0.5,
        ),
    ]


@dataclass(slots=True)
class Progress:
    """How far a job has come."""

    item: TraceJob
    saved: timedelta = ZERO  # in its last stored checkpoint
    started: datetime | None = None  # for the last time
    first_start: datetime | None = None

    def stored_at(self, now: datetime) -> datetime | None:
        """When its last checkpoint was stored; None: not since its start."""
        if self.item.checkpoint is None or self.started is None:
            return None
        number = (now - self.started) // self.item.checkpoint
        return self.started + number * self.item.checkpoint if number else None


class KeptJobs:
    """Ended jobs by project and name, and all, newest first: all that `PastRuns` asks a store for."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], list[Job]] = defaultdict(list)
        self._by_project: dict[str, list[Job]] = defaultdict(list)
        self._all: dict[str, Job] = {}  # as they were submitted, or as they ended

    def submit(self, job: Job) -> None:
        self._all[job.id] = job

    def keep(self, job: Job) -> None:
        self._all[job.id] = job
        self._by_name[job.project, job.display_name].append(job)
        self._by_project[job.project].append(job)

    async def find(self, query: JobQuery) -> JobPage:
        jobs: Iterable[Job]
        match query.where:
            case Compare(QueryField.CREATED, Operator.GT, datetime() as since):
                jobs = takewhile(lambda job: job.created_at > since, reversed(self._all.values()))
            case AllOf((Compare(QueryField.DISPLAY_NAME, Operator.EQ, str(name)), _)):
                jobs = reversed(self._by_name.get((query.project, name), []))
            case _:
                jobs = reversed(self._by_project.get(query.project, []))
        found = tuple(islice(jobs, query.limit + 1))
        more = ("", found[query.limit].id) if len(found) > query.limit else None
        return JobPage(jobs=found[: query.limit], next_cursor=more)


@dataclass(slots=True)
class Replay:
    items: Sequence[TraceJob]
    nodes: int
    youngest: bool = False  # whether the youngest are stopped, not those that lose the least
    asked: int = ASKED  # forecasts, evenly over the trace
    lost: timedelta = ZERO  # GPU time
    used: timedelta = ZERO  # GPU time, with what was lost
    preempted: int = 0
    etas: dict[str, tuple[datetime, Eta | None]] = field(
        default_factory=dict[str, tuple[datetime, Eta | None]]
    )
    progress: dict[str, Progress] = field(default_factory=dict[str, Progress])
    scheduler: SimulatedScheduler = field(init=False)
    _kept: KeptJobs = field(default_factory=KeptJobs)
    _events: list[tuple[datetime, int, str]] = field(default_factory=list[tuple[datetime, int, str]])

    def __post_init__(self) -> None:
        self.scheduler = SimulatedScheduler(nodes_of(self.nodes), tree_of(self.nodes))

    def play(self) -> None:
        asyncio.run(self._play())

    async def _play(self) -> None:
        every, due = max(1, len(self.items) // self.asked) if self.asked else 0, 0
        items, numbers = deque(self.items), 0
        now = BEGIN
        while items or self._events:
            following = [items[0].job.created_at] if items else []
            following += [self._events[0][0]] if self._events else []
            now = max(now + PAUSE, min(following))
            while self._events and self._events[0][0] <= now:
                self._happen(*heappop(self._events))
            new: list[Job] = []
            while items and items[0].job.created_at <= now:
                item = items.popleft()
                self.progress[item.job.id] = Progress(item)
                self.scheduler.submit(item.job)
                self._kept.submit(item.job)
                new.append(item.job)
                numbers += 1
            await self._cycle(now)
            if (
                every
                and numbers >= due
                and (waits := [job for job in new if job.id in self.scheduler.waiting])
            ):
                due = numbers + every
                self.etas[waits[-1].id] = now, await self._forecast(waits[-1], now)

    def _happen(self, at: datetime, attempt: int, id: str) -> None:
        """The end of a job, or of its grace; neither where the job has stopped since."""
        job, progress = self.scheduler.running.get(id), self.progress[id]
        if job is None or job.status.attempt != attempt or progress.started is None:
            return
        ran, gpus = at - progress.started, gpus_of(job)
        self.used += ran * gpus
        if job.status.closing is None:
            self._kept.keep(self.scheduler.end(id, at))
        elif at >= job.status.closing.since + STOPPING:
            stored = progress.stored_at(at)
            kept = ZERO if stored is None else stored - progress.started
            progress.saved += kept
            progress.started = None
            self.lost += (ran - kept) * gpus
            requeue = self.scheduler.put_back(id, at, ran - kept).status.requeue
            if requeue is not None and requeue.pauses_until is not None:
                heappush(self._events, (requeue.pauses_until, -1, id))  # of no attempt: a cycle is due then
        else:
            self.used -= ran * gpus  # it is being stopped: what it would have ended with does not count

    async def _cycle(self, now: datetime) -> None:
        started, stopping = await self.scheduler.cycle(now, self._losses)
        for job in started:
            progress = self.progress[job.id]
            progress.started, progress.first_start = now, progress.first_start or now
            left = progress.item.length - progress.saved
            heappush(self._events, (now + max(left, MINUTE / 60), job.status.attempt, job.id))
        for job in stopping:
            self.preempted += 1
            heappush(self._events, (now + STOPPING, job.status.attempt, job.id))

    async def _losses(self, jobs: list[Job], now: datetime) -> Mapping[str, timedelta]:
        if self.youngest:
            return {job.id: now - (job.status.started_at or now) for job in jobs}

        async def stored_at(job: Job) -> datetime | None:
            return self.progress[job.id].stored_at(now)

        return await losses(jobs, now, stored_at)

    async def _forecast(self, job: Job, now: datetime) -> Eta | None:
        running = tuple(self.scheduler.running.values())
        snapshot = self.scheduler.snapshot(now)
        ahead = list(in_turn(snapshot, list(self.scheduler.waiting), now))
        at = ahead.index(next(other for other in ahead if other.id == job.id))
        ahead = ahead[: at + 1 + PASSERS]
        past = PastRuns(cast("Store", self._kept))
        arrivals = await past.lately(now)
        world = World(
            snapshot=snapshot,
            waiting=tuple(ahead),
            running=running,
            history=await past.of(running, ahead, now, arrivals),
            catalogue=Catalogue(),
            now=now,
            arrivals=arrivals,
        )
        return foresee(world, job)

    def is_right(self, id: str) -> bool:
        at, eta = self.etas[id]
        start = self.progress[id].first_start
        if eta is None or eta.likely is None or start is None:
            return False
        return abs(eta.likely - start) <= max(NEAR * (start - at), MINUTE)

    def is_in_range(self, id: str) -> bool | None:
        """Whether it started in its range, or a minute beside it; None where it has none."""
        (_, eta), start = self.etas[id], self.progress[id].first_start
        if eta is None or eta.likely is not None or eta.between is None or start is None:
            return None
        return eta.between[0] - MINUTE <= start <= eta.between[1] + MINUTE


if __name__ == "__main__":
    print(table(replayed(int(sys.argv[1]), float(sys.argv[2]))))

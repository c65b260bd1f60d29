"""simulate: when waiting jobs start if each job takes so long and these others come. Pure.

`core/explain/foresee.py` calls it several times. It decides by the scheduler's own rule, a `Cycle` at a time:
after each end of a job, but the further ahead the less often, so that a day costs little more than an hour.
Who has a right to what others have takes it at the beginning, as the next cycles will let it. What is stopped
for those that come later is not simulated.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainshed.core.explain.explanation import World
from trainshed.core.jobs.job import Job, Status
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.preempt import ClaimChoice
from trainshed.core.queue.snapshot import Reservation
from trainshed.core.queue.waiting_jobs import WaitingJobs

MOST_WORK = 30_000  # in answers times running jobs: bounds the cost
MOST_ROUGH_WORK = 60_000
A_CYCLE, AN_ARRIVAL = 50, 5  # what they cost in the same unit
STEP = 0.1  # of the time until then: ends that are closer to each other are looked at together
STOPPING = timedelta(minutes=1)  # about so long until a job has left that is stopped for another


@dataclass(frozen=True, slots=True)
class SimulatedStart:
    """When the job started (None: never), and which jobs ended before."""

    at: datetime | None
    whole: bool = True  # False: it was stopped after so much work; the start is later
    ended: tuple[str, ...] = ()


@dataclass(slots=True)
class Simulation:
    """One of them: who runs until when, and who waits. Call `starts` once."""

    world: World
    length: Callable[[str], timedelta]  # how long a job takes, from now or from its start
    waiting: WaitingJobs
    now: datetime = field(init=False)
    running: dict[str, Reservation] = field(init=False)
    ends: dict[str, datetime] = field(init=False)
    ended: list[str] = field(default_factory=list[str])
    begun: dict[str, SimulatedStart] = field(default_factory=dict[str, SimulatedStart])
    work: int = 0

    def __post_init__(self) -> None:
        self.now = self.world.now
        self.running = {item.job: item for item in self.world.snapshot.held}
        self.ends = {id: self.now + self.length(id) for id in self.running}

    def starts(
        self, wanted: Iterable[str], coming: Iterable[Job] = (), *, is_rough: bool = False
    ) -> dict[str, SimulatedStart]:
        """The start of each wanted job. Those that come are in order of their time.

        A rough one is about a tenth of the wait late at most.
        """
        missing, coming = set(wanted), iter(coming)
        following = next(coming, None)
        pauses = [job.status.requeue.pauses_until for job in self.waiting if job.status.requeue]
        most_work = MOST_ROUGH_WORK if is_rough else MOST_WORK
        while self.work < most_work:
            cycle = self._cycle()
            is_changed = is_rough and self.now == self.world.now and self._claim(cycle)
            missing.difference_update(self.begun)
            if not missing:
                return self.begun
            if is_changed:
                continue
            later = [*self.ends.values(), *(until for until in pauses if until and until > self.now)]
            if not later:
                return self.begun | dict.fromkeys(missing, SimulatedStart(None))
            step = STEP * (self.now - self.world.now) if is_rough else timedelta()
            self.now = max(self.now + step, min(later))
            while following is not None and following.created_at <= self.now and self.work < most_work:
                self.work += AN_ARRIVAL
                self.waiting.put(following)
                following = next(coming, None)
            for id in [id for id, at in self.ends.items() if at <= self.now]:
                self.ended.append(id)
                del self.running[id], self.ends[id]
        too_far = SimulatedStart(self.now, whole=False, ended=tuple(self.ended))
        return self.begun | dict.fromkeys(missing, too_far)

    def _cycle(self) -> Cycle:
        """Start all that may start now."""
        self.work += A_CYCLE
        snapshot = self.world.snapshot
        earmarks = {
            id: replace(mark, left=tuple(item for item in mark.left if item.job in self.running))
            for id, mark in snapshot.earmarks.items()
            if id in self.waiting
        }
        now = replace(snapshot, held=tuple(self.running.values()), earmarks=earmarks)
        cycle = Cycle(now, self.now, self.waiting)
        for job in cycle.walk(self.waiting):
            self.work += 10 + len(self.running)
            if cycle.is_over:
                break
            if cycle.answer(job).admission is not None:
                self._start(job, cycle.held[-1], self.now)
        for id in self.running:
            self.waiting.remove(id)
        return cycle

    def _start(self, job: Job, item: Reservation, at: datetime) -> None:
        self.running[job.id] = item
        self.ends[job.id] = at + self.length(job.id)
        self.begun[job.id] = SimulatedStart(at, ended=tuple(self.ended))

    def _claim(self, cycle: Cycle) -> bool:
        """Let those start for which others are stopped after this cycle; whether there are any.

        Who is stopped waits again, and goes on where it was.
        """
        choice = ClaimChoice.of(cycle)
        claims = () if choice is None else choice.claims({})
        jobs = {job.id: job for job in self.world.running}
        for claim in claims:
            for victim in claim.victims:
                del self.running[victim.job], self.ends[victim.job]
                if victim.job in jobs:
                    self.waiting.put(replace(jobs[victim.job], status=Status()))
            item = Reservation(
                job=claim.job.id,
                display_name=claim.job.display_name,
                project=claim.job.project,
                placements=claim.placements,
                until=self.now + claim.job.spec.scheduling.timeout,
                stake=cycle.stake_of(claim.job),
            )
            self._start(claim.job, item, self.now + STOPPING)
            self.waiting.remove(claim.job.id)
        return bool(claims)

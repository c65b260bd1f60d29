"""SimulatedScheduler: scheduling cycles over jobs in memory, with no store, no backend and no clock.

`cycling.py` measures its cycles, and `replay.py` plays a trace with it. All decisions are those of the core:
it calls `Cycle` and `ClaimChoice` in the order in which `control/scheduler.py` does, and keeps what they say.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainshed.core.jobs.job import Closing, Job, JobState, Outcome, Status
from trainshed.core.jobs.pause import requeue_of
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Admission, Claim, Fit, Node
from trainshed.core.queue.preempt import ClaimChoice
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import Holdings, Snapshot, snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs

Losses = Callable[[list[Job], datetime], Awaitable[Mapping[str, timedelta]]]  # work that each would lose


class SimulatedScheduler:
    def __init__(self, nodes: tuple[Node, ...], tree: ShareTree | None) -> None:
        self.nodes, self.tree = nodes, tree
        self.waiting = WaitingJobs((), {}, tree)
        self.running: dict[str, Job] = {}
        self.claimants: dict[str, Job] = {}
        self._holdings = Holdings()

    def submit(self, job: Job) -> None:
        self.waiting.put(job)

    def start(self, job: Job, admission: Admission, now: datetime) -> Job:
        status = Status(
            requeue=job.status.requeue,
            state=JobState.RUNNING,
            attempt=job.status.attempt,
            admission=admission,
            admitted_at=now,
            started_at=now,
        )
        started = self.running[job.id] = replace(job, status=status)
        self.waiting.remove(job.id)
        self.claimants.pop(job.id, None)
        return started

    def end(self, id: str, now: datetime) -> Job:
        job = self.running.pop(id)
        return replace(job, status=replace(job.status, state=JobState.SUCCEEDED, ended_at=now))

    def put_back(self, id: str, now: datetime, lost: timedelta) -> Job:
        """A job that was preempted has stopped: it waits again."""
        job = self.running.pop(id)
        ran = now - (job.status.started_at or now)
        requeue = requeue_of(job.status.requeue, "Preempted.", ran, lost, now, now)
        status = Status(attempt=job.status.attempt + 1, requeue=requeue)
        again = replace(job, status=status)
        self.waiting.put(again)
        return again

    def snapshot(self, now: datetime) -> Snapshot:
        everyone = (*self.running.values(), *self.claimants.values())
        return snapshot_of(
            everyone, self.nodes, Fit.STRICT, now, self.waiting.sites, self.tree, self._holdings
        )

    def decide(self, now: datetime) -> tuple[Cycle, list[tuple[Job, Admission]]]:
        """What a cycle decides, and nothing of it done yet."""
        cycle = Cycle(self.snapshot(now), now, self.waiting)
        chosen: list[tuple[Job, Admission]] = []
        for job in cycle.walk(self.waiting):
            if (admission := cycle.answer(job).admission) is not None:
                chosen.append((job, admission))
            if cycle.is_over:
                break
        return cycle, chosen

    async def cycle(self, now: datetime, losses: Losses) -> tuple[list[Job], list[Job]]:
        """One cycle: the jobs that start, and those that begin to stop for others."""
        cycle, chosen = self.decide(now)
        started = [self.start(job, admission, now) for job, admission in chosen]
        for id, mark in cycle.snapshot.earmarks.items():
            if not mark.left and id in self.claimants:  # it could not start although all have stopped
                self._write_claim(self.claimants.pop(id), None)
        return started, await self._preempt(cycle, losses, now)

    async def _preempt(self, cycle: Cycle, losses: Losses, now: datetime) -> list[Job]:
        stopping: list[Job] = []
        if (choice := ClaimChoice.of(cycle)) is None:
            return stopping
        able = [self.running[id] for id in choice.candidates() if id in self.running]
        for claim in choice.claims(await losses(able, now)) if able else ():
            victims = [self.running[item.job] for item in claim.victims]
            names = tuple((victim.id, victim.status.attempt) for victim in victims)
            stored = Claim(placements=claim.placements, victims=names, claimed_at=now)
            self.claimants[claim.job.id] = self._write_claim(claim.job, stored)
            for victim in victims:
                closing = Closing(outcome=Outcome.PREEMPTED, since=now)
                closed = replace(victim, status=replace(victim.status, closing=closing))
                self.running[victim.id] = closed
                stopping.append(closed)
        return stopping

    def _write_claim(self, job: Job, claim: Claim | None) -> Job:
        written = replace(job, status=replace(job.status, claim=claim))
        self.waiting.put(written)
        return written

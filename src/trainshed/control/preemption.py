"""Preempter: carries out what `core/queue/preempt.py` decides. The scheduler calls it in each cycle.

First the claim is written into the status of the waiting job, then a `Closing` into that of each job to be
stopped. The job loop stops them and puts them back into the queue. A server that dies in between finds the
claim and writes what is missing: `stop_claimed` does that at the begin of each cycle. Nothing is stopped
here, and no room is given away: `core/queue/admit.py` keeps it for the claimant.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainshed.core.errors import Conflict, TrainshedError, Unavailable
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs import closing as closings
from trainshed.core.jobs.job import Closing, Job
from trainshed.core.ports import Store
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Claim
from trainshed.core.queue.guarantee import Standing
from trainshed.core.queue.preempt import ClaimChoice, Preemption
from trainshed.core.queue.refusal import UNNAMED

MOST_ASKED = 50  # jobs whose last checkpoint is looked for
PREPARING = timedelta(minutes=15)  # a claimant may be prepared for so long, and keeps its places
PATIENCE = 2.0  # seconds that a bucket may take to say when a checkpoint was stored

# When its last checkpoint was stored; None: it has none. Fails where that cannot be known.
Checkpointed = Callable[[Job], Awaitable[datetime | None]]


async def never(_: Job) -> datetime | None:
    return None


async def stored_at(job: Job, checkpointed: Checkpointed) -> datetime | None:
    """When the last checkpoint of a job was stored; `Unavailable` where that takes too long to find out."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await checkpointed(job)
    except TimeoutError:
        raise Unavailable(f"Its checkpoints could not be listed in {PATIENCE:g} s.") from None


async def loss_of(job: Job, now: datetime, checkpointed: Checkpointed) -> timedelta | None:
    """The work of a job since its last stored checkpoint, or its start; None where that is not known."""
    started = job.status.started_at or now
    try:
        stored = await stored_at(job, checkpointed)
    except TrainshedError:
        return None
    return now - max(started, stored or started)


async def losses(jobs: list[Job], now: datetime, checkpointed: Checkpointed) -> dict[str, timedelta]:
    """The work that each job would lose; all of its run where that is not known."""
    asked = jobs[:MOST_ASKED] if len(jobs) > 1 else []
    lost = await asyncio.gather(*[loss_of(job, now, checkpointed) for job in asked])
    known = {job.id: loss for job, loss in zip(asked, lost, strict=True) if loss is not None}
    return {job.id: known.get(job.id, now - (job.status.started_at or now)) for job in jobs}


@dataclass(slots=True)
class Preempter:
    store: Store
    ring: Callable[[Job], None]
    hint: Callable[[], None]
    hint_job: Callable[[str], None]
    checkpointed: Checkpointed = never
    has_accounts: Callable[[], bool] = lambda: False  # then no job is named to those of other projects

    async def stop_claimed(
        self, claimants: Iterable[Job], admitted: Mapping[str, Job], now: datetime
    ) -> None:
        """Write the end of every job that a stored claim names and that is not being stopped yet."""
        for claimant in list(claimants):
            claim = claimant.status.claim
            if claim is not None:
                victims = [(admitted.get(id), attempt) for id, attempt in claim.victims]
                there = [job for job, attempt in victims if job is not None and job.status.attempt == attempt]
                await self._stop(there, claimant, claim.rule, now)

    async def drop_stale(self, cycle: Cycle, claimants: Mapping[str, Job], now: datetime) -> None:
        """Remove the claims of jobs that could not start although all have stopped: machines have changed.

        A claimant that was not asked is still being prepared, as after each start of the server.
        """
        for id, mark in cycle.snapshot.earmarks.items():
            claimant = claimants.get(id)
            was_asked = id in cycle.single or now > mark.claimed_at + PREPARING
            if claimant is not None and was_asked and not mark.awaited and claimant.status.claim is not None:
                try:
                    status = replace(claimant.status, claim=None, updated_at=now)
                    await self.store.write(claimant, status, (), flush=False)
                except Conflict:
                    pass
                self.hint()

    async def preempt(self, cycle: Cycle, admitted: Mapping[str, Job], now: datetime) -> None:
        """Write the claims that follow from a cycle."""
        if (choice := ClaimChoice.of(cycle)) is None or not (able := choice.candidates()):
            return
        lost = await losses([admitted[id] for id in able if id in admitted], now, self.checkpointed)
        for preemption in choice.claims(lost):
            if all(item.job in admitted for item in preemption.victims):
                await self._claim(preemption, cycle, admitted, now)
            else:
                self.hint()  # one has ended meanwhile

    async def _claim(
        self, preemption: Preemption, cycle: Cycle, admitted: Mapping[str, Job], now: datetime
    ) -> None:
        job, victims = preemption.job, [admitted[item.job] for item in preemption.victims]
        rule = _rule(preemption, cycle)
        claim = Claim(
            placements=preemption.placements,
            victims=tuple((victim.id, victim.status.attempt) for victim in victims),
            claimed_at=now,
            rule=rule,
        )
        names = ", ".join(self._called(victim, job) for victim in victims)
        text = f"{rule} Stopped for it: {names}."
        waiting = Waiting(
            reason=Reason.WAITS_FOR_PREEMPTED,
            message=f"Waits for {names} to stop.",
            remedy="It starts as soon as they have stopped.",
        )
        event = Event(at=now, reason=Reason.PREEMPTS, message=text, attempt=job.status.attempt)
        status = replace(job.status, claim=claim, waiting=waiting, updated_at=now)
        try:
            claimant = await self.store.write(job, status, (event,))
        except Conflict:
            self.hint()
            return
        self.ring(claimant)
        await self._stop(victims, claimant, rule, now)
        self.hint()

    async def _stop(self, jobs: Iterable[Job], claimant: Job, rule: str, now: datetime) -> None:
        """Write the end of those that are not being stopped yet."""
        victims = [job for job in jobs if not _is_ending(job)]
        lost = await asyncio.gather(*[loss_of(job, now, self.checkpointed) for job in victims])
        for victim, loss in zip(victims, lost, strict=True):
            message = f"Preempted by {self._called(claimant, victim)}. {rule}"
            await self._write_end(victim, closings.preempted(message, now, loss), now)

    async def _write_end(self, victim: Job, closing: Closing, now: datetime) -> None:
        assert closing.failure is not None
        event = Event(
            at=now,
            reason=Reason.PREEMPTED,
            message=closing.failure.message,
            severity=Severity.WARNING,
            attempt=victim.status.attempt,
        )
        try:
            written = await self.store.write(
                victim, replace(victim.status, closing=closing, updated_at=now), (event,)
            )
        except Conflict:
            self.hint()  # the next cycle looks again whether it is to be stopped
            return
        self.ring(written)
        self.hint_job(victim.id)

    def _called(self, job: Job, reader: Job) -> str:
        """A job, in the history of another one."""
        if job.project == reader.project:
            return f"job {job.id} '{job.display_name}'"
        if self.has_accounts():
            return UNNAMED
        return f"job {job.id} '{job.display_name}' of project {job.project}"


def _is_ending(job: Job) -> bool:
    status = job.status
    return status.closing is not None or status.cancel_asked_at is not None or job.is_final


def _rule(preemption: Preemption, cycle: Cycle) -> str:
    """By what right jobs are stopped, in a sentence."""
    shares = cycle.shares
    assert shares is not None
    stake = cycle.stake_of(preemption.job)
    stakes = [item.stake for item in preemption.victims if item.stake is not None and not item.stake.is_spot]
    if not stakes:
        return "Spot jobs give way to all others."
    if all(other.share == stake.share for other in stakes):
        return f"Its priority {stake.priority} is higher, in the same share '{stake.share}'."
    return f"Share '{stake.share}' takes back what is its own from jobs that borrow it."


def standings(cycle: Cycle) -> dict[str, Standing]:
    """How each running job stands, by id; where there are no shares, only those that run as spot."""
    shares = cycle.shares
    if shares is None:
        return {}
    stakes = ((item.job, item.stake) for item in cycle.snapshot.held)
    return {
        job: shares.rights.standing(stake)
        for job, stake in stakes
        if stake is not None and (stake.is_spot or shares.rights.tree.is_set)
    }

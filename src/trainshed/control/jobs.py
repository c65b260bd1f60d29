"""One turn of one job: load what is, decide, apply, write once; again until there is nothing to do."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from trainshed.control.collector import Collector
from trainshed.control.outputs import Outputs
from trainshed.control.verdicts import Reporter
from trainshed.core.admit import is_waiting
from trainshed.core.decide import Action, Plan, Start, Stop, decide
from trainshed.core.errors import Conflict, NotYet, TrainshedError
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.job import Job
from trainshed.core.launch import Launch
from trainshed.core.launching import launch_of
from trainshed.core.ports import Backend, Clock, LogStore, Store
from trainshed.core.readiness import READY, Readiness
from trainshed.core.replica import Observation, Replica
from trainshed.core.verdict import Rules
from trainshed.core.view import STORED
from trainshed.core.withhold import withhold

log = logging.getLogger(__name__)

MOST_TURNS = 20  # a job that still moves after that is taken up again after the others
RETRY_LAUNCH = timedelta(seconds=5)
AT_ONCE = 4  # replicas of a job that are being started: an engine takes its time for each
SETTLE = timedelta(milliseconds=40)  # after its admission: what ends at once needs no two writes
STOPPING = timedelta(seconds=1)  # how long replicas that were told to end are left alone
LATE = timedelta(seconds=0.1)  # how long a backend that does not show yet what it started is left alone


@dataclass(slots=True)
class JobLoop:
    store: Store
    backend: Backend
    logs: LogStore
    clock: Clock
    ring: Callable[[Job], None]
    hint_scheduler: Callable[[str], None]  # look at this waiting job
    rules: Callable[[], Rules] = Rules  # by which failures are judged
    collector: Collector | None = None  # looks at what replicas use
    freeing: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()  # what an ended job held
    settle: timedelta = SETTLE
    outputs: Outputs | None = None  # stores what programs write below /gcs
    equip: Callable[[Job, Launch], Launch] = lambda _, launch: launch  # with its way to the buckets

    async def turn(self, job_id: str) -> datetime | None:
        """Bring one job as far as it goes now; when to look again."""
        started: tuple[Action, ...] = ()
        finished = False  # its output is closed
        for _ in range(MOST_TURNS):
            job = await self.store.load(job_id)
            if job is None:
                await self._forget(job_id)
                return None
            reporter = Reporter(self.logs, self.rules)
            seen = await reporter.with_last_words(job, await self.backend.observe(job_id))
            now = self.clock.now()
            plan = self._decide(job, seen, now)
            fault = await self._apply(job, plan.actions)
            if fault is not None:
                return await self._note_refusal(job, fault, now)
            if (settled_at := self._settles_at(job, plan, now)) is not None:
                return min(settled_at, plan.again_at or settled_at)
            if plan.status != job.status:
                finished = await self._write(job, plan, seen, now)
            elif job.is_final and not plan.actions:
                await self._clean_up(job, finished)
                return None
            elif not any(isinstance(action, Start) for action in plan.actions):
                if is_waiting(job):  # what it needs may be there, or further on its way
                    self.hint_scheduler(job.id)
                return plan.again_at or (now + STOPPING if plan.actions else None)
            elif plan.actions == started:
                return now + LATE
            else:
                started = plan.actions
        return self.clock.now()

    def _decide(self, job: Job, seen: tuple[Observation, ...], now: datetime) -> Plan:
        plan = decide(job, seen, now, self._readiness(job))
        if plan.held is None:
            return plan
        return withhold(plan, self.outputs.standing(job) if self.outputs else STORED, now)

    def _settles_at(self, job: Job, plan: Plan, now: datetime) -> datetime | None:
        """When to look again at a job that was admitted just now and starts or runs; None for any other.

        A program that ends at once then costs one write less: that it runs is not written.
        """
        moves = plan.status != job.status or any(isinstance(action, Start) for action in plan.actions)
        settled_at = (job.status.admitted_at or now) + self.settle
        return settled_at if moves and _is_plain_to_see(plan) and settled_at > now else None

    async def _write(self, job: Job, plan: Plan, seen: tuple[Observation, ...], now: datetime) -> bool:
        """Write the status with its events; whether the job's output is closed by that.

        Where the job has changed meanwhile nothing is written, and the next turn decides anew.
        """
        ends, finished, flush = plan.status.state.is_final, False, not _is_plain_to_see(plan)
        with self.freeing(job.id) if ends else nullcontext():
            if ends:
                # Before the write: who hears of the end finds all output, even if this server dies then.
                finished = await self._finish(job)
            plan = await Reporter(self.logs, self.rules).explain(job, plan, seen)
            status = replace(plan.status, updated_at=now)
            with suppress(Conflict):
                self.ring(await self.store.write(job, status, plan.events, flush=flush))
        return finished

    async def _forget(self, job_id: str) -> None:
        """The job was deleted: nothing of it stays."""
        await self.backend.remove(job_id)
        if self.collector is not None:
            await self.collector.forget(job_id)
        if self.outputs is not None:
            await self.outputs.discard(job_id)
        await self.logs.remove(job_id)  # last: by what is left of it a killed server finds the job

    def _readiness(self, job: Job) -> Readiness:
        """Of a job that may yet start something; one that is ending needs nothing made for it."""
        status = job.status
        ending = job.is_final or status.closing is not None or status.cancel_asked_at is not None
        return READY if ending else self.backend.prepare(job.spec, job.id)

    async def _apply(self, job: Job, actions: tuple[Action, ...]) -> TrainshedError | None:
        """The first of the faults that kept replicas from being started."""
        starts: list[Replica] = []
        for action in actions:
            match action:
                case Start():
                    starts.append(action.replica)
                case Stop():
                    await self.backend.stop(action.key, force=action.force)
                case _:
                    assert_never(action)
        faults: list[TrainshedError] = []

        async def start_some(most: int) -> None:
            while starts and most and not faults:
                most -= 1
                try:
                    await self._start(job, starts.pop(0))
                except TrainshedError as error:
                    faults.append(error)

        await start_some(1)  # alone: it makes what they share
        if starts and not faults:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(starts))):
                    group.create_task(start_some(len(starts)))
        return faults[0] if faults else None

    async def _start(self, job: Job, replica: Replica) -> None:
        key = job.key(replica)
        sink = self.logs.sink(key.name)
        launch = self.equip(job, launch_of(job, replica, stdout=sink.stdout, stderr=sink.stderr))
        if self.collector is not None:
            launch = self.collector.equip(launch)
        if self.outputs is not None:
            launch = await self.outputs.equip(job, launch, replica)
        await self.backend.launch(launch)
        if self.outputs is not None:
            self.outputs.launched(job.id)
        if self.collector is not None:
            self.collector.watch(key, sink.stdout, begun=True)

    async def _note_refusal(self, job: Job, error: TrainshedError, now: datetime) -> datetime:
        """The backend could not launch (a full disk, say): say so, and try again later."""
        if isinstance(error, NotYet):
            return now + RETRY_LAUNCH  # at the latest: it hints when it is there
        waiting = Waiting(
            reason=Reason.LAUNCH_FAILED,
            message=f"A replica could not be started: {error.message}",
            remedy=f"It is tried again every {RETRY_LAUNCH.total_seconds():g} s.",
        )
        log.warning("job %s: %s", job.id, waiting.message)
        if job.status.waiting != waiting:
            event = Event(
                at=now,
                reason=Reason.LAUNCH_FAILED,
                message=waiting.message,
                severity=Severity.WARNING,
                attempt=job.status.attempt,
            )
            try:
                status = replace(job.status, waiting=waiting, updated_at=now)
                self.ring(await self.store.write(job, status, (event,)))
            except Conflict:
                return now
        return now + RETRY_LAUNCH

    async def _finish(self, job: Job) -> bool:
        """Close the job's output. A disk that does not let us is no reason to keep quiet about the end."""
        try:
            await self.logs.finish(job.id)
        except TrainshedError as error:
            log.warning("job %s: %s", job.id, error.message)
            return False
        return True

    async def _clean_up(self, job: Job, finished: bool) -> None:
        """The job is over and nothing of it lives: its private files go, its logs stay."""
        if not finished:
            await self.logs.finish(job.id)
        await self.backend.remove(job.id)
        if self.outputs is not None:
            self.outputs.forget(job.id)


def _is_plain_to_see(plan: Plan) -> bool:
    """Whether the plan only notes that replicas run, which the next look would find again."""
    return plan.status.closing is None and all(event.reason is Reason.RUNNING for event in plan.events)

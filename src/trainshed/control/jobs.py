"""JobLoop: load a job, observe its runs, decide, apply, write once; repeated until nothing changes.

A work queue calls `turn`, one call per job at a time. Every action is idempotent by the replica's name, so a
turn that dies at any line is repeated safely. It decides nothing itself: `core.jobs.decide` does.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from trainshed.control.collector import Collector
from trainshed.control.outputs import Outputs
from trainshed.control.verdicts import Reporter
from trainshed.core.errors import Conflict, Hindered, NotFound, NotYet, TrainshedError, Unavailable
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs.closing import stuck
from trainshed.core.jobs.decide import Action, Plan, Start, Stop, decide
from trainshed.core.jobs.job import Closing, Job, Pool
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.named_secret import NamedSecretStore, references
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.jobs.replica import Observation, Replica
from trainshed.core.jobs.secret import JobSecrets, has_masks, secret_names, with_secrets
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.jobs.verdict import Rules
from trainshed.core.jobs.withhold import withhold
from trainshed.core.log_port import LogStore
from trainshed.core.obstacle import waiting_for
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.queue.snapshot import is_waiting
from trainshed.core.view import STORED

log = logging.getLogger(__name__)

MOST_TURNS = 20  # a job that still changes after these is queued again behind the others
RETRY_LAUNCH = timedelta(seconds=5)
SETTLE = timedelta(
    milliseconds=40
)  # after the admission: a job that ends at once then needs one write, not two
STOPPING = timedelta(seconds=1)  # until the next look at replicas that were asked to stop
LATE = timedelta(seconds=0.1)  # until the next look if the backend does not show its runs yet

SECRETS_LOST = (
    "The job cannot start: the values of its secrets are no longer in the folder `secrets` of the home. "
    "Restore that folder, or submit the job again with the values."
)


@dataclass(slots=True)
class JobLoop:
    store: Store
    backend: Backend
    logs: LogStore
    clock: Clock
    ring: Callable[[Job], None]
    hint_scheduler: Callable[[str], None]  # look at this waiting job
    rules: Callable[[], Rules] = Rules  # for verdicts on failures
    collector: Collector | None = None  # looks at what replicas use
    freeing: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()  # its resources
    settle: timedelta = SETTLE
    outputs: Outputs | None = None  # stores what programs write below /gcs
    equip: Callable[[Job, Launch], Launch] = lambda _, launch: launch  # adds access to the buckets
    secrets: SecretStore | None = None  # None: jobs have none
    named_secrets: NamedSecretStore | None = None  # None: no job may refer to any

    async def turn(self, job_id: str) -> datetime | None:
        """Take one job as far as possible now; returns when to look again."""
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
                if is_waiting(job):  # its preparation may have finished or advanced
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
        """When to look again at a job that was admitted just now and only starts or runs; None for any other.

        If its program ends before that, "running" is never written, which saves a write.
        """
        moves = plan.status != job.status or any(isinstance(action, Start) for action in plan.actions)
        settled_at = (job.status.admitted_at or now) + self.settle
        return settled_at if moves and _is_plain_to_see(plan) and settled_at > now else None

    async def _write(self, job: Job, plan: Plan, seen: tuple[Observation, ...], now: datetime) -> bool:
        """Write the status with its events; True if the job's output is closed.

        If the job has changed meanwhile, nothing is written and the next turn decides again.
        """
        ends, finished, flush = plan.status.state.is_final, False, not _is_plain_to_see(plan)
        with self.freeing(job.id) if ends else nullcontext():
            if ends:
                # Before the write: whoever learns of the end finds all output, even if this server dies then.
                finished = await self._finish(job)
            plan = await Reporter(self.logs, self.rules).explain(job, plan, seen)
            status = replace(plan.status, updated_at=now)
            with suppress(Conflict):
                self.ring(await self.store.write(job, status, plan.events, flush=flush))
        return finished

    async def _forget(self, job_id: str) -> None:
        """Remove everything of a deleted job."""
        await self.backend.remove(job_id)
        if self.collector is not None:
            await self.collector.forget(job_id)
        if self.outputs is not None:
            await self.outputs.discard(job_id)
        if self.secrets is not None:
            await self.secrets.remove(job_id)
        await self.logs.remove(job_id)  # last: by its logs the next server finds a job that is half removed

    def _readiness(self, job: Job) -> Readiness:
        """Whether what the job needs is prepared. A job that is ending needs nothing."""
        status = job.status
        ending = job.is_final or status.closing is not None or status.cancel_asked_at is not None
        if ending:
            return READY
        if self.secrets is not None and has_masks(job.spec) and not self.secrets.has(job.id):
            return Readiness(standing=ReadinessState.FAILED, message=SECRETS_LOST)
        return self.backend.prepare(job.spec, job.id)

    async def _apply(self, job: Job, actions: tuple[Action, ...]) -> TrainshedError | None:
        """Stop and start replicas; the first error that kept a replica from starting."""
        starts: list[Replica] = []
        for action in actions:
            match action:
                case Start():
                    starts.append(action.replica)
                case Stop():
                    await self.backend.stop(action.key, force=action.force)
                case _:
                    assert_never(action)
        if not starts:
            return None
        faults: list[TrainshedError] = []
        launches = Launches(job)

        async def start_some(most: int) -> None:
            while starts and most and not faults:
                most -= 1
                replica = starts.pop(0)
                try:
                    await self._start(job, replica, launches.of(replica))
                except TrainshedError as error:
                    faults.append(error)

        await start_some(1)  # alone: it makes what all of them share
        if starts and not faults:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.backend.capabilities.starts_at_once, len(starts))):
                    group.create_task(start_some(len(starts)))
        return faults[0] if faults else None

    async def _start(self, job: Job, replica: Replica, launch: Launch) -> None:
        key = job.key(replica)
        # Before anything else: by its logs the next server finds a job that is half removed.
        sink = self.logs.sink(key.name)
        launch = self.equip(job, launch)
        if secret_names(pool := job.spec.pools[replica.pool]):
            kept: JobSecrets = await self.secrets.read(job.id) if self.secrets is not None else {}
            named = await self._named_values(job.project, pool)
            launch = with_secrets(launch, pool, {**kept.get(replica.pool, {}), **named})
        if self.outputs is not None:
            launch = await self.outputs.equip(job, launch, replica)
        await self.backend.launch(launch)
        if self.outputs is not None:
            self.outputs.launched(job.id)
        if self.collector is not None:
            self.collector.watch(key, sink.stdout, begun=True)

    async def _named_values(self, project: str, pool: Pool) -> Mapping[str, str]:
        """The values of the secrets of the project that its variables refer to, as they are now."""
        values: dict[str, str] = {}
        if self.named_secrets is None:
            return values
        for variable, secret in references(pool.env).items():
            try:
                values[variable] = await self.named_secrets.value(project, secret, self.clock.now())
            except NotFound as error:
                raise Unavailable(
                    f"{error.message} The variable {variable} takes its value from it. Set it with "
                    f"`trainshed secrets set {secret}`: the job then starts."
                ) from error
        return values

    async def _note_refusal(self, job: Job, error: TrainshedError, now: datetime) -> datetime:
        """The backend could not launch, for example because the disk is full: record it, and retry later."""
        if isinstance(error, NotYet):
            return now + RETRY_LAUNCH  # at the latest: the backend hints when it is ready
        waiting = _refused(job, error, now)
        closing = _given_up(waiting, error, now)
        log.warning("job %s: %s", job.id, waiting.message)
        if job.status.waiting != waiting or closing is not None:
            event = Event(
                at=now,
                reason=waiting.reason,
                message=waiting.message,
                severity=Severity.WARNING,
                attempt=job.status.attempt,
            )
            try:
                status = replace(job.status, waiting=waiting, closing=closing, updated_at=now)
                events = () if isinstance(error, Hindered) and _is_said(job, waiting) else (event,)
                self.ring(await self.store.write(job, status, events))
            except Conflict:
                return now
        return now if closing is not None else now + RETRY_LAUNCH

    async def _finish(self, job: Job) -> bool:
        """Close the job's output. If the disk prevents that, the end is reported all the same."""
        try:
            await self.logs.finish(job.id)
        except TrainshedError as error:
            log.warning("job %s: %s", job.id, error.message)
            return False
        return True

    async def _clean_up(self, job: Job, finished: bool) -> None:
        """Remove the private files of an ended job; its logs stay."""
        if not finished:
            await self.logs.finish(job.id)
        await self.backend.remove(job.id)
        if self.outputs is not None:
            self.outputs.forget(job.id)


def _refused(job: Job, error: TrainshedError, now: datetime) -> Waiting:
    again = f"It is tried again every {RETRY_LAUNCH.total_seconds():g} s."
    if isinstance(error, Hindered):
        obstacle = replace(error.obstacle, remedy=f"{error.obstacle.remedy} {again}".strip())
        return waiting_for(obstacle, job.status.waiting, now)
    message = f"A replica could not be started: {error.message}"
    return Waiting(reason=Reason.LAUNCH_FAILED, message=message, remedy=again)


def _given_up(waiting: Waiting, error: TrainshedError, now: datetime) -> Closing | None:
    if not isinstance(error, Hindered):
        return None
    end = error.obstacle.gives_up_at(waiting.since)
    return stuck(error.obstacle, now) if end is not None and now >= end else None


def _is_said(job: Job, waiting: Waiting) -> bool:
    """Whether the job's history has such a reason already: its numbers change again and again."""
    return job.status.waiting is not None and job.status.waiting.reason is waiting.reason


def _is_plain_to_see(plan: Plan) -> bool:
    """Whether the plan only records that replicas run, which the next look would see again."""
    return plan.status.closing is None and all(event.reason is Reason.RUNNING for event in plan.events)

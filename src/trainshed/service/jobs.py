"""Submit, look, wait, cancel, delete: all that a person may do with jobs.

Every change is a guarded write; whoever loses a race reads again. Nothing here starts or stops a process:
it changes what is durable and hints the loop to look.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainshed.core.errors import AlreadyExists, Conflict, Invalid, Violation
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.job import Job, JobSpec, JobState, Owner, OwnerKind, Status
from trainshed.core.ledger import Interval
from trainshed.core.ports import Clock, JobPage, Operation, Store
from trainshed.core.query import JobQuery
from trainshed.service.code import CodeService
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.results_check import ResultsCheck
from trainshed.service.shortage import Shortage

TRIES = 20  # how often a guarded write is tried again: each loss means that somebody else made progress


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A job as asked for, already checked."""

    display_name: str
    spec: JobSpec
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])
    owned_as: OwnerKind | None = None  # it belongs to something of this kind, which has the job's own id
    remarks: tuple[str, ...] = ()  # what is asked for and will not be done: warnings in the job's history

    def job(
        self, identity: str, project: str, location: str, now: datetime, status: Status | None = None
    ) -> Job:
        return Job(
            id=identity,
            project=project,
            location=location,
            display_name=self.display_name,
            labels=self.labels,
            spec=self.spec,
            extras=self.extras,
            owner=None if self.owned_as is None else Owner(self.owned_as, identity),
            created_at=now,
            status=status or Status(),
        )


@dataclass(slots=True)
class JobService:
    store: Store
    clock: Clock
    notifier: JobNotifier
    hint_job: Callable[[str], None]
    hint_scheduler: Callable[[], None]
    waiting_reason: Callable[[str], Waiting | None]
    code: CodeService | None = None  # where folders are kept; None: jobs may not name one
    default_output: str = ""  # below it go the results of jobs that do not say where; none where empty
    landing: ResultsCheck | None = None  # says whether results have a place; None: it is not asked
    shortage: Shortage | None = None  # says what a job will lack here; None: it is not asked

    async def submit(self, project: str, location: str, request: JobRequest, key: str = "") -> Job:
        """Keep a new job. The same idempotency key again gives the same job."""
        check_location(location)
        if request.spec.code:
            await self._check_code(request.spec.code)
        now = self.clock.now()
        status = Status(
            updated_at=now,
            waiting=Waiting(
                reason=Reason.WAITS_FOR_ADMISSION,
                message="Submitted; not looked at by the scheduler yet.",
                remedy="Nothing to do: it is looked at within milliseconds.",
            ),
        )
        told = [Event(at=now, reason=Reason.SUBMITTED, message="The job was submitted.")]
        if lacks := await self.lacks(request.spec):
            told.append(Event(at=now, reason=Reason.NO_GPUS, message=lacks, severity=Severity.WARNING))
        for remark in request.remarks:
            told.append(Event(at=now, reason=Reason.LEFT_OUT, message=remark, severity=Severity.WARNING))
        for last in (False, False, True):
            job = self._with_output(request.job(new_id(), project, location, now, status))
            lands = await self.landing.told(job, now) if self.landing is not None and job.spec.output else ()
            try:
                kept = await self.store.insert(job, (*told, *lands), key)
            except AlreadyExists:
                if key or last:
                    raise
                continue  # two jobs in one millisecond drew the same number
            self.hint_scheduler()
            if kept.spec.scheduling.max_wait is not None:
                self.hint_job(kept.id)
            return kept
        raise AssertionError("unreachable")

    async def lacks(self, spec: JobSpec) -> str:
        """A sentence where such a job would run without GPUs it asks for."""
        return await self.shortage.told(spec) if self.shortage is not None else ""

    async def get(self, project: str, location: str, job: str) -> Job:
        return self._with_reason(await self.store.get(project, location, job))

    async def find(self, query: JobQuery, *, reasons: bool = True) -> JobPage:
        """One page. Without `reasons`, for who does not show them, waiting jobs are as they are stored."""
        page = await self.store.find(query)
        if not reasons:
            return page
        return replace(page, jobs=tuple(self._with_reason(j) for j in page.jobs))

    async def count(self, query: JobQuery) -> tuple[int, int]:
        """How many jobs the query means in its location, and how many elsewhere."""
        here = await self.store.count(query)
        everywhere = await self.store.count(replace(query, location="-"))
        return here, max(0, everywhere - here)

    async def wait(self, project: str, location: str, job: str, patience: timedelta) -> Job:
        """The job as soon as it is final, or as it is when the time is over."""
        deadline = time.monotonic() + patience.total_seconds()
        with self.notifier.listen(job) as event:
            while True:
                event.clear()
                found = await self.store.get(project, location, job)
                left = deadline - time.monotonic()
                if found.is_final or left <= 0:
                    return self._with_reason(found)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), left)

    async def cancel(self, project: str, location: str, job: str) -> None:
        """Ask for the end of a job. Asking twice is once; an ended job cannot be cancelled."""
        for _ in range(TRIES):
            found = await self.store.get(project, location, job)
            status = found.status
            if status.state.is_final:
                raise Conflict(f"Job {found.name} is in state {status.state} and can no longer be cancelled.")
            if status.cancel_asked_at is not None:
                return
            now = self.clock.now()
            asked = replace(status, state=JobState.CANCELLING, cancel_asked_at=now, updated_at=now)
            event = Event(
                at=now, reason=Reason.CANCEL_ASKED, message="Cancel was asked for.", attempt=status.attempt
            )
            try:
                self.notifier.ring(await self.store.write(found, asked, (event,)))
            except Conflict:
                continue
            self.hint_job(job)
            return
        raise Conflict("The job changes too fast to be cancelled; try again.")

    async def delete(self, project: str, location: str, job: str) -> Operation:
        """Forget an ended job, its logs and its history."""
        found = await self.store.get(project, location, job)
        if not found.is_final:
            raise Conflict(f"Job {found.name} is in state {found.status.state}; cancel it first.")
        now = self.clock.now()
        operation = Operation(
            name=f"projects/{project}/locations/{found.location}/operations/{new_id()}",
            kind="delete",
            target=found.name,
            created_at=now,
        )
        await self.store.delete(found, operation)
        self.notifier.ring(found)
        self.hint_job(job)
        return operation

    async def operation(self, name: str) -> Operation:
        return await self.store.operation(name)

    async def events(self, project: str, location: str, job: str) -> tuple[Event, ...]:
        found = await self.store.get(project, location, job)
        return await self.store.events(found.id)

    async def intervals(self, project: str, location: str, job: str) -> tuple[Interval, ...]:
        """Where the time of its runs went, as far as it is told. The ledger keeps it of deleted jobs too."""
        closed = await self.store.intervals(project, location, job)
        if not closed:
            await self.store.get(project, location, job)  # raises NotFound where there never was one
        return closed

    async def _check_code(self, code: str) -> None:
        if self.code is None:
            raise Invalid((Violation("job_spec.code", "Folders are not kept by this server."),))
        await self.code.check(code)

    def _with_output(self, job: Job) -> Job:
        if job.spec.output or not self.default_output:
            return job
        return replace(job, spec=replace(job.spec, output=f"{self.default_output}/{job.id}"))

    def _with_reason(self, job: Job) -> Job:
        """The scheduler's latest word on a waiting job is kept in memory; put it in."""
        if job.status.state is not JobState.QUEUED:
            return job
        latest = self.waiting_reason(job.id)
        return job if latest is None else replace(job, status=replace(job.status, waiting=latest))


def check_location(location: str) -> None:
    """Raises Invalid for "-", which means every location: what is made is made in one."""
    if location == "-":
        raise Invalid((Violation("parent", "must name one location, such as us-central1, not '-'."),))


def new_id() -> str:
    """Nineteen digits, as Google's ids: milliseconds, so that they sort by age, and chance."""
    return f"{time.time_ns() // 1_000_000:013d}{secrets.randbelow(1_000_000):06d}"

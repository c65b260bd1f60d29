"""Use cases of jobs: submit, get, list, wait, cancel, delete.

The API calls it. Every change is a guarded write; where another writer was first, it reads again and retries.
It only changes what is stored and hints the control loops. It never starts or stops a process.
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
from trainshed.core.jobs.job import Job, JobSpec, JobState, Owner, OwnerKind, Status
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.secret import JobSecrets, all_secrets
from trainshed.core.jobs.secret_port import SecretStore
from trainshed.core.ledger import Interval
from trainshed.core.ports import Clock, JobPage, Operation, Store
from trainshed.core.query import JobQuery
from trainshed.service.code import CodeService
from trainshed.service.job_notifier import JobNotifier
from trainshed.service.named_secrets import NamedSecretService
from trainshed.service.reserved_shares import ReservedShares
from trainshed.service.results_check import ResultsCheck
from trainshed.service.share_limits import ShareLimits
from trainshed.service.shortage import Shortage

TRIES = 20  # of a guarded write: each conflict means that another writer made progress


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """A request for a job, already validated."""

    display_name: str
    spec: JobSpec
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    extras: Mapping[str, object] = field(default_factory=dict[str, object])
    origin: Origin | None = None
    owned_as: OwnerKind | None = None  # its owner has this kind and the job's own id
    owner: Owner | None = None  # its owner where that has an id of its own
    secrets: JobSecrets = field(default_factory=dict[int, Mapping[str, str]])
    submitter: str = ""  # the user's name as the client gave it
    remarks: tuple[str, ...] = ()  # what was asked for and is ignored: warnings in the job's history

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
            origin=self.origin,
            owner=self.owner if self.owned_as is None else Owner(self.owned_as, identity),
            created_at=now,
            submitter=self.submitter,
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
    code: CodeService | None = None  # None: jobs may not name a folder of code
    default_output: str = ""  # parent of the output of jobs that name none; empty: no default
    landing: ResultsCheck | None = None  # whether results can be stored; None: not checked
    shortage: Shortage | None = None  # which GPUs a job would lack; None: not checked
    secrets: SecretStore | None = None  # None: jobs may have none
    named_secrets: NamedSecretService | None = None  # None: what jobs refer to is not checked
    limits: ShareLimits | None = None  # what shares may have; None: not checked
    reserved: ReservedShares | None = None  # the persistent resources; None: which a job names is not checked

    async def submit(self, project: str, location: str, request: JobRequest, key: str = "") -> Job:
        """Store a new job. The same idempotency key again returns the same job."""
        check_location(location, project)
        earlier = await self.store.keyed(project, key) if key else None
        if earlier is None:
            await self.check_spec(request.spec, (project, location), request.submitter)
        else:  # it was acknowledged, whatever has changed since: `insert` compares the two
            request = _with_output_of(earlier, request)
        now = self.clock.now()
        status = Status(
            updated_at=now,
            waiting=Waiting(
                reason=Reason.WAITS_FOR_ADMISSION,
                message="Submitted; not looked at by the scheduler yet.",
                remedy="Nothing to do: it is looked at within milliseconds.",
            ),
        )
        events = [Event(at=now, reason=Reason.SUBMITTED, message="The job was submitted.")]
        if lacks := await self.lacks(request.spec):
            events.append(Event(at=now, reason=Reason.NO_GPUS, message=lacks, severity=Severity.WARNING))
        for remark in request.remarks:
            events.append(Event(at=now, reason=Reason.LEFT_OUT, message=remark, severity=Severity.WARNING))
        for last in (False, False, True):
            job = self._with_output(request.job(new_id(), project, location, now, status))
            notes = await self.landing.events(job, now) if self.landing and job.spec.output else ()
            # Before the job: a job that is there has its secrets, wherever this process dies.
            await self._keep(job.id, request.secrets)
            try:
                stored = await self.store.insert(job, (*events, *notes), key)
                await self._check_repeat(stored, job.id, request.secrets, key)
            except AlreadyExists:
                await self._drop(job.id, request.secrets)
                if key or last:
                    raise
                continue  # two jobs of one millisecond got the same random number
            self.hint_scheduler()
            if stored.spec.scheduling.max_wait is not None:
                self.hint_job(stored.id)
            return stored
        raise AssertionError("unreachable")

    async def lacks(self, spec: JobSpec) -> str:
        """A sentence where such a job would run without GPUs that it asks for; else empty."""
        return await self.shortage.missing_gpus(spec) if self.shortage is not None else ""

    async def get(self, project: str, location: str, job: str) -> Job:
        return self._with_reason(await self.store.get(project, location, job))

    async def find(self, query: JobQuery, *, reasons: bool = True) -> JobPage:
        """One page of jobs. Pass reasons=False where waiting reasons are not shown: they cost time."""
        page = await self.store.find(query)
        if not reasons:
            return page
        return replace(page, jobs=tuple(self._with_reason(j) for j in page.jobs))

    async def wait(self, project: str, location: str, job: str, patience: timedelta) -> Job:
        """The job once it is final, or as it is after `patience`."""
        deadline = time.monotonic() + patience.total_seconds()
        with self.notifier.listen(job) as event:
            while True:
                event.clear()
                stored = await self.store.get(project, location, job)
                left = deadline - time.monotonic()
                if stored.is_final or left <= 0:
                    return self._with_reason(stored)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), left)

    async def cancel(self, project: str, location: str, job: str) -> None:
        """Ask for the end of a job. Asking twice is allowed; an ended job is a Conflict."""
        for _ in range(TRIES):
            stored = await self.store.get(project, location, job)
            status = stored.status
            if status.state.is_final:
                raise Conflict(
                    f"Job {stored.name} is in state {status.state} and can no longer be cancelled."
                )
            if status.cancel_asked_at is not None:
                return
            now = self.clock.now()
            asked = replace(status, state=JobState.CANCELLING, cancel_asked_at=now, updated_at=now)
            event = Event(
                at=now, reason=Reason.CANCEL_ASKED, message="Cancel was asked for.", attempt=status.attempt
            )
            try:
                self.notifier.ring(await self.store.write(stored, asked, (event,)))
            except Conflict:
                continue
            self.hint_job(job)
            return
        raise Conflict("The job changes too fast to be cancelled; try again.")

    async def delete(self, project: str, location: str, job: str) -> Operation:
        """Delete an ended job, its logs and its history."""
        for _ in range(TRIES):
            stored = await self.store.get(project, location, job)
            if not stored.is_final:
                raise Conflict(f"Job {stored.name} is in state {stored.status.state}; cancel it first.")
            operation = Operation(
                name=f"projects/{stored.project}/locations/{stored.location}/operations/{new_id()}",
                kind="delete",
                target=stored.name,
                created_at=self.clock.now(),
            )
            try:
                await self.store.delete(stored, operation)
            except Conflict:
                continue  # what its end leaves to do is still being written down
            self.notifier.ring(stored)
            self.hint_job(job)
            return operation
        raise Conflict("The job changes too fast to be deleted; try again.")

    async def operation(self, name: str) -> Operation:
        return await self.store.operation(name)

    async def events(self, project: str, location: str, job: str) -> tuple[Event, ...]:
        stored = await self.store.get(project, location, job)
        return await self.store.events(stored.id)

    async def intervals(self, project: str, location: str, job: str) -> tuple[Interval, ...]:
        """What the time of its runs was spent on, as far as the ledger has it. Deleted jobs are included."""
        closed = await self.store.intervals(project, location, job)
        if not closed:
            await self.store.get(project, location, job)  # raises NotFound where there never was such a job
        return closed

    async def secrets_of(self, project: str, location: str, job: str) -> JobSecrets:
        """The values of a job's secrets, for another job of the same kind. Never for an answer."""
        stored = await self.store.get(project, location, job)
        return all_secrets(stored.spec, await self.secrets.read(stored.id) if self.secrets else {})

    async def _keep(self, job: str, secrets: JobSecrets) -> None:
        if not secrets:
            return
        if self.secrets is None:
            raise Invalid((Violation("job_spec", "has secrets, which are not kept by this server."),))
        await self.secrets.keep(job, secrets)

    async def _drop(self, job: str, secrets: JobSecrets) -> None:
        if secrets and self.secrets is not None:
            await self.secrets.remove(job)

    async def _check_repeat(self, stored: Job, new: str, secrets: JobSecrets, key: str) -> None:
        """Raise AlreadyExists where a key is repeated with other secrets: jobs are compared without them."""
        if stored.id == new:
            return
        await self._drop(new, secrets)
        if self.secrets is not None and secrets and await self.secrets.read(stored.id) != secrets:
            raise AlreadyExists(
                f"The idempotency key {key!r} was used before, for another job ({stored.id}, "
                f"{stored.display_name!r}) with other secrets. Send the same request with it, or a new key."
            )

    async def check_spec(self, spec: JobSpec, parent: tuple[str, str], submitter: str) -> None:
        """Raise Invalid or Exhausted where such a job would be refused in this project and location."""
        if self.named_secrets is not None:
            await self.named_secrets.check(spec, parent[0])
        job = JobRequest(display_name="", spec=spec, submitter=submitter).job("", *parent, self.clock.now())
        if self.reserved is not None:
            self.reserved.check(job)
        if self.limits is not None:
            await self.limits.check(job)
        if not spec.code:
            return
        if self.code is None:
            raise Invalid((Violation("job_spec.code", "Folders are not kept by this server."),))
        await self.code.check(spec.code)

    def _with_output(self, job: Job) -> Job:
        if job.spec.output or not self.default_output:
            return job
        return replace(job, spec=replace(job.spec, output=f"{self.default_output}/{job.id}"))

    def _with_reason(self, job: Job) -> Job:
        """Add the scheduler's latest reason for a waiting job, which is only in memory."""
        if job.status.state is not JobState.QUEUED:
            return job
        latest = self.waiting_reason(job.id)
        return job if latest is None else replace(job, status=replace(job.status, waiting=latest))


def _with_output_of(earlier: Job, request: JobRequest) -> JobRequest:
    """The request with the default output that the earlier job was given, which has that job's id."""
    output = earlier.spec.output
    if request.spec.output or not output.endswith(f"/{earlier.id}"):
        return request
    return replace(request, spec=replace(request.spec, output=output))


def check_location(location: str, project: str = "") -> None:
    """Raises Invalid for "-", which means every location or project: a new resource is in one of each."""
    if project == "-":
        raise Invalid((Violation("parent", "must name one project, not '-'."),))
    if location == "-":
        raise Invalid((Violation("parent", "must name one location, such as us-central1, not '-'."),))


def new_id() -> str:
    """Nineteen digits, as Google's ids have: milliseconds, so that ids sort by age, and random digits."""
    return f"{time.time_ns() // 1_000_000:013d}{secrets.randbelow(1_000_000):06d}"

"""The scheduling cycle: a snapshot of the fleet and the queue, `admit`, and the answers made durable."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import assert_never

from trainshed.core.admit import AdmissionResult, answers, is_waiting, snapshot_of
from trainshed.core.errors import Conflict
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.fleet import Admission, Fit
from trainshed.core.job import Job, JobState, planned_replicas
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.readiness import Readiness, ReadinessState

NOTED = timedelta(seconds=1)  # a shorter wait is not worth a line in the job's history


@dataclass(slots=True)
class Scheduler:
    store: Store
    backend: Backend
    clock: Clock
    fit: Fit
    ring: Callable[[Job], None]
    hint: Callable[[], None]
    hint_job: Callable[[str], None]
    noted: timedelta = NOTED
    cached: Callable[[Job], str] = lambda _: ""  # which image cache a job starts from
    waiting: dict[str, Waiting] = field(default_factory=dict[str, Waiting])
    freed: set[str] = field(default_factory=set[str])  # all of them is gone, which is being written down
    marks: dict[str, int] = field(default_factory=dict[str, int])  # how far each is that is being prepared
    noted_marks: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def is_full(self) -> bool:
        """Whether jobs wait already: one more then changes little, and may be looked at a moment later."""
        return bool(self.waiting)

    def reason(self, job: str) -> Waiting | None:
        return self.waiting.get(job)

    @contextmanager
    def freeing(self, job: str) -> Generator[None]:
        """Nothing of the job is left: what it held is given out while its end is still being written down."""
        self.freed.add(job)
        self.hint()
        try:
            yield
        finally:
            self.freed.discard(job)

    async def cycle(self, _key: str = "") -> datetime | None:
        """Flown by a work queue of its own, which gives it its back-off and its one flight at a time."""
        active = await self.store.active()
        ready, unready = self._by_readiness(active)
        if not ready and not unready:
            self.waiting.clear()
            return None
        now = self.clock.now()
        queue = [job for job, _ in ready]
        ports: set[int] = set()
        for job in active:
            if job.status.admission:
                ports |= job.status.admission.ports
        holders = [job for job in active if job.id not in self.freed]
        snapshot = snapshot_of(holders, await self.backend.nodes(), self.fit, now)
        notes = {job.id: readiness for job, readiness in ready}
        again_at: datetime | None = None
        waiting: dict[str, Waiting] = {}
        for verdict in chain(answers(snapshot, queue, now), unready):
            if verdict.waiting is not None:
                waiting[verdict.job.id] = verdict.waiting
            if verdict.admission is not None:
                admitted = _admission_events(verdict.admission, notes[verdict.job.id], now)
                if line := self.cached(verdict.job):
                    admitted = *admitted, Event(at=now, reason=Reason.IMAGE_CACHED, message=line)
                await self._admit(verdict.job, verdict.admission, ports, admitted, now)
            elif (due := self._noted_at(verdict)) <= now:
                await self._note(verdict, now)
            else:
                again_at = min(due, again_at or due)
        self.waiting = waiting
        self.noted_marks = {job: mark for job, mark in self.noted_marks.items() if job in waiting}
        return again_at

    def _by_readiness(
        self, active: Iterable[Job]
    ) -> tuple[list[tuple[Job, Readiness]], list[AdmissionResult]]:
        """The waiting jobs that may be admitted, and the answer to those that are not ready for it yet."""
        ready: list[tuple[Job, Readiness]] = []
        unready: list[AdmissionResult] = []
        self.marks.clear()
        for job in active:
            if not is_waiting(job):
                continue
            readiness = self.backend.prepare(job.spec, job.id)
            if readiness.mark:
                self.marks[job.id] = readiness.mark
            match readiness.standing:
                case ReadinessState.READY:
                    ready.append((job, readiness))
                case ReadinessState.PREPARING:
                    unready.append(AdmissionResult(job=job, waiting=readiness.waiting))
                case ReadinessState.FAILED:
                    self.hint_job(job.id)  # its own turn ends it
                case _:
                    assert_never(readiness.standing)
        return ready, unready

    async def _admit(
        self, job: Job, admission: Admission, used: set[int], events: tuple[Event, ...], now: datetime
    ) -> None:
        admission = await self.backend.address(admission, job.spec, frozenset(used))
        used.update(admission.ports)
        status = replace(
            job.status,
            state=JobState.PENDING,
            admission=admission,
            replicas=planned_replicas(job.spec),
            prepared_at=_prepared_at(job, now),
            admitted_at=now,
            updated_at=now,
            waiting=Waiting(
                reason=Reason.STARTING, message="Admitted; its replicas are being started.", remedy=""
            ),
        )
        try:
            # After a power cut nothing runs, so an admission that was lost is simply given again.
            written = await self.store.write(job, status, events, flush=False)
        except Conflict:
            self.hint()  # cancelled meanwhile, say: what was set aside for it is free again
            return
        self.ring(written)
        self.hint_job(job.id)

    def _noted_at(self, verdict: AdmissionResult) -> datetime:
        """What has to be prepared is told at once: it takes a while, and the while is counted."""
        preparing = verdict.waiting is not None and verdict.waiting.reason is Reason.PREPARING
        return verdict.job.created_at + (timedelta() if preparing else self.noted)

    async def _note(self, verdict: AdmissionResult, now: datetime) -> None:
        """Keep a new kind of reason in the job's history; numbers that merely move stay in memory."""
        waiting, before, job = verdict.waiting, verdict.job.status.waiting, verdict.job.id
        mark = self.marks.get(job, 0)
        is_known = before is not None and waiting is not None and before.reason is waiting.reason
        if waiting is None or (is_known and mark <= self.noted_marks.get(job, 0)):
            return
        event = Event(at=now, reason=waiting.reason, message=waiting.message)
        try:
            status = replace(verdict.job.status, waiting=waiting, updated_at=now)
            if waiting.reason is Reason.PREPARING:
                status = replace(status, preparing_since=status.preparing_since or now, prepared_at=None)
            else:
                status = replace(status, prepared_at=_prepared_at(verdict.job, now))
            await self.store.write(verdict.job, status, (event,), flush=False)
            self.noted_marks[job] = mark
        except Conflict:
            self.hint()


def _prepared_at(job: Job, now: datetime) -> datetime | None:
    """When a job that had to be prepared first was: now, at the first sight of it."""
    status = job.status
    return status.prepared_at or (now if status.preparing_since is not None else None)


def _admission_events(admission: Admission, found: Readiness, now: datetime) -> tuple[Event, ...]:
    nodes = ", ".join(dict.fromkeys(p.node for p in admission.placements))
    admitted = (
        Event(at=now, reason=Reason.ADMITTED, message=f"Admitted on {nodes}."),
        *(
            Event(at=now, reason=Reason.SUBSTITUTED, message=n, severity=Severity.WARNING)
            for n in found.notes
        ),
        *(Event(at=now, reason=Reason.INSTALLED, message=line) for line in found.installed),
    )
    if not admission.cuts:
        return admitted
    text = f"The job is larger than the machines here and gets all there is. {'; '.join(admission.cuts)}."
    if len(admission.placements) > 1:
        text += " Its replicas share that: each may use what the others leave."
    return *admitted, Event(at=now, reason=Reason.SHRUNK, message=text, severity=Severity.WARNING)

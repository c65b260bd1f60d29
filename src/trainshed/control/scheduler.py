"""The scheduling cycle: a snapshot of the fleet and the queue, `admit`, and the answers made durable."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainshed.core.admit import Verdict, admit, is_waiting, snapshot_of
from trainshed.core.errors import Conflict
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.fleet import Admission, Fit
from trainshed.core.job import Job, JobState, planned_replicas
from trainshed.core.ports import Backend, Clock, Store

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
    waiting: dict[str, Waiting] = field(default_factory=dict[str, Waiting])

    def reason(self, job: str) -> Waiting | None:
        return self.waiting.get(job)

    async def cycle(self, _key: str = "") -> datetime | None:
        """Flown by a work queue of its own, which gives it its back-off and its one flight at a time."""
        active = await self.store.active()
        queue = [j for j in active if is_waiting(j)]
        if not queue:
            self.waiting.clear()
            return None
        now = self.clock.now()
        ports: set[int] = set()
        for job in active:
            if job.status.admission:
                ports |= job.status.admission.ports
        snapshot = snapshot_of(active, await self.backend.nodes(), self.fit, now)
        verdicts = admit(snapshot, queue, now)
        self.waiting = {v.job.id: v.waiting for v in verdicts if v.waiting is not None}
        again_at: datetime | None = None
        for verdict in verdicts:
            if verdict.admission is not None:
                await self._admit(verdict.job, verdict.admission, ports, now)
            elif (due := verdict.job.created_at + self.noted) <= now:
                await self._note(verdict, now)
            else:
                again_at = min(due, again_at or due)
        return again_at

    async def _admit(self, job: Job, admission: Admission, used: set[int], now: datetime) -> None:
        count = len(admission.placements) + 1
        ports = await self.backend.free_ports(count, frozenset(used))
        used.update(ports)
        places = tuple(replace(p, port=port) for p, port in zip(admission.placements, ports[1:], strict=True))
        admission = replace(admission, placements=places, master_port=ports[0])
        status = replace(
            job.status,
            state=JobState.PENDING,
            admission=admission,
            replicas=planned_replicas(job.spec),
            admitted_at=now,
            updated_at=now,
            waiting=Waiting(
                reason=Reason.STARTING, message="Admitted; its replicas are being started.", remedy=""
            ),
        )
        try:
            # After a power cut nothing runs, so an admission that was lost is simply given again.
            events = _admission_events(admission, now)
            written = await self.store.write(job, status, events, flush=False)
        except Conflict:
            self.hint()  # cancelled meanwhile, say: what was set aside for it is free again
            return
        self.ring(written)
        self.hint_job(job.id)

    async def _note(self, verdict: Verdict, now: datetime) -> None:
        """Keep a new kind of reason in the job's history; numbers that merely move stay in memory."""
        waiting, before = verdict.waiting, verdict.job.status.waiting
        if waiting is None or (before is not None and before.reason is waiting.reason):
            return
        event = Event(at=now, reason=waiting.reason, message=waiting.message)
        try:
            status = replace(verdict.job.status, waiting=waiting, updated_at=now)
            await self.store.write(verdict.job, status, (event,), flush=False)
        except Conflict:
            self.hint()


def _admission_events(admission: Admission, now: datetime) -> tuple[Event, ...]:
    nodes = ", ".join(dict.fromkeys(p.node for p in admission.placements))
    admitted = Event(at=now, reason=Reason.ADMITTED, message=f"Admitted on {nodes}.")
    if not admission.cuts:
        return (admitted,)
    text = f"The job is larger than the machines here and gets all there is. {'; '.join(admission.cuts)}."
    return admitted, Event(at=now, reason=Reason.SHRUNK, message=text, severity=Severity.WARNING)

"""The scheduling cycle: load what changed, decide with `core.admit`, write who may start.

A cycle costs the same however many jobs wait. The backlog holds the queue in order and is changed job by job.
It tries each shape of job once and leaves the refusals as data. They are worded for a job somebody asks about
(`reason`) and, once for each kind of reason, for its history.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import islice
from typing import assert_never

from trainshed.control.backlog import Backlog
from trainshed.core.admit import Cycle, snapshot_of
from trainshed.core.errors import Conflict
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.fleet import Admission, Fit, Node
from trainshed.core.job import Job, JobState, Status, planned_replicas
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.readiness import Readiness, ReadinessState
from trainshed.core.refusal import UNPLACEABLE, in_words

NOTED = timedelta(seconds=1)  # a shorter wait is not worth a line in the job's history
MOST_LOOKS = 100  # jobs that are being prepared, at which one cycle looks without a hint
MOST_NOTES = 20  # refusals that one cycle writes down; the next follows at once


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
    backlog: Backlog = field(default_factory=Backlog)
    freed: set[str] = field(default_factory=set[str])  # all of them is gone, which is being written down
    _hinted: dict[str, None] = field(default_factory=dict[str, None])
    _last: Cycle | None = None  # what was decided last: whom a waiting job waits for
    _nodes: tuple[Node, ...] | None = None
    _unnoted: list[tuple[datetime, str]] = field(
        default_factory=list[tuple[datetime, str]]
    )  # a heap, by when

    def __post_init__(self) -> None:
        self.store.on_change(self.backlog.follow)

    @property
    def is_full(self) -> bool:
        """Whether jobs wait already: one more then changes little, and may be looked at a moment later."""
        return bool(self.backlog.ready or self.backlog.unready)

    def is_unready(self, job: str) -> bool:
        return job in self.backlog.unready

    def reason(self, id: str) -> Waiting | None:
        """Why the job waits, by the last cycle; None where no cycle has looked at it."""
        if (job := self.backlog.unready.get(id)) is not None:
            readiness = self.backend.prepare(job.spec, id)
            return readiness.waiting if readiness.standing is ReadinessState.PREPARING else None
        job = self.backlog.ready.get(id)
        refusal = self._last.refusal_of(job) if job is not None and self._last is not None else None
        return None if refusal is None else in_words(refusal)

    def look_at(self, job: str) -> None:
        """What the waiting job needs may be there, or further on its way."""
        self._hinted[job] = None
        self.hint()

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
        await self.store.catch_up()
        if self.backlog.is_empty:
            self._last = None
            self._unnoted.clear()
            return None
        nodes = await self.backend.nodes()
        now = self.clock.now()
        self._notice(nodes)
        preparing = self._sort_by_readiness()
        ports: set[int] = set()
        for job in self.backlog.admitted.values():
            if job.status.admission:
                ports |= job.status.admission.ports
        for job, admission, readiness in self._decide(nodes, now):
            events = _admission_events(admission, readiness, now)
            if line := self.cached(job):
                events = *events, Event(at=now, reason=Reason.IMAGE_CACHED, message=line)
            await self._admit(job, admission, ports, events, now)
        for job, readiness in preparing:
            await self._note_preparing(job, readiness, now)
        return await self._note_refusals(now)

    def _notice(self, nodes: tuple[Node, ...]) -> None:
        """With other machines other jobs are too large."""
        if nodes != self._nodes:
            self._nodes = nodes
            self.backlog.ready.bring_back()
            for job in self.backlog.ready:
                self._note_later(job)

    def _sort_by_readiness(self) -> list[tuple[Job, Readiness]]:
        """Look at the waiting jobs that are new or hinted, and at some of those that are being prepared.

        The answer names those that are being prepared still.
        """
        backlog, preparing = self.backlog, list[tuple[Job, Readiness]]()
        hinted, self._hinted = self._hinted, {}
        jobs = {**backlog.unseen, **{id: backlog.unready[id] for id in hinted if id in backlog.unready}}
        some = {id: job for id, job in islice(backlog.unready.items(), MOST_LOOKS) if id not in jobs}
        for job in (*jobs.values(), *some.values()):
            readiness = self.backend.prepare(job.spec, job.id)
            match readiness.standing:
                case ReadinessState.READY:
                    backlog.set_ready(job)
                    self._note_later(job)
                    if job.id in some:
                        self.hint()  # those who wait for the same thing are ready too
                case ReadinessState.PREPARING:
                    backlog.set_unready(job)
                    preparing.append((job, readiness))
                case ReadinessState.FAILED:
                    backlog.set_unready(job)
                    self.hint_job(job.id)  # its own turn ends it
                case _:
                    assert_never(readiness.standing)
        return preparing

    def _decide(self, nodes: tuple[Node, ...], now: datetime) -> list[tuple[Job, Admission, Readiness]]:
        """Who may start. The refusals stay in the cycle."""
        ready, before = self.backlog.ready, self._last.head if self._last else None
        holders = [job for job in self.backlog.admitted.values() if job.id not in self.freed]
        self._last = cycle = Cycle(snapshot_of(holders, nodes, self.fit, now), now)
        chosen: list[tuple[Job, Admission, Readiness]] = []
        taken_away: list[Job] = []  # ready once, and not any more
        for job in ready.in_order(cycle.refused):
            readiness = self.backend.prepare(job.spec, job.id)
            if not readiness.is_ready:
                taken_away.append(job)
                continue
            if (admission := cycle.answer(job).admission) is not None:
                chosen.append((job, admission, readiness))
            if cycle.is_over:
                break
        for shape, refusal in cycle.refused.items():
            if refusal.reason in UNPLACEABLE:
                ready.set_aside(shape)
        for job in taken_away:
            self.backlog.set_unready(job)
            self.look_at(job.id)
        if cycle.head is not None and (before is None or before.id != cycle.head.id):
            for job in filter(None, (before, cycle.head)):
                self._note_later(job)
        return chosen

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

    def _note_later(self, job: Job) -> None:
        heappush(self._unnoted, (job.created_at + self.noted, job.id))

    async def _note_refusals(self, now: datetime) -> datetime | None:
        """Keep a new kind of reason in the job's history; numbers that merely move are not kept.

        Only jobs of which the kind may have changed are looked at. The answer is when to go on.
        """
        written = 0
        while self._unnoted and written < MOST_NOTES:
            due, id = self._unnoted[0]
            job = self.backlog.ready.get(id)
            if job is not None and due > now:
                return due
            refusal = self._last.refusal_of(job) if job is not None and self._last is not None else None
            if job is not None and refusal is not None and not _is_noted(job, refusal.reason):
                status = replace(job.status, prepared_at=_prepared_at(job, now))
                if not await self._note(job, status, in_words(refusal), now):
                    return now
                written += 1
            heappop(self._unnoted)
        return now if self._unnoted else None

    async def _note_preparing(self, job: Job, readiness: Readiness, now: datetime) -> None:
        """What has to be prepared is told at once: it takes a while, and the while is counted."""
        mark = readiness.mark
        if not _is_noted(job, Reason.PREPARING) or mark > self.backlog.marks.get(job.id, 0):
            since = job.status.preparing_since or now
            status = replace(job.status, preparing_since=since, prepared_at=None)
            if await self._note(job, status, readiness.waiting, now):
                self.backlog.marks[job.id] = mark

    async def _note(self, job: Job, status: Status, waiting: Waiting, now: datetime) -> bool:
        """Whether it is written; a job that has changed meanwhile is looked at again."""
        event = Event(at=now, reason=waiting.reason, message=waiting.message)
        try:
            noted = replace(status, waiting=waiting, updated_at=now)
            await self.store.write(job, noted, (event,), flush=False)
        except Conflict:
            self.hint()
            return False
        return True


def _is_noted(job: Job, reason: Reason) -> bool:
    return job.status.waiting is not None and job.status.waiting.reason is reason


def _prepared_at(job: Job, now: datetime) -> datetime | None:
    """When a job that had to be prepared first was: now, at the first sight of it."""
    status = job.status
    return status.prepared_at or (now if status.preparing_since is not None else None)


def _admission_events(admission: Admission, readiness: Readiness, now: datetime) -> tuple[Event, ...]:
    nodes = ", ".join(dict.fromkeys(p.node for p in admission.placements))
    admitted = (
        Event(at=now, reason=Reason.ADMITTED, message=f"Admitted on {nodes}."),
        *(
            Event(at=now, reason=Reason.SUBSTITUTED, message=n, severity=Severity.WARNING)
            for n in readiness.notes
        ),
        *(Event(at=now, reason=Reason.INSTALLED, message=line) for line in readiness.installed),
    )
    if not admission.cuts:
        return admitted
    text = f"The job is larger than the machines here and gets all there is. {'; '.join(admission.cuts)}."
    if len(admission.placements) > 1:
        text += " Its replicas share that: each may use what the others leave."
    return *admitted, Event(at=now, reason=Reason.SHRUNK, message=text, severity=Severity.WARNING)

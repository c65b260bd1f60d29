"""Scheduler: a cycle decides with `admit` which waiting jobs may start, and writes their admissions.

A work queue calls `cycle`, one at a time. A cycle costs the same however many jobs wait: the backlog keeps
the queue in order and is updated job by job. A cycle tries each shape of job once and keeps the refusals as
data. They become sentences for a job that somebody asks about (`reason`) and, once per kind of reason, for
its history.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import islice
from typing import assert_never

from trainshed.control.backlog import Backlog
from trainshed.control.pauses import Pauses
from trainshed.control.preemption import Checkpointed, Preempter, never, standings
from trainshed.core.errors import Conflict
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs.job import Job, JobState, Status, planned_replicas
from trainshed.core.jobs.readiness import Readiness, ReadinessState
from trainshed.core.jobs.site import placed_at
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Admission, Fit, Node
from trainshed.core.queue.guarantee import Standing
from trainshed.core.queue.refusal import UNPLACEABLE, Refusal, in_words
from trainshed.core.queue.shape import Sites
from trainshed.core.queue.share import UNDIVIDED, ShareTree
from trainshed.core.queue.share_report import ShareRow, share_rows
from trainshed.core.queue.snapshot import Holdings, Snapshot, snapshot_of

NOTED = timedelta(seconds=1)  # a shorter wait gets no line in the job's history
MOST_LOOKS = 100  # jobs in preparation that one cycle looks at without a hint
MOST_NOTES = 20  # refusals that one cycle records; the next cycle follows at once


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
    shares: Callable[[], ShareTree | None] = lambda: None  # as they are set now; None: they are not
    cached: Callable[[Job], str] = lambda _: ""  # a sentence on the image cache that a job starts from
    budget: Callable[[str], Waiting | None] = lambda _: None  # why new jobs of a project may not start now
    has_accounts: Callable[[], bool] = lambda: False  # whether others than the owner use the server
    checkpointed: Checkpointed = never
    backlog: Backlog = field(default_factory=Backlog)
    freed: set[str] = field(default_factory=set[str])  # ended, while their end is being written
    _hinted: dict[str, None] = field(default_factory=dict[str, None])
    _last: Cycle | None = None  # the last cycle: for whom each waiting job waits
    _nodes: tuple[Node, ...] | None = None
    _holdings: Holdings = field(default_factory=Holdings)
    _standings: tuple[object, Mapping[str, Standing]] = (None, {})  # and of which state they are
    _unnoted: list[tuple[datetime, str]] = field(
        default_factory=list[tuple[datetime, str]]
    )  # a heap, by when

    _preempter: Preempter = field(init=False)
    _pauses: Pauses = field(init=False)

    def __post_init__(self) -> None:
        self._preempter = Preempter(
            self.store, self.ring, self.hint, self.hint_job, self.checkpointed, self.has_accounts
        )
        self._pauses = Pauses(self.store, self.checkpointed)
        self.store.on_commit(self.backlog.follow)

    @property
    def is_full(self) -> bool:
        """Whether jobs wait already. The cycle for one more may then come a moment later."""
        return bool(self.backlog.ready or self.backlog.unready)

    def sites(self) -> Mapping[str, Sites]:
        """Where waiting jobs may be placed, by id; those that may be on any node are not in it."""
        return self.backlog.ready.sites

    def tree(self) -> ShareTree | None:
        """By what the jobs that are there now are divided; None: by nothing."""
        tree = self.shares()
        return UNDIVIDED if tree is None and self.backlog.spots else tree

    def unready(self) -> Mapping[str, Job]:
        """The waiting jobs for which something is still being prepared, by id. Not to be kept."""
        return self.backlog.unready

    def reason(self, id: str) -> Waiting | None:
        """Why the job waits, according to the last cycle; None if no cycle has looked at it."""
        if (job := self.backlog.unready.get(id)) is not None:
            if (waiting := self.budget(job.project)) is not None:
                return waiting
            readiness = self.backend.prepare(job.spec, id)
            return readiness.waiting if readiness.standing is ReadinessState.PREPARING else None
        job = self.backlog.ready.get(id)
        refusal = self._last.refusal_of(job) if job is not None and self._last is not None else None
        return None if job is None or refusal is None else self._in_words(job, refusal)

    def _in_words(self, job: Job, refusal: Refusal) -> Waiting:
        """Who may see the job may not see those of other projects, where others use the server too."""
        is_team = self.has_accounts()
        return in_words(refusal, lambda named: is_team and named[2] != job.project)

    def look_at(self, job: str) -> None:
        """Look at this waiting job: its preparation may have finished or advanced."""
        self._hinted[job] = None
        self.hint()

    @contextmanager
    def freeing(self, job: str) -> Generator[None]:
        """Give out what an ended job used while its end is still being written."""
        self.freed.add(job)
        self.hint()
        try:
            yield
        finally:
            self.freed.discard(job)

    async def cycle(self, _key: str = "") -> datetime | None:
        """One scheduling cycle; returns when the next is due. A work queue of its own calls it."""
        await self.store.catch_up()
        if self.backlog.is_empty:
            self._last = None
            self._unnoted.clear()
            return None
        nodes = await self.backend.nodes()
        now = self.clock.now()
        self._notice(nodes)
        unready = self._sort_by_readiness()
        await self._preempter.stop_claimed(self.backlog.claimants.values(), self.backlog.admitted, now)
        ports: set[int] = set()
        for job in self.backlog.admitted.values():
            if job.status.admission:
                ports |= job.status.admission.ports
        for job, admission, readiness in self._decide(nodes, now):
            placed = placed_at(admission, nodes, readiness)
            events = _admission_events(placed, readiness, now)
            if line := self.cached(job):
                events = *events, Event(at=now, reason=Reason.IMAGE_CACHED, message=line)
            await self._admit(job, placed, ports, events, now)
        if self._last is not None:
            await self._preempter.drop_stale(self._last, self.backlog.claimants, now)
            await self._preempter.preempt(self._last, self.backlog.admitted, now)
        for job, readiness in unready:
            if readiness is None:
                await self._note_budget(job, now)
            else:
                await self._note_preparing(job, readiness, now)
        due = [await self._note_refusals(now), *await self._look_at_pauses(now)]
        return min((at for at in due if at is not None), default=None)

    async def _look_at_pauses(self, now: datetime) -> list[datetime | None]:
        """Returns when to look again, and when the first of the jobs that pause may start."""
        refusals = self._last.single.items() if self._last is not None else ()
        until = {id: r.starts_by for id, r in refusals if r.reason is Reason.PAUSES}
        jobs = [job for id in until if (job := self.backlog.ready.get(id)) is not None]
        return [await self._pauses.look(jobs, now), *until.values()]

    def _notice(self, nodes: tuple[Node, ...]) -> None:
        """If the machines have changed, try again the shapes that fitted none."""
        if nodes != self._nodes:
            self._nodes = nodes
            self.backlog.ready.bring_back()
            for job in self.backlog.ready:
                self._note_later(job)

    def _sort_by_readiness(self) -> list[tuple[Job, Readiness | None]]:
        """Look at the waiting jobs that are new or hinted, and at some of those that are not ready.

        Returns those that are still in preparation, and with None those whose project's budget is spent:
        nothing is prepared for them.
        """
        backlog, unready = self.backlog, list[tuple[Job, Readiness | None]]()
        hinted, self._hinted = self._hinted, {}
        jobs = {**backlog.unseen, **{id: backlog.unready[id] for id in hinted if id in backlog.unready}}
        some = {id: job for id, job in islice(backlog.unready.items(), MOST_LOOKS) if id not in jobs}
        for job in (*jobs.values(), *some.values()):
            if self.budget(job.project) is not None:
                backlog.set_unready(job)
                unready.append((job, None))
                continue
            readiness = self.backend.prepare(job.spec, job.id)
            match readiness.standing:
                case ReadinessState.READY:
                    backlog.set_ready(job, readiness.sites)
                    self._note_later(job)
                    if job.id in some:
                        self.hint()  # jobs that wait for the same thing are ready too
                case ReadinessState.PREPARING:
                    backlog.set_unready(job)
                    unready.append((job, readiness))
                case ReadinessState.FAILED:
                    backlog.set_unready(job)
                    self.hint_job(job.id)  # its own turn fails it
                case _:
                    assert_never(readiness.standing)
        return unready

    def _decide(self, nodes: tuple[Node, ...], now: datetime) -> list[tuple[Job, Admission, Readiness]]:
        """Decide which jobs may start. The refusals stay in the cycle."""
        before, tree = _heads(self._last), self.tree()
        self.backlog.divide(tree)
        ready = self.backlog.ready
        self._last = cycle = Cycle(self._snapshot(nodes, now, tree), now, ready)
        chosen: list[tuple[Job, Admission, Readiness]] = []
        taken_away: list[Job] = []  # no longer ready
        for job in cycle.walk(ready):
            readiness = self.backend.prepare(job.spec, job.id)
            is_as_before = readiness.is_ready and readiness.sites == ready.sites.get(job.id, ())
            if not is_as_before or self.budget(job.project) is not None:
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
        heads = _heads(cycle)
        if heads.keys() - before.keys():
            for id, job in (before | heads).items():
                if id not in before or id not in heads:
                    self._note_later(job)
        return chosen

    def _snapshot(self, nodes: tuple[Node, ...], now: datetime, tree: ShareTree | None) -> Snapshot:
        backlog = self.backlog
        holders = [job for job in backlog.admitted.values() if job.id not in self.freed]
        everyone = (*holders, *backlog.claimants.values())
        return snapshot_of(everyone, nodes, self.fit, now, backlog.ready.sites, tree, self._holdings)

    def standings(self) -> Mapping[str, Standing]:
        """How each running job stands in its share, by id; without shares only those that run as spot."""
        tree, backlog = self.tree(), self.backlog
        if tree is None:
            return {}
        # Lists ask for it again and again: it is worked out once for each state of the queue.
        state = tree, self._nodes, backlog.changes, len(backlog.ready), frozenset(self.freed)
        if state != self._standings[0]:
            self._standings = state, standings(self._begun(tree))
        return self._standings[1]

    async def share_rows(self) -> tuple[ShareRow, ...]:
        """What each share has, uses and waits for; none where no shares are set."""
        nodes = await self.backend.nodes()  # as they are now: the last cycle may be long ago
        if (tree := self.shares()) is None:
            return ()
        cycle, waiting = self._begun(tree, nodes), self.backlog.ready.counts()
        for job in (*self.backlog.unready.values(), *self.backlog.unseen.values()):
            waiting[tree.share_of_job(job)] += 1
        return share_rows(cycle, waiting)

    def in_turn(self) -> Iterator[Job]:
        """The jobs that nothing is prepared for, as a cycle would try them now; at the end who fits nowhere.

        Take what you need before you wait for anything: the jobs must not change meanwhile.
        """
        tree, ready = self.tree(), self.backlog.ready
        yield from ready.in_order((), None if tree is None else self._begun(tree).turn)
        yield from self.backlog.unseen.values()
        yield from ready.aside()

    def _begun(self, tree: ShareTree, nodes: tuple[Node, ...] | None = None) -> Cycle:
        """A cycle before its first answer; on the nodes of the last one, unless others are given."""
        self.backlog.divide(tree)
        now, nodes = self.clock.now(), self._nodes or () if nodes is None else nodes
        return Cycle(self._snapshot(nodes, now, tree), now, self.backlog.ready)

    async def _admit(
        self, job: Job, admission: Admission, used: set[int], events: tuple[Event, ...], now: datetime
    ) -> None:
        admission = await self.backend.address(admission, job.spec, frozenset(used))
        used.update(admission.ports)
        status = replace(
            job.status,
            state=JobState.PENDING,
            admission=admission,
            replicas=job.status.replicas or planned_replicas(job.spec),
            claim=None,
            prepared_at=_prepared_at(job, now),
            admitted_at=now,
            updated_at=now,
            waiting=Waiting(
                reason=Reason.STARTING, message="Admitted; its replicas are being started.", remedy=""
            ),
        )
        try:
            # After a power cut nothing runs, so a lost admission is simply made again.
            written = await self.store.write(job, status, events, flush=False)
        except Conflict:
            self.hint()  # perhaps it was cancelled: what was reserved for it is free again
            return
        self.ring(written)
        self.hint_job(job.id)

    def _note_later(self, job: Job) -> None:
        heappush(self._unnoted, (job.created_at + self.noted, job.id))

    async def _note_refusals(self, now: datetime) -> datetime | None:
        """Record a new kind of reason in the job's history; changed numbers alone are not recorded.

        Only jobs whose kind of reason may have changed are looked at. Returns when to continue.
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
                if not await self._note(job, status, self._in_words(job, refusal), now):
                    return now
                written += 1
            heappop(self._unnoted)
        return now if self._unnoted else None

    async def _note_budget(self, job: Job, now: datetime) -> None:
        waiting = self.budget(job.project)
        if waiting is not None and not _is_noted(job, waiting.reason):
            await self._note(job, replace(job.status, prepared_at=_prepared_at(job, now)), waiting, now)

    async def _note_preparing(self, job: Job, readiness: Readiness, now: datetime) -> None:
        """Record at once that a job is in preparation: it takes time, and that time is counted."""
        mark = readiness.mark
        if not _is_noted(job, Reason.PREPARING) or mark > self.backlog.marks.get(job.id, 0):
            since = job.status.preparing_since or now
            status = replace(job.status, preparing_since=since, prepared_at=None)
            if await self._note(job, status, readiness.waiting, now):
                self.backlog.marks[job.id] = mark

    async def _note(self, job: Job, status: Status, waiting: Waiting, now: datetime) -> bool:
        """Write the reason; False if the job has changed meanwhile and is looked at again."""
        event = Event(at=now, reason=waiting.reason, message=waiting.message)
        try:
            noted = replace(status, waiting=waiting, updated_at=now)
            await self.store.write(job, noted, (event,), flush=False)
        except Conflict:
            self.hint()
            return False
        return True


def _heads(cycle: Cycle | None) -> dict[str, Job]:
    return {} if cycle is None else {head.job.id: head.job for head in cycle.heads.values()}


def _is_noted(job: Job, reason: Reason) -> bool:
    return job.status.waiting is not None and job.status.waiting.reason is reason


def _prepared_at(job: Job, now: datetime) -> datetime | None:
    """When the preparation of the job ended: now, if that was not recorded before."""
    status = job.status
    return status.prepared_at or (now if status.preparing_since is not None else None)


def _admission_events(admission: Admission, readiness: Readiness, now: datetime) -> tuple[Event, ...]:
    nodes = ", ".join(dict.fromkeys(p.node for p in admission.placements))
    admitted = (
        Event(at=now, reason=Reason.ADMITTED, message=f"Admitted on {nodes}. {admission.why}".strip()),
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

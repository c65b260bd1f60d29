"""Use case of the queue: all waiting jobs in the order in which they are tried, and what is prepared.

`api/queue.py` calls it. The store's commits keep the order, so a page costs the same however many jobs wait;
with shares it costs what is before it too. No scheduling cycle takes longer because somebody looks. Reasons
are those of the last cycle. When jobs may start is simulated only where it is asked for, in a thread, for the
first jobs alone, and for all who ask within FRESH once. It writes nothing and hints nobody.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from trainshed.core.event import Waiting
from trainshed.core.explain.arrivals import NOBODY
from trainshed.core.explain.explanation import Eta, World
from trainshed.core.explain.foresee import PASSERS, foresee_several
from trainshed.core.explain.history import History
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.readiness import PreparationProgress
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.queue.admit import in_turn
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.place import Amount, needs, total
from trainshed.core.queue.queue_order import QueueOrder
from trainshed.core.queue.queue_walk import ALL, QueuePlace, following, walk
from trainshed.core.queue.shape import Sites, order
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import snapshot_of
from trainshed.service.past_runs import PastRuns

FORESEEN = 50  # jobs: the start of those behind them is too far to be seen
FRESH = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    job: Job
    position: int | None  # from 1, among the jobs that are ready to start; None: something is prepared first
    waiting: Waiting | None
    needs: Amount
    eta: Eta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePage:
    rows: tuple[QueueRow, ...]
    total: int  # on all pages
    next: QueuePlace | None  # behind which the next page begins


@dataclass(frozen=True, slots=True)
class Forecast:
    made_at: datetime
    etas: "asyncio.Task[Mapping[str, Eta]]"


@dataclass(slots=True)
class QueueService:
    store: Store
    backend: Backend
    clock: Clock
    fit: Fit
    reason: Callable[[str], Waiting | None]  # the latest of a waiting job
    unready: Callable[[], Mapping[str, Job]]  # waiting jobs that are still being prepared
    sites: Callable[[], Mapping[str, Sites]] = dict[str, Sites]  # where waiting jobs may be placed
    has_accounts: Callable[[], bool] = lambda: False  # whether others than the owner use the server
    shares: Callable[[], ShareTree | None] = lambda: None
    in_turn: Callable[[], Iterable[Job]] = tuple[Job, ...]  # those that are ready, where shares are set
    set_aside: Callable[[], Iterable[Job]] = tuple[Job, ...]  # those of them that no cycle tries
    _order: QueueOrder = field(default_factory=QueueOrder)
    _forecast: Forecast | None = None

    def __post_init__(self) -> None:
        self.store.on_commit(self._order.follow)

    async def page(
        self, project: str, location: str, after: QueuePlace, limit: int, *, with_eta: bool
    ) -> QueuePage:
        """The jobs of a project and location ("-": of all); their positions count those of all."""
        etas = await self._etas() if with_eta else dict[str, Eta]()
        tree = None if ALL in after else self.shares()
        places = {} if tree is None else dict(after)
        rows: list[QueueRow] = []
        for lane, job, position in self._by_age(after) if tree is None else self._by_lanes(after, tree):
            if project not in ("-", job.project) or location not in ("-", job.location):
                continue
            if len(rows) == limit:
                return self._page(project, location, rows, following(places))
            rows.append(self._row(job, position, etas.get(job.id)))
            places[lane] = order(job)
        return self._page(project, location, rows, None)

    def _page(
        self, project: str, location: str, rows: list[QueueRow], following: QueuePlace | None
    ) -> QueuePage:
        return QueuePage(rows=tuple(rows), total=self._order.count(project, location), next=following)

    def _by_age(self, after: QueuePlace) -> Iterator[tuple[str, Job, int | None]]:
        place, unready = after.get(ALL), self.unready()
        before = sum(order(job) <= place for job in unready.values()) if place is not None else 0
        for at, job in self._order.behind(place):
            before += job.id in unready
            yield ALL, job, None if job.id in unready else at + 1 - before

    def _by_lanes(self, after: QueuePlace, tree: ShareTree) -> Iterator[tuple[str, Job, int | None]]:
        position, unready = 0, self.unready()
        for lane, job in walk(self.in_turn(), (*unready.values(), *self.set_aside()), tree):
            position += job.id not in unready
            if lane not in after or order(job) > after[lane]:
                yield lane, job, None if job.id in unready else position

    def preparing(self) -> tuple[tuple[PreparationProgress, tuple[Job, ...]], ...]:
        """Everything that is being prepared, with the jobs that wait for it."""
        return tuple(
            (item, tuple(job for id in item.jobs if (job := self._order.get(id)) is not None))
            for item in self.backend.preparing()
        )

    def _row(self, job: Job, position: int | None, eta: Eta | None) -> QueueRow:
        return QueueRow(
            job=job,
            position=position,
            waiting=self.reason(job.id) or job.status.waiting,
            needs=total(needs(job.spec)),
            eta=eta,
        )

    async def _etas(self) -> Mapping[str, Eta]:
        known, now = self._forecast, self.clock.now()
        if known is None or now - known.made_at > FRESH or (known.etas.done() and known.etas.exception()):
            known = self._forecast = Forecast(now, asyncio.create_task(self._foreseen(now)))
        return await asyncio.shield(known.etas)

    async def _foreseen(self, now: datetime) -> Mapping[str, Eta]:
        unready = self.unready()
        ready = (job for _, job in self._order.behind() if job.id not in unready)
        running = tuple(job for job in await self.store.active() if job.status.admission is not None)
        nodes, tree = await self.backend.nodes(), self.shares()
        snapshot = snapshot_of(running, nodes, self.fit, now, dict(self.sites()), tree)
        first = tuple(islice(ready if tree is None else in_turn(snapshot, [*ready], now), FORESEEN + PASSERS))
        arrivals, history = NOBODY, History()
        if running:
            past = PastRuns(self.store)
            arrivals = await past.lately(now)
            history = await past.of(running, first, now, arrivals)
        world = World(
            snapshot=snapshot,
            waiting=first,
            running=running,
            history=history,
            catalogue=Catalogue(),
            now=now,
            # One answer for all who ask: then it names nobody.
            hidden=frozenset(job.id for job in (*running, *first)) if self.has_accounts() else frozenset(),
            arrivals=arrivals,
        )
        return await asyncio.to_thread(foresee_several, world, first[:FORESEEN])

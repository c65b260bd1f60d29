"""Use case of the queue: all waiting jobs in the order in which they are tried, and what is prepared.

`api/queue.py` calls it. The store's commits keep the order, so a page costs the same however many jobs wait,
and no scheduling cycle takes longer because somebody looks. Reasons are those of the last cycle. When jobs
may start is simulated only where it is asked for, in a thread, for the first jobs alone, and for all who ask
within FRESH once. It writes nothing and hints nobody.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice

from trainshed.core.admit import in_turn
from trainshed.core.event import Waiting
from trainshed.core.explanation import Eta, World
from trainshed.core.fleet import Fit
from trainshed.core.foresee import PASSERS, foresee_several
from trainshed.core.job import Job
from trainshed.core.machine import Catalogue
from trainshed.core.place import Amount, needs, total
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.queue_order import QueueOrder
from trainshed.core.readiness import PreparationProgress
from trainshed.core.shape import Order, Sites, order
from trainshed.core.share import ShareTree
from trainshed.core.snapshot import snapshot_of
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
    next: Order | None  # after which the next page begins


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
    _order: QueueOrder = field(default_factory=QueueOrder)
    _forecast: Forecast | None = None

    def __post_init__(self) -> None:
        self.store.on_commit(self._order.follow)

    async def page(
        self, project: str, location: str, after: Order | None, limit: int, *, with_eta: bool
    ) -> QueuePage:
        """The jobs of a project and location ("-": of all); their positions count those of all."""

        def is_asked_for(job: Job) -> bool:
            return project in ("-", job.project) and location in ("-", job.location)

        etas = await self._etas() if with_eta else dict[str, Eta]()
        unready = self.unready()
        before = sum(order(job) <= after for job in unready.values()) if after is not None else 0
        behind: Iterable[tuple[int, Job]] = self._order.behind(after)
        if self.shares() is not None:
            before, behind = 0, self._behind_by_shares(after)
        rows: list[QueueRow] = []
        last: Order | None = None
        for at, job in behind:
            is_unready = job.id in unready
            before += is_unready
            if not is_asked_for(job):
                continue
            if len(rows) == limit:
                last = order(rows[-1].job)
                break
            rows.append(self._row(job, None if is_unready else at + 1 - before, etas.get(job.id)))
        return QueuePage(rows=tuple(rows), total=self._order.count(project, location), next=last)

    def _behind_by_shares(self, after: Order | None) -> Iterator[tuple[int, Job]]:
        """The jobs behind that place as shares are used now; at the end those that are being prepared."""
        queue = enumerate(chain(self.in_turn(), self.unready().values()))
        if after is not None and self._order.get(after[-1]) is not None:
            next((job for _, job in queue if job.id == after[-1]), None)
        return queue

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
        world = World(
            snapshot=snapshot,
            waiting=first,
            running=running,
            history=await PastRuns(self.store).of((*running, *first) if running else ()),
            catalogue=Catalogue(),
            now=now,
            # One answer for all who ask: then it names nobody.
            hidden=frozenset(job.id for job in (*running, *first)) if self.has_accounts() else frozenset(),
        )
        return await asyncio.to_thread(foresee_several, world, first[:FORESEEN])

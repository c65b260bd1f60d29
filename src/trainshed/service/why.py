"""Use case of `why`: why a job waits, what would start it now, and when it may start.

`api/why.py` calls it, for a stored job or for a request that is not submitted. It sees the machines and the
queue exactly as the scheduler does. It writes nothing and hints nobody. All that takes longer in a long queue
is computed in threads, so that the server is never blocked.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import TypeAlias

from trainshed.core.event import Waiting
from trainshed.core.explain.arrivals import NOBODY
from trainshed.core.explain.explanation import NEWEST, Explanation, Ground, World
from trainshed.core.explain.history import History
from trainshed.core.explain.why import explain
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Backend, Clock, Store
from trainshed.core.queue.admit import in_turn
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.shape import Sites
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import Snapshot, is_waiting, snapshot_of
from trainshed.service.jobs import JobRequest, check_location
from trainshed.service.named_secrets import NamedSecretService
from trainshed.service.past_runs import PastRuns
from trainshed.service.results_check import ResultsCheck

Sees: TypeAlias = Callable[[str], bool]  # whether who asks may see what is in a project


def _sees_all(project: str) -> bool:
    return True


@dataclass(slots=True)
class WhyService:
    store: Store
    backend: Backend
    clock: Clock
    fit: Fit
    catalogue: Catalogue
    landing: ResultsCheck | None = None  # whether results can be stored; None: not checked
    named_secrets: NamedSecretService | None = None  # None: what jobs refer to is not checked
    unready: Callable[[], Mapping[str, Job]] = dict[str, Job]  # waiting jobs that are still being prepared
    sites: Callable[[], Mapping[str, Sites]] = dict[str, Sites]  # where waiting jobs may be placed
    budget: Callable[[str], Waiting | None] = lambda _: None  # why new jobs of a project may not start
    shares: Callable[[], ShareTree | None] = lambda: None

    async def explain(
        self, project: str, location: str, job: str, sees: Sees = _sees_all
    ) -> tuple[Job, Explanation]:
        """Without the names of jobs in projects that `sees` is not true of."""
        stored = await self.store.get(project, location, job)
        return stored, await self._explained(stored, sees)

    async def foresee(
        self, project: str, location: str, request: JobRequest, sees: Sees = _sees_all
    ) -> tuple[Job, Explanation]:
        """The explanation the job would get if it were submitted. It is not submitted."""
        check_location(location)
        if self.named_secrets is not None:
            await self.named_secrets.check(request.spec, project)
        job = request.job(NEWEST, project, location, self.clock.now())
        return job, await self._explained(job, sees)

    async def accelerator(self, machine_type: str) -> str:
        """The GPU that a replica on that machine type can have here; "" where there is none."""
        machine = self.catalogue.machine(machine_type)
        if machine is not None and machine.accelerator:
            return machine.accelerator
        kinds = [node.accelerator for node in await self.backend.nodes()]
        return next(filter(None, kinds), "")

    async def _explained(self, job: Job, sees: Sees) -> Explanation:
        if is_waiting(job) and (waiting := self.budget(job.project)) is not None:
            ground = Ground(reason=waiting.reason, message=waiting.message, remedy=waiting.remedy)
            return await self._with_landing(job, Explanation(state=job.status.state, ground=ground))
        active = await self.store.active() if is_waiting(job) else ()
        now = self.clock.now()
        unready = self.unready()
        waiting = tuple(j for j in active if is_waiting(j) and (j.id == job.id or j.id not in unready))
        asked = job.id if any(j.id == job.id for j in active) else ""  # without an id no preparation begins
        running = tuple(j for j in active if j.status.admission is not None)
        nodes = await self.backend.nodes() if active or is_waiting(job) else ()
        readiness = self.backend.prepare(job.spec, asked)
        sites = dict(self.sites())
        if readiness.sites:  # also for the job as it would be submitted again
            sites |= {job.id: readiness.sites, NEWEST: readiness.sites}
        snapshot = snapshot_of(active, nodes, self.fit, now, sites, self.shares())
        arrivals, history = NOBODY, History()
        if running:
            ahead = await asyncio.to_thread(_ahead, job, snapshot, waiting, now)
            past = PastRuns(self.store)
            arrivals = await past.lately(now)
            history = await past.of(running, (job, *ahead), now, arrivals)
        world = World(
            snapshot=snapshot,
            waiting=waiting,
            running=running,
            history=history,
            catalogue=self.catalogue,
            now=now,
            readiness=readiness,
            hidden=frozenset(j.id for j in active if not sees(j.project)),
            arrivals=arrivals,
        )
        return await self._with_landing(job, await asyncio.to_thread(explain, world, job))

    async def _with_landing(self, job: Job, explanation: Explanation) -> Explanation:
        """Add what prevents the job's results from being stored now, unless the job is over."""
        if self.landing is None or not job.spec.output or job.is_final:
            return explanation
        events = await self.landing.events(job, self.clock.now())
        more = tuple(Ground(reason=event.reason, message=event.message) for event in events)
        ground = explanation.ground
        return replace(explanation, ground=replace(ground, grounds=(*ground.grounds, *more)))


def _ahead(job: Job, snapshot: Snapshot, waiting: Sequence[Job], now: datetime) -> list[Job]:
    """Who is tried before this job."""
    everyone = tuple({j.id: j for j in (*waiting, job)}.values())
    return list(takewhile(lambda j: j.id != job.id, in_turn(snapshot, everyone, now)))

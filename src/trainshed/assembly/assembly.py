"""Puts a server together from its parts. `serving` calls `assemble`, then `open`, and `close` at the end."""

import asyncio
from dataclasses import dataclass

from trainshed.assembly.access import Access, make_access
from trainshed.assembly.api import HttpApi, make_api
from trainshed.assembly.backends import Backends, make_backends
from trainshed.assembly.control import Control, make_control
from trainshed.assembly.images import ImageParts, make_images
from trainshed.assembly.measuring import Measuring, make_measuring
from trainshed.assembly.notices import Notices, make_notices
from trainshed.assembly.services import make_services
from trainshed.assembly.shared import SharedParts, make_shared
from trainshed.assembly.storage import Storage, make_storage
from trainshed.assembly.studies import Studies, make_studies
from trainshed.core.jobs.job import Job, waits_since
from trainshed.core.jobs.replica import Phase
from trainshed.core.names import ReplicaName
from trainshed.core.queue.snapshot import is_waiting
from trainshed.settings.table import Settings

TICK = 10.0  # seconds between looks at everything that is not over: hints may be lost, ticks are not


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """All parts, whole; `open` starts them, `close` ends them. Replicas outlive it."""

    shared: SharedParts
    storage: Storage
    access: Access
    backends: Backends
    images: ImageParts
    measuring: Measuring
    control: Control
    studies: Studies
    notices: Notices
    api: HttpApi

    async def open(self) -> None:
        storage = self.storage
        self.backends.fleet.on_change(self.shared.queues.jobs.hint)
        if not self.shared.settings.s3:  # a server that was killed may have left the file of its store
            (self.shared.settings.home / "s3" / "env.json").unlink(missing_ok=True)
        await storage.store.start()
        await storage.logs.start()
        await storage.code.start()
        await storage.metrics.start()
        await self.backends.runtimes.start()
        await storage.buckets.start()
        await self.backends.fleet.start()
        await self._resume()
        await self.images.open()
        await self.studies.open()
        self.measuring.begin()
        self.notices.sender.begin()

    async def _resume(self) -> None:
        """Go on with what an earlier server left."""
        queues, control = self.shared.queues, self.control
        active = await self.storage.store.active()
        for job in active:
            self._measure(job)
        # Only now: a turn that ends a job closes its log, which measuring it would open again for good.
        control.shares.reserved.put(*await self.storage.store.resources())
        await control.budgets.look()  # before the first cycle
        queues.jobs.serve(control.job_loop.turn)
        queues.schedule.serve(control.scheduler.cycle)
        queues.chores.serve(lambda chore: control.chores[chore](chore))
        self.control.outputs.begin(active)
        admitted = self.control.scheduler.backlog.admitted
        for job in admitted.keys() | await self.backends.fleet.jobs():
            queues.jobs.hint(job)
        for job in active:
            if is_waiting(job) and job.spec.scheduling.max_wait is not None:
                queues.jobs.at(job.id, waits_since(job) + job.spec.scheduling.max_wait)
        queues.hint_scheduler()
        for chore in self.control.chores:
            queues.chores.hint(chore)

    def _measure(self, job: Job) -> None:
        for replica in job.status.replicas:
            if replica.phase in (Phase.RUNNING, Phase.MISSING):
                name = ReplicaName(job.id, job.status.attempt, replica.pool, replica.index)
                stdout = self.storage.logs.sink(name).stdout
                self.measuring.collector.watch(job.key(replica), stdout, begun=False)

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            for job in list(self.control.scheduler.backlog.admitted):
                self.shared.queues.jobs.hint(job)
            self.shared.queues.hint_scheduler()  # it looks at all those that wait

    async def close(self) -> None:
        queues, storage = self.shared.queues, self.storage
        self.access.accounts.audit.settle()
        await self.notices.sender.close()
        await self.studies.close()
        await self.measuring.close()
        await self.control.outputs.close()
        await storage.buckets.close()
        await storage.code.close()  # before the queues: it ends what a launch may be waiting for
        await queues.chores.close()
        await self.images.close()
        await queues.schedule.close()
        await queues.jobs.close()
        await self.backends.runtimes.close()
        await self.backends.fleet.close()
        await storage.logs.close()
        await storage.log_drops.close()
        await storage.store.close()


def assemble(settings: Settings, address: str) -> Assembly:
    """The parts of a server whose jobs reach it at `address`. The settings have been checked."""
    shared = make_shared(settings, address)
    storage = make_storage(shared)
    notices = make_notices(shared, storage)
    access = make_access(shared, storage, notices.service.remove_all_of)
    backends = make_backends(shared, storage)
    images = make_images(shared, storage.store, backends.fleet)
    measuring = make_measuring(shared, storage, backends.fleet)
    control = make_control(shared, storage, access, backends.fleet, images, measuring)
    services = make_services(shared, storage, access, backends, images, measuring, control)
    studies = make_studies(shared, storage, services.jobs, services.offer, measuring.measurements)
    return Assembly(
        shared=shared,
        storage=storage,
        access=access,
        backends=backends,
        images=images,
        measuring=measuring,
        control=control,
        studies=studies,
        notices=notices,
        api=make_api(
            shared,
            services,
            studies,
            storage.job_hints,
            access,
            backends.fleet.callers,
            notices.service,
        ),
    )

"""Use cases of persistent resources: create, get, list and delete one.

`api/persistent_resources.py` calls it. What is stored is in `ReservedShares` too, by which the scheduler
keeps others away. A resource is seen to run when somebody asks for it: nothing else depends on that. Nothing
is started and no job is stopped here.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from trainshed.core.errors import Conflict, Exhausted, NotFound
from trainshed.core.ports import Backend, Clock, Operation, Store
from trainshed.core.queue.persistent_resource import (
    PersistentResource,
    PersistentResourceStore,
    is_free,
    reservable,
)
from trainshed.core.queue.place import EPSILON, Room, needs, total
from trainshed.core.queue.quota import TRAINING_METRIC, metric
from trainshed.core.queue.share import ROOT, UNDIVIDED, in_amount
from trainshed.core.queue.share_use import ShareUse, capacities
from trainshed.core.tuning.study import Study
from trainshed.core.tuning.study_port import StudyStore
from trainshed.service.jobs import check_location, new_id
from trainshed.service.reserved_shares import ReservedShares

ResourcePlace: TypeAlias = tuple[datetime, str]  # in lists

NAMED = 3  # jobs in a refusal
CREATED = "create-resource"  # the kind of operation, and the version of the API behind it


def _place(resource: PersistentResource) -> ResourcePlace:
    return resource.created_at, resource.name


@dataclass(slots=True, kw_only=True)
class PersistentResourceService:
    store: PersistentResourceStore
    jobs: Store
    studies: StudyStore
    shares: ReservedShares
    backend: Backend
    clock: Clock
    hint: Callable[[], None]  # of the scheduler
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def create(self, resource: PersistentResource, version: str) -> Operation:
        """Reserve its machines. The operation is done once jobs from outside have none of them."""
        check_location(resource.location, resource.project)
        operation = self._operation(resource, f"{CREATED}-{version}")
        async with self._one_at_a_time:  # two that fit alone may not fit together
            if self.shares.get(resource.name) is None:  # else the store refuses the name
                await self._check(resource)
            await self.store.insert_resource(resource, operation)
            self.shares.put(resource)
        self.hint()
        return operation

    async def get(self, project: str, location: str, resource: str) -> PersistentResource:
        name = f"projects/{project}/locations/{location}/persistentResources/{resource}"
        if (stored := await self.find_by_name(name)) is None:
            raise NotFound(f"There is no persistent resource {name}.")
        return stored

    async def find_by_name(self, name: str) -> PersistentResource | None:
        """As it is now; None where it is not there."""
        stored = self.shares.get(name)
        return None if stored is None else await self._looked_at(stored)

    async def find(
        self, project: str, location: str, after: ResourcePlace | None, limit: int
    ) -> tuple[tuple[PersistentResource, ...], ResourcePlace | None]:
        """A page of those of a project, newest first, and its end where another follows.

        The location "-" means any, and so does the project.
        """
        there = sorted(self.shares.resources, key=_place, reverse=True)
        asked = [
            resource
            for resource in there
            if project in ("-", resource.project)
            and location in ("-", resource.location)
            and (after is None or _place(resource) < after)
        ]
        page = tuple([await self._looked_at(resource) for resource in asked[:limit]])
        return page, _place(page[-1]) if len(asked) > limit else None

    async def delete(self, project: str, location: str, resource: str) -> Operation:
        """Give its machines back. Conflict while jobs or studies that name it run or wait."""
        async with self._one_at_a_time:
            stored = await self.get(project, location, resource)
            await self._check_unused(stored)
            operation = self._operation(stored, "delete-resource")
            await self.store.delete_resource(stored, operation)
            self.shares.drop(stored)
        self.hint()
        return operation

    async def _check_unused(self, resource: PersistentResource) -> None:
        """Raise Conflict with the studies that will still submit trials to it, and the other jobs in it."""
        studies = {s.id: s for s in await self.studies.active_studies() if _is_for(s, resource)}
        jobs = [
            job
            for job in await self.jobs.active()
            if job.persistent_resource == resource.name and (job.owner is None or job.owner.id not in studies)
        ]
        users = [f"study {study.id} ({study.display_name})" for study in studies.values()]
        users += [f"{job.id} ({job.display_name})" for job in jobs]
        if users:
            what = " and ".join([*(["studies"] if studies else []), *(["jobs"] if jobs else [])])
            more = f" and {len(users) - NAMED} more" if len(users) > NAMED else ""
            raise Conflict(
                f"Persistent resource {resource.name} has {what} that are not over: "
                f"{', '.join(users[:NAMED])}{more}. Cancel them, or wait for their end."
            )

    async def _check(self, resource: PersistentResource) -> None:
        """Raise Exhausted for more than the machines, or the share of its project, could give it."""
        nodes = await self.backend.nodes()
        wanted, capacity = needs(resource.spec, nodes), capacities(nodes)
        tree = self.shares() or UNDIVIDED
        share = tree.share_of(resource.project)
        where = "the machines" if share == ROOT else f"share '{share}'"
        lacking = {
            item: (amount, most)
            for item, amount in resource.amounts.items()
            if amount > (most := reservable(tree, share, item, capacity)) + EPSILON
        }
        if lacking:
            names = ", ".join(f"{TRAINING_METRIC}{metric(item)}" for item in lacking)
            asks = ", ".join(in_amount(item, amount) for item, (amount, _) in lacking.items())
            have = ", ".join(in_amount(item, most) for item, (_, most) in lacking.items())
            raise Exhausted(
                f"The following quota metrics exceed quota limits: {names}. Persistent resource "
                f"'{resource.id}' asks for {asks}, and of {where} at most {have} can be reserved: ask for "
                "less in resource_pools, or delete another persistent resource."
            )
        if Room(nodes).place(wanted) is None:
            raise Exhausted(
                f"Persistent resource '{resource.id}' asks for {total(wanted)}, for which the machines have "
                "no room even when they are empty: ask for fewer or smaller machines in resource_pools."
            )

    async def _looked_at(self, resource: PersistentResource) -> PersistentResource:
        """The resource, which runs from the moment when all of it was first seen to be free."""
        tree = self.shares()
        if resource.started_at is not None or tree is None:
            return resource
        use = ShareUse(tree, capacities(await self.backend.nodes()))
        for job in await self.jobs.active():
            if job.status.admission is not None:
                use.take(tree.stake(job, job.status.admission.placements))
        if not is_free(use, resource.name):
            return resource
        running = replace(resource, started_at=self.clock.now())
        try:
            await self.store.write_resource(running)
        except NotFound:
            return resource  # deleted meanwhile
        if self.shares.get(resource.name) is not None:  # else it was deleted just after that write
            self.shares.put(running)
        return running

    def _operation(self, resource: PersistentResource, kind: str) -> Operation:
        return Operation(
            name=f"projects/{resource.project}/locations/{resource.location}/operations/{new_id()}",
            kind=kind,
            target=resource.name,
            created_at=self.clock.now(),
        )


def _is_for(study: Study, resource: PersistentResource) -> bool:
    """Whether the study's trials run in the resource."""
    place = study.project, study.location
    return (
        study.template is not None
        and study.template.persistent_resource == resource.id
        and place == (resource.project, resource.location)
    )

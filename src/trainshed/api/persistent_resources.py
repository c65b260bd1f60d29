"""persistentResources: create, list, get, delete; and all operations: those that create may take long."""

from dataclasses import dataclass
from datetime import datetime

from trainshed.api.call import Call, Handler, Json
from trainshed.core.ports import Clock
from trainshed.service.jobs import JobService
from trainshed.service.persistent_resources import CREATED, PersistentResourceService
from trainshed.wire.operation import render_operation
from trainshed.wire.page import fingerprint, parse_size
from trainshed.wire.persistent_resource import parse_resource, render_creation, render_resource
from trainshed.wire.pool import Offer


@dataclass(slots=True)
class PersistentResourceHandlers:
    resources: PersistentResourceService
    jobs: JobService
    offer: Offer
    clock: Clock

    def create(self, version: str) -> Handler:
        """Clients refuse an operation whose types are of another version."""

        async def answer(call: Call) -> Json:
            id, parent = call.query.get("persistentResourceId", ""), _parent(call)
            resource = parse_resource(call.body, id, parent, self.offer, self.clock.now())
            operation = await self.resources.create(resource, version)
            now = await self.resources.find_by_name(resource.name)
            return render_creation(operation, version, now)

        return answer

    async def find(self, call: Call) -> Json:
        question = fingerprint("persistentResources", *_parent(call))
        cursor = call.pages.decode(call.query.get("pageToken", ""), question)
        after = None if cursor is None else (datetime.fromisoformat(cursor[0]), cursor[1])
        size = parse_size(call.query.get("pageSize"))
        resources, end = await self.resources.find(*_parent(call), after, size)
        rows = [render_resource(resource, enum_ints=call.enum_ints) for resource in resources]
        following = None if end is None else (end[0].isoformat(), end[1])
        return call.pages.render("persistentResources", rows, following, question)

    async def get(self, call: Call) -> Json:
        resource = await self.resources.get(*_parent(call), call.path["resource"])
        return render_resource(resource, enum_ints=call.enum_ints)

    async def delete(self, call: Call) -> Json:
        return render_operation(await self.resources.delete(*_parent(call), call.path["resource"]))

    async def operation(self, call: Call) -> Json:
        project, location = _parent(call)
        name = f"projects/{project}/locations/{location}/operations/{call.path['operation']}"
        operation = await self.jobs.operation(name)
        kind, _, version = operation.kind.rpartition("-")
        if kind != CREATED:
            return render_operation(operation)
        return render_creation(operation, version, await self.resources.find_by_name(operation.target))


def _parent(call: Call) -> tuple[str, str]:
    return call.path["project"], call.path["location"]

"""What every store promises of persistent resources (`PersistentResourceStore`): inherit it."""

from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import pytest

from tests.contracts.store_values import T0
from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.jobs.job import Pool
from trainshed.core.ports import Operation, Store
from trainshed.core.queue.persistent_resource import PersistentResource, PersistentResourceStore


class ResourceAndJobStore(PersistentResourceStore, Store, Protocol): ...


def a_resource(name: str = "team", **changes: object) -> PersistentResource:
    resource = PersistentResource(
        id=name,
        project="p",
        location="us-central1",
        display_name="größe",
        labels={"team": "vision"},
        pools=(Pool(machine_type="n1-standard-4", cpus=4, memory=15 << 30, replicas=2),),
        created_at=T0,
        extras={"network": "n"},
    )
    return replace(resource, **changes)


def an_operation(number: int, resource: PersistentResource) -> Operation:
    name = f"projects/p/locations/us-central1/operations/{number}"
    return Operation(name=name, kind="create-resource-v1", target=resource.name, created_at=T0)


class PersistentResourceStoreContract:
    async def test_what_is_kept_is_found_as_it_was_with_its_operation(
        self, store: ResourceAndJobStore
    ) -> None:
        resource = a_resource(started_at=T0)
        made = an_operation(1, resource)
        await store.insert_resource(resource, made)
        assert await store.resources() == (resource,)
        assert await store.operation(made.name) == made

    async def test_a_name_is_taken_once_in_a_project_and_location(self, store: ResourceAndJobStore) -> None:
        await store.insert_resource(a_resource(), an_operation(1, a_resource()))
        refused = an_operation(2, a_resource())
        with pytest.raises(AlreadyExists, match="persistentResources/team"):
            await store.insert_resource(a_resource(labels={}), refused)
        with pytest.raises(NotFound):
            await store.operation(refused.name)
        await store.insert_resource(a_resource(location="europe-west4"), an_operation(3, a_resource()))
        await store.insert_resource(a_resource(project="q"), an_operation(4, a_resource()))
        assert len(await store.resources()) == 3

    async def test_a_write_changes_the_one_that_is_meant(self, store: ResourceAndJobStore) -> None:
        other = a_resource("other", created_at=T0 + timedelta(minutes=1))
        await store.insert_resource(other, an_operation(1, other))
        await store.insert_resource(a_resource(), an_operation(2, a_resource()))
        running = a_resource(started_at=T0 + timedelta(hours=1))
        await store.write_resource(running)
        assert await store.resources() == (running, other), "the oldest first"

    async def test_what_was_deleted_is_neither_written_nor_deleted_again(
        self, store: ResourceAndJobStore
    ) -> None:
        resource = a_resource()
        await store.insert_resource(resource, an_operation(1, resource))
        deleted = an_operation(2, resource)
        await store.delete_resource(resource, deleted)
        assert await store.resources() == ()
        assert await store.operation(deleted.name) == deleted
        with pytest.raises(NotFound):
            await store.write_resource(resource)
        with pytest.raises(NotFound):
            await store.delete_resource(resource, an_operation(3, resource))

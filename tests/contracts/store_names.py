"""What every store promises of names: keys by which a job is found again, labels, operations of a project."""

from dataclasses import replace

import pytest

from tests.contracts.store_values import RUNNING, a_deletion, a_job, an_event, ended
from trainshed.core.errors import Conflict, NotFound
from trainshed.core.jobs.job import Owner, OwnerKind
from trainshed.core.ports import Store
from trainshed.core.query import JobQuery


class NamesContract:
    """Part of `StoreContract`."""

    async def test_a_job_is_found_by_the_key_it_came_with_as_it_is_now(self, store: Store) -> None:
        first = await store.insert(a_job(1), (), "a key\nof two lines")
        changed = await store.write(first, RUNNING)
        assert await store.keyed("p", "a key\nof two lines") == changed
        over = await store.write(changed, ended())
        assert await store.keyed("p", "a key\nof two lines") == over
        assert await store.keyed("p", "a key") is None
        assert await store.keyed("q", "a key\nof two lines") is None
        await store.delete(over, a_deletion(over))
        assert await store.keyed("p", "a key\nof two lines") is None

    async def test_a_dash_stands_for_whatever_location_a_job_is_in(self, store: Store) -> None:
        job = await store.insert(a_job(1, location="europe-west4"), ())
        assert await store.get("p", "-", job.id) == job
        with pytest.raises(NotFound):
            await store.get("q", "-", job.id)

    async def test_all_jobs_of_an_owner_are_found(self, store: Store) -> None:
        mine, theirs = Owner(OwnerKind.PIPELINE, "1"), Owner(OwnerKind.PIPELINE, "11")
        first = await store.insert(a_job(1, owner=mine), ())
        second = await store.write(await store.insert(a_job(2, owner=mine), ()), ended())
        await store.insert(a_job(3, owner=theirs), ())
        await store.insert(a_job(4), ())
        await store.insert(a_job(5, owner=mine, project="q"), ())
        assert (await store.find(JobQuery(project="p", owner=mine))).jobs == (second, first)
        assert await store.load(first.id) == first
        assert (await store.find(JobQuery(project="p", owner=Owner(OwnerKind.PIPELINE, "2")))).jobs == ()

    async def test_labels_are_replaced_as_a_whole_and_nothing_else_is(self, store: Store) -> None:
        job = await store.insert(a_job(1, labels={"a": "b"}), [an_event()])
        running = await store.write(job, RUNNING)
        changed = await store.relabel(running, {"c": "d"})
        assert changed == replace(running, labels={"c": "d"}, version=running.version + 1)
        assert await store.load(job.id) == changed
        assert (await store.find(JobQuery(project="p"))).jobs == (changed,)
        bare = await store.relabel(await store.write(changed, ended()), {})
        assert await store.load(job.id) == replace(changed, labels={}, status=ended(), version=bare.version)

    async def test_labels_of_a_job_that_has_moved_are_not_replaced(self, store: Store) -> None:
        job = await store.insert(a_job(1, labels={"a": "b"}), ())
        moved = await store.write(job, RUNNING)
        with pytest.raises(Conflict):
            await store.relabel(job, {"c": "d"})
        assert await store.load(job.id) == moved
        relabelled = await store.relabel(moved, {"c": "d"})
        with pytest.raises(Conflict):
            await store.write(moved, ended())
        assert await store.load(job.id) == relabelled

    async def test_the_operations_of_a_project_are_told_in_order_and_in_pages(self, store: Store) -> None:
        for project, number in (("p", 1), ("p", 2), ("p", 3), ("p0", 4), ("p%", 5)):
            job = await store.insert(a_job(number, project=project), ())
            done = await store.write(job, ended())
            at = f"projects/{project}/locations/us-central1/operations/{number}"
            await store.delete(done, replace(a_deletion(done), name=at))
        names = [f"projects/p/locations/us-central1/operations/{n}" for n in (1, 2, 3)]
        assert [one.name for one in await store.operations("p", 10)] == names
        first, second = await store.operations("p", 2)
        assert [first.name, second.name] == names[:2]
        assert [one.name for one in await store.operations("p", 2, second.name)] == names[2:]
        assert await store.operations("nobody", 10) == ()

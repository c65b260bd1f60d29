"""What every store promises of lists of jobs: orders, counts, projects, values, and what jobs have used."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contracts.store_values import RUNNING, T0, a_job, ended, varied_jobs
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.replica import Phase, Replica
from trainshed.core.ledger import ResourceTime, resource_time
from trainshed.core.ports import Store
from trainshed.core.query import Compare, JobOrder, JobQuery, Operator, QueryField
from trainshed.core.queue.fleet import Admission, Placement
from trainshed.testing.match import place

ORDERED = (
    QueryField.CREATED,
    QueryField.UPDATED,
    QueryField.STARTED,
    QueryField.ENDED,
    QueryField.DISPLAY_NAME,
    QueryField.STATE,
)


async def counted(store: Store, query: JobQuery) -> int:
    return sum((await store.count(query)).values())


class ListsContract:
    @pytest.mark.parametrize("field", ORDERED)
    async def test_pages_follow_each_order_in_both_directions(self, store: Store, field: QueryField) -> None:
        jobs = [await store.insert(job, ()) for job in varied_jobs()]
        for is_descending in (False, True):
            wanted = sorted(jobs, key=lambda job: place(job, field), reverse=is_descending)
            query = JobQuery(project="p", limit=7, order=JobOrder(field, is_descending))
            pages: list[Job] = []
            while True:
                page = await store.find(query)
                pages += page.jobs
                if page.next_cursor is None:
                    break
                query = replace(query, cursor=page.next_cursor)
            assert pages == wanted

    async def test_a_dash_stands_for_every_project(self, store: Store) -> None:
        first = await store.insert(a_job(1), ())
        second = await store.insert(a_job(2, project="q"), ())
        assert (await store.find(JobQuery(project="-"))).jobs == (second, first)
        assert await counted(store, JobQuery(project="-")) == 2
        assert await store.get("-", "-", first.id) == first

    async def test_a_count_is_of_all_pages(self, store: Store) -> None:
        for number in range(5):
            await store.insert(a_job(number, location="here" if number < 3 else "there"), ())
        await store.insert(a_job(9, project="q"), ())
        for location, count in (("here", 3), ("there", 2), ("-", 5), ("nowhere", 0)):
            assert await counted(store, JobQuery(project="p", location=location, limit=1)) == count
        where = Compare(QueryField.ID, Operator.EQ, a_job(4).id)
        assert await counted(store, JobQuery(project="p", where=where)) == 1

    async def test_counts_are_per_state_and_per_project(self, store: Store) -> None:
        for number in range(3):
            await store.insert(a_job(number, status=ended(JobState.FAILED)), ())
        await store.insert(a_job(5), ())
        await store.insert(a_job(6, project="q", status=RUNNING), ())
        by_state = await store.count(JobQuery(project="p"))
        assert by_state == dict.fromkeys(JobState, 0) | {JobState.FAILED: 3, JobState.QUEUED: 1}
        projects = await store.projects()
        assert list(projects) == ["p", "q"]
        assert projects["p"] == by_state
        assert projects["q"][JobState.RUNNING] == 1

    async def test_values_are_those_of_the_newest_jobs(self, store: Store) -> None:
        for number in range(6):
            labels = {"team": "vision" if number % 2 else "ads", "n": str(number)}
            origin = Origin(kind="pipeline", record={}) if number == 5 else None
            await store.insert(
                a_job(
                    number, display_name=f"name {number // 2}", labels=labels, origin=origin, submitter="ada"
                ),
                (),
            )
        newest = JobQuery(project="p")
        assert await store.recent_values(newest, QueryField.DISPLAY_NAME, 3) == {"name 2": 2, "name 1": 1}
        assert await store.recent_values(newest, QueryField.KIND, 10) == {"pipeline": 1, "custom": 5}
        assert await store.recent_values(newest, QueryField.SUBMITTER, 10) == {"ada": 6}
        assert await store.recent_values(newest, QueryField.STATE, 10) == {"QUEUED": 6}
        assert await store.recent_values(JobQuery(project="-"), QueryField.PROJECT, 10) == {"p": 6}
        assert await store.recent_values(newest, QueryField.LABEL, 2) == {
            "team": 2,
            "n": 2,
            "team=vision": 1,
            "team=ads": 1,
            "n=5": 1,
            "n=4": 1,
        }

    async def test_what_jobs_used_is_the_sum_of_their_intervals(self, store: Store) -> None:
        places = tuple(
            Placement(pool=0, index=index, node="n", host="h", cpus=2, memory=1, gpus=("0",) * index, port=1)
            for index in range(2)
        )
        replicas = tuple(
            Replica(pool=0, index=index, phase=Phase.RUNNING, started_at=T0) for index in range(2)
        )
        running = replace(
            RUNNING,
            admission=Admission(placements=places, admitted_at=T0, master_port=7),
            admitted_at=T0,
            updated_at=T0 + timedelta(seconds=1),
            replicas=replicas,
        )
        job = await store.write(await store.insert(a_job(-9), ()), running)
        over = replace(ended(), updated_at=T0 + timedelta(seconds=31, microseconds=500_000))
        job = await store.write(job, over)
        await store.insert(a_job(2), ())
        wanted = resource_time(await store.intervals("p", job.location, job.id))
        assert wanted.cpu_seconds >= 2 * 2 * 30
        used = await store.resource_times([job.id, a_job(2).id, "none"])
        assert list(used) == [job.id]
        assert used[job.id].cpu_seconds == pytest.approx(wanted.cpu_seconds, abs=0.01)
        assert used[job.id].gpu_seconds == pytest.approx(wanted.gpu_seconds, abs=0.01)
        assert wanted != ResourceTime()
        assert await store.resource_times([]) == {}

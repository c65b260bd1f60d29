"""What every store promises. Inherit `StoreContract`, supply the fixture `store`; a store that outlives its
process inherits `DurableStoreContract` and supplies `url` and `reopen` too."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contracts.store_lists import ListsContract
from tests.contracts.store_names import NamesContract
from tests.contracts.store_values import (
    RUNNING,
    T0,
    a_deletion,
    a_job,
    an_event,
    conditions,
    ended,
    full_job,
    varied_jobs,
)
from trainshed.core.errors import AlreadyExists, Conflict, NotFound, Unavailable
from trainshed.core.event import Reason, Severity
from trainshed.core.jobs.job import Job, JobSpec, JobState, Status
from trainshed.core.ports import Operation, Store
from trainshed.core.query import OLDEST_FIRST, JobQuery
from trainshed.store import SqlStore
from trainshed.testing.match import matches


async def kept(store: Store, job: Job) -> Job:
    return await store.insert(job, ())


class StoreContract(NamesContract, ListsContract):
    """The promises that hold for every store."""

    async def test_a_job_comes_back_as_it_went_in(self, store: Store) -> None:
        job = await kept(store, full_job())
        assert job == replace(full_job(), version=1)
        assert await store.load(job.id) == job
        assert await store.get("p", "us-central1", job.id) == job
        assert (await store.find(JobQuery(project="p"))).jobs == (job,)

    async def test_a_job_is_found_only_under_its_own_project_and_location(self, store: Store) -> None:
        job = await kept(store, a_job())
        for project, location in (("q", "us-central1"), ("p", "europe-west4")):
            with pytest.raises(NotFound):
                await store.get(project, location, job.id)

    async def test_what_was_never_kept_is_not_there(self, store: Store) -> None:
        assert await store.load("1") is None
        assert await store.events("1") == ()
        with pytest.raises(NotFound):
            await store.get("p", "us-central1", "1")
        with pytest.raises(NotFound):
            await store.operation("nothing")

    async def test_an_id_is_given_to_one_job_only(self, store: Store) -> None:
        first = await kept(store, a_job())
        with pytest.raises(AlreadyExists):
            await store.insert(a_job(display_name="another"), [an_event()])
        assert await store.load(first.id) == first
        assert await store.events(first.id) == ()

    async def test_a_write_gives_the_job_its_new_status_and_the_next_version(self, store: Store) -> None:
        job = await kept(store, a_job())
        changed = await store.write(job, RUNNING)
        assert changed == replace(job, status=RUNNING, version=2)
        assert await store.load(job.id) == changed
        over = await store.write(changed, ended())
        assert await store.load(job.id) == over
        assert (await store.find(JobQuery(project="p"))).jobs == (over,)

    async def test_a_write_of_an_old_version_is_refused_and_changes_nothing(self, store: Store) -> None:
        job = await kept(store, a_job())
        changed = await store.write(job, RUNNING)
        with pytest.raises(Conflict):
            await store.write(job, ended(), [an_event("lost")])
        assert await store.load(job.id) == changed
        assert await store.events(job.id) == ()

    async def test_a_write_of_a_version_to_come_is_refused(self, store: Store) -> None:
        job = await kept(store, a_job())
        with pytest.raises(Conflict):
            await store.write(replace(job, version=2), RUNNING)

    async def test_a_write_to_a_deleted_job_is_refused_and_does_not_bring_it_back(self, store: Store) -> None:
        job = await store.write(await kept(store, a_job()), ended())
        await store.delete(job, a_deletion(job))
        with pytest.raises(Conflict):
            await store.write(job, RUNNING, [an_event()])
        assert await store.load(job.id) is None
        assert await store.active() == ()
        assert await store.events(job.id) == ()

    async def test_of_fifty_writers_exactly_one_wins_each_version(self, store: Store) -> None:
        job = await kept(store, a_job())
        for _ in range(3):
            results = await asyncio.gather(
                *(store.write(job, replace(RUNNING, attempt=n), [an_event(f"{n}")]) for n in range(50)),
                return_exceptions=True,
            )
            won = [result for result in results if isinstance(result, Job)]
            assert len(won) == 1
            assert sum(isinstance(result, Conflict) for result in results) == 49
            assert await store.load(job.id) == won[0]
            job = won[0]
        assert len(await store.events(job.id)) == 3

    async def test_a_refused_write_does_not_harm_those_beside_it(self, store: Store) -> None:
        jobs = [await kept(store, a_job(number)) for number in range(20)]
        mixed = [each for job in jobs for each in (replace(job, version=9), job, job)]
        await asyncio.gather(
            *(store.write(job, RUNNING, [an_event()]) for job in mixed),
            return_exceptions=True,
        )
        for job in jobs:
            found = await store.load(job.id)
            assert found is not None and found.status == RUNNING and found.version == 2
            assert len(await store.events(job.id)) == 1

    async def test_a_deletion_refused_half_way_leaves_no_trace(self, store: Store) -> None:
        jobs = [await store.insert(a_job(n, status=ended()), [an_event()]) for n in range(20)]
        taken = replace(a_deletion(jobs[0]), name="taken")
        await store.delete(jobs[0], taken)
        results = await asyncio.gather(
            *(store.delete(job, taken) for job in jobs[1:]),
            *(store.insert(a_job(100 + n), [an_event()]) for n in range(20)),
            return_exceptions=True,
        )
        assert sum(isinstance(result, AlreadyExists) for result in results) == 19
        assert len((await store.find(JobQuery(project="p"))).jobs) == 39
        for job in jobs[1:]:
            assert await store.load(job.id) == job
            assert len(await store.events(job.id)) == 1

    async def test_events_keep_their_order_and_can_be_read_from_any_place(self, store: Store) -> None:
        job = await store.insert(a_job(), [an_event("0"), an_event("1")])
        other = await store.insert(a_job(2), [an_event("other")])
        full = an_event(
            "2", reason=Reason.TIMED_OUT, severity=Severity.ERROR, attempt=3, task="workerpool0-1"
        )
        await store.write(job, RUNNING, [full, an_event("3")])
        found = await store.events(job.id)
        assert [event.message for event in found] == ["0", "1", "2", "3"]
        assert replace(found[2], sequence=0) == full
        numbers = [event.sequence for event in found]
        assert numbers == sorted(set(numbers)) and numbers[0] > 0
        assert await store.events(job.id, after=numbers[1]) == found[2:]
        assert await store.events(job.id, after=numbers[0], limit=2) == found[1:3]
        assert len(await store.events(other.id)) == 1

    async def test_an_event_may_say_anything(self, store: Store) -> None:
        job = await store.insert(
            a_job(), [an_event("ünï\N{SNOWMAN}\n'\"%s :x"), an_event("nul \0 and \udc80")]
        )
        first, second = await store.events(job.id)
        assert first.message == "ünï\N{SNOWMAN}\n'\"%s :x"
        assert second.message.startswith("nul ")

    async def test_the_same_key_twice_is_one_job(self, store: Store) -> None:
        first = await store.insert(a_job(1), [an_event()], "key")
        again = await store.insert(a_job(2, display_name="job 1"), [an_event()], "key")
        assert again == first
        assert await store.load("1002") is None
        assert len(await store.events(first.id)) == 1
        running = await store.write(first, RUNNING)
        assert await store.insert(a_job(3, display_name="job 1"), (), "key") == running

    async def test_the_same_key_at_the_same_time_is_one_job(self, store: Store) -> None:
        found = await asyncio.gather(
            *(store.insert(a_job(number, display_name="same"), (), "key") for number in range(30))
        )
        assert len({job.id for job in found}) == 1
        assert len((await store.find(JobQuery(project="p"))).jobs) == 1

    async def test_the_same_key_in_another_project_is_another_job(self, store: Store) -> None:
        await store.insert(a_job(1), (), "key")
        assert (await store.insert(a_job(2, project="q"), (), "key")).id == "1002"

    async def test_the_same_key_for_another_request_is_refused(self, store: Store) -> None:
        await store.insert(a_job(1), (), "key")
        for other in (a_job(2, display_name="other"), a_job(3, display_name="job 1", spec=JobSpec(pools=()))):
            with pytest.raises(AlreadyExists, match="key"):
                await store.insert(other, (), "key")
        assert len(await store.active()) == 1

    async def test_jobs_without_a_key_are_all_different(self, store: Store) -> None:
        await asyncio.gather(*(store.insert(a_job(n, display_name="same"), ()) for n in range(5)))
        assert len(await store.active()) == 5

    async def test_active_is_exactly_the_jobs_that_are_not_final(self, store: Store) -> None:
        for number, state in enumerate(JobState):
            await kept(store, a_job(number, status=Status(state=state)))
        found = await store.active()
        assert {job.status.state for job in found} == {state for state in JobState if not state.is_final}
        await store.write(found[0], ended())
        changed = await store.write(found[1], RUNNING)
        assert set(ids(await store.active())) == set(ids(found[1:]))
        assert changed in await store.active()

    async def test_a_follower_is_told_what_is_active_and_then_every_commit_before_it_is_answered(
        self, store: Store
    ) -> None:
        first = await kept(store, a_job(1))
        await store.write(await kept(store, a_job(2)), ended())
        commits: list[tuple[Job, bool]] = []
        store.on_commit(lambda job, is_deleted: commits.append((job, is_deleted)))
        assert commits == [(first, False)]
        second = await kept(store, a_job(3))
        assert commits[1:] == [(second, False)]
        labelled = await store.relabel(first, {"a": "b"})
        running = await store.write(labelled, RUNNING, flush=False)
        assert commits[2:] == [(labelled, False), (running, False)]
        with pytest.raises(Conflict):
            await store.write(first, RUNNING)
        over = await store.write(running, ended())
        await store.catch_up()
        assert commits[4:] == [(over, False)]
        await store.delete(over, a_deletion(over))
        assert commits[5:] == [(over, True)]

    async def test_every_follower_is_told_each_commit(self, store: Store) -> None:
        first: list[Job] = []
        second: list[Job] = []
        store.on_commit(lambda job, _: first.append(job))
        store.on_commit(lambda job, _: second.append(job))
        assert first == second == []
        job = await kept(store, a_job(1))
        assert first == second == [job]

    async def test_counts_name_every_state(self, store: Store) -> None:
        await kept(store, a_job(1))
        await store.write(await kept(store, a_job(2)), ended())
        await store.write(await kept(store, a_job(3)), ended())
        expected = dict.fromkeys(JobState, 0) | {JobState.QUEUED: 1, JobState.SUCCEEDED: 2}
        assert await store.counts() == expected

    async def test_codes_names_each_folder_a_job_refers_to_and_none_of_deleted_jobs(
        self, store: Store
    ) -> None:
        assert await store.codes() == frozenset()
        for number, code in enumerate(("a" * 64, "b" * 64, "a" * 64, "")):
            job = await kept(store, a_job(number, spec=replace(a_job().spec, code=code)))
            over = await store.write(job, ended())
            assert (await store.get(job.project, job.location, job.id)).spec.code == code
            if code.startswith("b"):
                await store.delete(over, a_deletion(over))
        assert await store.codes() == frozenset({"a" * 64})

    async def test_an_ended_job_can_be_deleted_and_leaves_only_the_operation(self, store: Store) -> None:
        job = await store.write(await store.insert(a_job(), [an_event()], "key"), ended())
        done = a_deletion(job)
        await store.delete(job, done)
        assert await store.operation(done.name) == done
        assert await store.load(job.id) is None
        assert await store.events(job.id) == ()
        assert (await store.find(JobQuery(project="p"))).jobs == ()
        with pytest.raises(NotFound):
            await store.delete(job, replace(done, name="again"))
        assert (await store.insert(a_job(2), (), "key")).id == "1002"

    async def test_what_was_deleted_is_told_apart_from_what_was_never_there(self, store: Store) -> None:
        there, gone = await kept(store, a_job(1)), await store.write(await kept(store, a_job(2)), ended())
        await store.delete(gone, a_deletion(gone))
        assert await store.deleted(frozenset({there.id, gone.id, "unheard of"})) == {gone.id}
        assert await store.deleted(frozenset()) == frozenset()

    async def test_a_running_or_changed_job_is_not_deleted(self, store: Store) -> None:
        job = await store.insert(a_job(), [an_event()])
        with pytest.raises(Conflict):
            await store.delete(job, a_deletion(job))
        over = await store.write(job, ended())
        await store.write(over, ended(JobState.FAILED))
        with pytest.raises(Conflict):
            await store.delete(over, a_deletion(over))
        assert await store.load(job.id) is not None
        assert len(await store.events(job.id)) == 1
        with pytest.raises(NotFound):
            await store.operation(a_deletion(job).name)

    async def test_pages_go_from_the_newest_to_the_oldest_without_gap_or_overlap(self, store: Store) -> None:
        # Several share a moment, so that the order depends on the id as well.
        jobs = [await kept(store, a_job(n, created_at=T0 + timedelta(seconds=n // 3))) for n in range(25)]
        await kept(store, a_job(99, project="q"))
        assert await walk(store, JobQuery(project="p", limit=4)) == ids(reversed(jobs))
        assert await walk(store, JobQuery(project="p", limit=4, order=OLDEST_FIRST)) == ids(jobs)
        assert await walk(store, JobQuery(project="p", limit=25)) == ids(reversed(jobs))

    async def test_a_full_last_page_has_no_next(self, store: Store) -> None:
        for number in range(4):
            await kept(store, a_job(number))
        assert (await store.find(JobQuery(project="p", limit=4))).next_cursor is None
        assert (await store.find(JobQuery(project="p", limit=3))).next_cursor is not None
        assert (await store.find(JobQuery(project="none"))).jobs == ()

    async def test_pages_are_stable_while_jobs_come_and_go(self, store: Store) -> None:
        jobs = [await kept(store, a_job(number, status=ended())) for number in range(20)]
        first = await store.find(JobQuery(project="p", limit=5))
        assert ids(first.jobs) == ids(reversed(jobs[15:]))
        await kept(store, a_job(50))
        for gone in (jobs[15], jobs[12]):
            await store.delete(gone, Operation(name=gone.id, kind="delete", target=gone.name, created_at=T0))
        rest = await walk(store, JobQuery(project="p", limit=5, cursor=first.next_cursor))
        assert rest == ids(job for job in reversed(jobs[:15]) if job is not jobs[12])

    async def test_a_location_narrows_the_list(self, store: Store) -> None:
        await kept(store, a_job(1))
        await kept(store, a_job(2, location="europe-west4"))
        assert await walk(store, JobQuery(project="p", location="europe-west4")) == ["1002"]
        assert await walk(store, JobQuery(project="p", location="-")) == ["1002", "1001"]

    async def test_every_condition_means_the_same_in_every_store(self, store: Store) -> None:
        jobs = [await kept(store, job) for job in varied_jobs()]
        for condition in conditions():
            found = await walk(store, JobQuery(project="p", where=condition, limit=7))
            assert found == ids(job for job in reversed(jobs) if matches(job, condition)), condition

    async def test_a_caller_who_leaves_does_not_disturb_the_others(self, store: Store) -> None:
        job = await kept(store, a_job(1))
        leaving = asyncio.ensure_future(store.write(job, RUNNING))
        await asyncio.sleep(0)
        leaving.cancel()
        other = await kept(store, a_job(2))
        assert await store.load(other.id) == other
        # Done or not done, what is read afterwards is what can be built upon.
        current = await store.load(job.id)
        assert current is not None
        assert (await store.write(current, ended())).version == current.version + 1


def ids(jobs: Iterable[Job]) -> list[str]:
    return [job.id for job in jobs]


async def walk(store: Store, query: JobQuery) -> list[str]:
    found: list[str] = []
    while True:
        page = await store.find(query)
        assert len(page.jobs) <= query.limit
        found += ids(page.jobs)
        if page.next_cursor is None:
            return found
        query = replace(query, cursor=page.next_cursor)


ROOT = Path(__file__).parents[2]
CHILD = """
import asyncio, sys
from tests.contracts.store_values import a_job, an_event, RUNNING
from trainshed.store import SqlStore

async def main():
    store = SqlStore(sys.argv[1])
    await store.start()
    async def go_on(first):
        for number in range(first, 1_000_000, 8):
            job = await store.insert(a_job(number), [an_event()], f"key {number}")
            await store.write(job, RUNNING, [an_event()])
            print(job.id, flush=True)
    await asyncio.gather(*(go_on(first) for first in range(8)))

asyncio.run(main())
"""

Reopen = Callable[[], Awaitable[Store]]


class DurableStoreContract(StoreContract):
    """What holds besides for a store that outlives its process."""

    async def test_everything_is_there_after_a_restart(self, store: Store, reopen: Reopen) -> None:
        job = await store.insert(full_job(), [an_event()], "key")
        over = await store.write(await kept(store, a_job(2)), ended())
        gone = await store.write(await kept(store, a_job(3)), ended())
        await store.delete(gone, a_deletion(gone))
        again = await reopen()
        assert await again.load(job.id) == job
        assert await again.load(over.id) == over
        assert await again.load(gone.id) is None
        assert await again.active() == (job,)
        assert len(await again.events(job.id)) == 1
        assert (await again.operation(a_deletion(gone).name)).target == gone.name
        assert await again.insert(replace(full_job(), id="7"), (), "key") == job
        changed = await again.write(job, RUNNING, [an_event("2")])
        assert [event.sequence for event in await again.events(changed.id)] == [1, 2]

    async def test_nothing_acknowledged_is_lost_by_kill_9(self, url: str, reopen: Reopen) -> None:
        await (await reopen()).close()
        for _ in range(2):
            acknowledged = await asyncio.to_thread(acknowledged_before_kill, url)
            store = await reopen()
            for job in acknowledged:
                found = await store.load(job)
                assert found is not None and found.status == RUNNING and found.version == 2
                assert len(await store.events(job)) == 2
            for job in await store.active():
                assert len(await store.events(job.id)) == job.version
                await store.write(job, ended())
            for job in (await store.find(JobQuery(project="p", limit=100_000))).jobs:
                await store.delete(job, replace(a_deletion(job), name=os.urandom(8).hex()))
            await store.close()

    async def test_a_second_server_is_refused_with_the_first_ones_pid(self, store: Store, url: str) -> None:
        with pytest.raises(Unavailable, match=rf"pid {os.getpid()}\b"):
            await SqlStore(url).start()
        await kept(store, a_job())


def acknowledged_before_kill(url: str) -> list[str]:
    """What a busy process had been promised when it was killed."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, url], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child, child.stdout:
        lines = [child.stdout.readline() for _ in range(random.randint(40, 120))]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert all(lines), "the child ended by itself"
    return [line.strip() for line in lines if line.endswith("\n")]

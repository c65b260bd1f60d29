"""What every store promises about the ledger."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.builders import a_pool, an_admission
from tests.contracts.store_values import T0, a_deletion, a_job, an_event
from trainshed.core.errors import Conflict
from trainshed.core.jobs.job import Job, JobSpec, JobState, Status, planned_replicas
from trainshed.core.jobs.replica import Exit, Phase, Replica
from trainshed.core.ledger import Interval, TimeClass
from trainshed.core.ports import Store

CREATED = T0
SPEC = JobSpec(pools=(a_pool(1, gpus=1),))


def after(seconds: float) -> datetime:
    return CREATED + timedelta(seconds=seconds)


def waiting_job() -> Job:
    return a_job(created_at=CREATED, spec=SPEC)


def admitted(job: Job) -> Status:
    return replace(
        job.status,
        state=JobState.PENDING,
        admission=an_admission(job),
        replicas=planned_replicas(job.spec),
        admitted_at=after(1),
        updated_at=after(1),
    )


def restarted(job: Job, seconds: float) -> Status:
    """Its run was killed a second ago, and the next one waits half a second."""
    (replica,) = job.status.replicas
    ended = replace(
        replica, phase=Phase.ENDED, exit=Exit(signal=9), started_at=after(2), ended_at=after(seconds - 1)
    )
    again = Replica(
        pool=0, index=0, run=replica.run + 1, not_before=after(seconds + 0.5), previous=ended.as_ended(0)
    )
    return replace(job.status, state=JobState.RUNNING, replicas=(again,), updated_at=after(seconds))


def over(job: Job, seconds: float) -> Status:
    (replica,) = job.status.replicas
    ended = replace(
        replica, phase=Phase.ENDED, exit=Exit(code=0), started_at=after(seconds - 2), ended_at=after(seconds)
    )
    return replace(
        job.status,
        state=JobState.SUCCEEDED,
        replicas=(ended,),
        ended_at=after(seconds),
        updated_at=after(seconds),
    )


async def told(store: Store, job: Job) -> tuple[Interval, ...]:
    return await store.intervals(job.project, job.location, job.id)


def brief(intervals: tuple[Interval, ...]) -> list[tuple[int, str, float, float]]:
    return [
        (
            i.key.run,
            i.spent_on.value,
            (i.from_at - CREATED).total_seconds(),
            (i.to_at - CREATED).total_seconds(),
        )
        for i in intervals
    ]


class LedgerStoreContract:
    """A subclass gives the fixture `store`."""

    async def test_a_job_that_waits_has_no_closed_interval(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        assert await told(store, job) == ()

    async def test_every_second_of_a_restarted_job_is_told_once(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        job = await store.write(job, admitted(job))
        job = await store.write(job, restarted(job, 6))
        job = await store.write(job, over(job, 10))
        intervals = await told(store, job)
        assert brief(intervals) == [
            (0, "QUEUED", 0, 1),
            (0, "SET_UP", 1, 2),
            (0, "COMPUTED", 2, 5),
            (0, "IDLE", 5, 6),
            (1, "IDLE", 6, 6.5),
            (1, "SET_UP", 6.5, 8),
            (1, "COMPUTED", 8, 10),
        ]
        assert [i.exit for i in intervals if i.exit] == [Exit(signal=9), Exit(code=0)]

    async def test_an_interval_comes_back_as_it_went_in(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        job = await store.write(job, admitted(job))
        running = replace(job.status.replicas[0], phase=Phase.RUNNING, started_at=after(1.25))
        job = await store.write(job, replace(job.status, replicas=(running,), updated_at=after(2)))
        queued, set_up = await told(store, job)
        assert job.status.admission is not None
        (place,) = job.status.admission.placements
        pool = job.spec.pools[0]
        assert queued == Interval(
            key=job.key(running),
            spent_on=TimeClass.QUEUED,
            from_at=CREATED,
            to_at=after(1),
            cpus=pool.cpus,
            memory=pool.memory,
            gpus=1,
        )
        assert set_up == Interval(
            key=job.key(running),
            spent_on=TimeClass.SET_UP,
            from_at=after(1),
            to_at=after(1.25),
            node=place.node,
            cpus=place.cpus,
            memory=place.memory,
            gpus=len(place.gpus),
            devices=place.gpus,
        )

    async def test_a_write_that_lost_tells_nothing_and_its_repetition_tells_once(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        placed = await store.write(job, admitted(job))
        with pytest.raises(Conflict):
            await store.write(job, admitted(job))
        asked = await store.write(
            placed, replace(placed.status, cancel_asked_at=after(3), updated_at=after(3))
        )
        with pytest.raises(Conflict):
            await store.write(placed, over(placed, 4))
        await store.write(asked, over(asked, 4))
        assert brief(await told(store, job)) == [
            (0, "QUEUED", 0, 1),
            (0, "SET_UP", 1, 2),
            (0, "COMPUTED", 2, 4),
        ]

    async def test_a_line_of_history_of_an_ended_job_tells_no_more_time(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        job = await store.write(job, admitted(job))
        job = await store.write(job, over(job, 4))
        intervals = await told(store, job)
        await store.write(job, replace(job.status, updated_at=after(9)), [an_event()])
        assert await told(store, job) == intervals

    async def test_intervals_outlive_their_job(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        job = await store.write(job, admitted(job))
        job = await store.write(job, over(job, 4))
        intervals = await told(store, job)
        await store.delete(job, a_deletion(job))
        assert len(intervals) == 3
        assert await told(store, job) == intervals

    async def test_intervals_are_found_only_under_their_own_project_and_location(self, store: Store) -> None:
        job = await store.insert(waiting_job(), ())
        job = await store.write(job, admitted(job))
        assert await store.intervals("q", job.location, job.id) == ()
        assert await store.intervals(job.project, "europe-west4", job.id) == ()

    async def test_a_gang_of_a_thousand_is_told_of(self, store: Store) -> None:
        job = await store.insert(replace(waiting_job(), spec=JobSpec(pools=(a_pool(1000),))), ())
        await store.write(job, admitted(job))
        assert len(await told(store, job)) == 1000

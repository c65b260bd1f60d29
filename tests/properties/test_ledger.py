"""Whatever becomes of a job, the ledger has each moment of each of its places exactly once."""

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.effort import PROPERTY
from tests.properties.job_plans import Step, jobs, lives, play
from tests.properties.job_world import World
from trainshed.core.jobs.job import Job, planned_replicas
from trainshed.core.ledger import Interval, TimeClass
from trainshed.core.names import RunKey

skews = st.sampled_from([0.0, 0.0, 0.0, -3.0, 0.2, 3.0]).map(lambda by: timedelta(seconds=by))


def by_run(world: World) -> dict[RunKey, list[Interval]]:
    runs: dict[RunKey, list[Interval]] = defaultdict(list)
    for interval in world.ledger:
        runs[interval.key].append(interval)
    return runs


def live(job: Job, life: list[Step], skew: timedelta) -> World:
    world = World(job, skew=skew)
    for step in life:
        play(world, step)
    return world


@PROPERTY
@given(jobs(), lives(), skews)
def test_the_intervals_of_a_run_neither_overlap_nor_leave_gaps(job: Job, life: list[Step], skew: timedelta):
    for intervals in by_run(live(job, life, skew)).values():
        for earlier, later in pairwise(intervals):
            assert earlier.to_at == later.from_at


@PROPERTY
@given(jobs(), lives(), skews)
def test_no_interval_is_told_twice(job: Job, life: list[Step], skew: timedelta):
    world = live(job, life, skew)
    keys = [(interval.key, interval.spent_on, interval.from_at) for interval in world.ledger]
    assert len(keys) == len(set(keys))


@PROPERTY
@given(jobs(), lives(), skews)
def test_the_runs_of_a_place_follow_each_other_from_the_submit_to_the_end(
    job: Job, life: list[Step], skew: timedelta
):
    world = live(job, life, skew)
    places: dict[tuple[int, int], list[Interval]] = defaultdict(list)
    for key, intervals in sorted(by_run(world).items()):
        places[key.name.pool, key.name.index] += intervals
    for intervals in places.values():
        assert intervals[0].from_at == job.created_at
        for earlier, later in pairwise(intervals):
            assert earlier.to_at == later.from_at
    if world.job.is_final:
        ends = {place: intervals[-1].to_at for place, intervals in places.items()}
        expected: dict[tuple[int, int], datetime | None] = {
            (r.pool, r.index): world.job.status.ended_at for r in planned_replicas(job.spec)
        }
        assert ends.items() <= expected.items()
        took_time = world.job.status.ended_at != job.created_at  # else only runs that ended have an interval
        assert len(ends) == len(expected) or not took_time


@PROPERTY
@given(jobs(), lives(), skews)
def test_every_run_that_was_seen_to_end_has_its_exit_once(job: Job, life: list[Step], skew: timedelta):
    world = live(job, life, skew)
    runs = by_run(world)
    for key, intervals in runs.items():
        exits = [interval.exit for interval in intervals if interval.exit is not None]
        assert len(exits) <= 1
        is_restarted = any(later.name == key.name and later.run > key.run for later in runs)
        assert exits or not is_restarted, f"{key} was restarted, and how it ended is forgotten"
        process = world.processes.get(key)
        if exits and not exits[0].lost:
            assert process is not None and process.exit == exits[0]
    if world.job.is_final:
        told = {i.key: i.exit for i in world.ledger if i.exit is not None}
        for replica in world.job.status.replicas:
            assert told.get(world.job.key(replica)) == replica.exit


@PROPERTY
@given(jobs(), lives())
def test_a_place_computes_no_longer_than_its_program_lived(job: Job, life: list[Step]):
    world = live(job, life, timedelta())
    at_work = {TimeClass.COMPUTED, TimeClass.WAITED_FOR_GANG}
    for key, intervals in by_run(world).items():
        process = world.processes.get(key)
        worked = sum((i.to_at - i.from_at for i in intervals if i.spent_on in at_work), timedelta())
        if process is None:
            assert not worked
        elif process.ended_at is not None and not process.forgotten:
            assert worked <= process.ended_at - process.started_at

"""Whatever happens, in whatever order, nothing forbidden ever happens: the world asserts it at every step."""

from collections import Counter

from hypothesis import given

from tests.builders import a_job, a_pool
from tests.properties.effort import PROPERTY
from tests.properties.job_plans import Step, jobs, lives, play
from tests.properties.job_world import World
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.job import Job


@PROPERTY
@given(jobs(), lives())
def test_no_life_of_a_job_breaks_a_rule(job: Job, life: list[Step]):
    world = World(job)
    for step in life:
        play(world, step)


@PROPERTY
@given(jobs(), lives(), lives())
def test_an_ended_job_never_wakes(job: Job, life: list[Step], after: list[Step]):
    world = World(job)
    for step in life:
        play(world, step)
    if not world.job.is_final:
        return
    status, launches = world.job.status, world.launches
    for step in after:
        play(world, step)
        assert world.job.status == status
    assert world.launches == launches


@PROPERTY
@given(lives())
def test_a_job_is_never_started_more_often_than_its_budgets_allow(life: list[Step]):
    world = World(a_job(a_pool(), a_pool()))
    for step in life:
        play(world, step)
    runs = Counter((key.name.pool, key.name.index, key.name.attempt) for key in world.processes)
    assert all(count <= 1 + 5 for count in runs.values())
    assert {key.name.attempt for key in world.processes} <= {0, 1, 2, 3}


@PROPERTY
@given(jobs(), lives())
def test_the_order_in_which_runs_are_shown_changes_nothing(job: Job, life: list[Step]):
    world = World(job)
    for step in life:
        play(world, step)
    seen = world.observe()
    one, other = decide(world.job, seen, world.now), decide(world.job, reversed(seen), world.now)
    assert one.status == other.status
    assert set(one.actions) == set(other.actions)
    assert one.again_at == other.again_at

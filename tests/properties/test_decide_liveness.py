"""Once nothing goes wrong any more every job settles, woken only by the times it asked for itself."""

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.effort import PROPERTY
from tests.properties.job_plans import BROKEN, Step, exits, jobs, lives, play
from tests.properties.job_world import World
from trainshed.core.jobs.decide import Plan, Start
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.jobs.readiness import READY, Readiness
from trainshed.core.jobs.replica import Exit

MOST_TURNS = 3000
KILLED = Exit(signal=9)

# How programs behave from now on: they end so at once, or (None) they go on for ever unless stopped.
endings = st.lists(st.one_of(exits, st.none()), min_size=1, max_size=6)


def settle(world: World, behaviour: list[Exit | None], *, stubborn: bool, made: Readiness = READY) -> None:
    """The loop without faults: again when something changed, else at the time the plan asks for."""
    if not world.readiness.is_ready:
        world.readiness = made
    for _ in range(MOST_TURNS):
        before = world.job
        plan = world.turn()
        moved = world.job.status != before.status
        moved = _world_moves(world, behaviour, stubborn=stubborn) or moved
        if world.job.is_final and not world.alive() and not moved:
            return
        if not moved:
            _sleep(world, plan)
    raise AssertionError(f"not settled after {MOST_TURNS} turns: {world.job.status}")


def _world_moves(world: World, behaviour: list[Exit | None], *, stubborn: bool) -> bool:
    """Let what would end by now end; whether anything did, of which a backend gives a hint."""
    moved = False
    for number, key in enumerate(world.alive()):
        ending = behaviour[(number + key.run + key.name.attempt) % len(behaviour)]
        asked = world.processes[key].asked
        if ending is not None:
            world.end(key, ending)
            moved = True
        elif asked and not stubborn:
            world.end(key, KILLED)
            moved = True
    return moved


def _sleep(world: World, plan: Plan) -> None:
    started = any(isinstance(action, Start) for action in plan.actions)
    if started or world.job.status.state is JobState.QUEUED:
        world.admit()  # a started run is looked at at once; a queued job waits for the scheduler alone
        return
    assert plan.again_at is not None, f"nothing will ever wake this job: {world.job.status}"
    assert plan.again_at > world.now, f"the loop would spin: {world.job.status}"
    world.pass_time((plan.again_at - world.now).total_seconds())


@PROPERTY
@given(jobs(), lives(), endings, st.booleans(), st.sampled_from([READY, BROKEN]))
def test_every_job_settles_with_nothing_left_alive(
    job: Job, life: list[Step], behaviour: list[Exit | None], stubborn: bool, made: Readiness
):
    world = World(job)
    for step in life:
        play(world, step)
    settle(world, behaviour, stubborn=stubborn, made=made)
    assert world.job.is_final
    assert not world.alive()


@PROPERTY
@given(jobs(), lives(), endings, st.booleans())
def test_a_cancelled_job_settles_without_running_on(
    job: Job, life: list[Step], behaviour: list[Exit | None], stubborn: bool
):
    world = World(job)
    for step in life:
        play(world, step)
    world.cancel()
    launches = world.launches
    settle(world, behaviour, stubborn=stubborn)
    assert world.launches == launches
    assert world.job.is_final


@PROPERTY
@given(jobs(), endings)
def test_without_any_fault_a_job_whose_replicas_all_succeed_succeeds(job: Job, _: list[Exit | None]):
    world = World(job)
    world.admit()
    settle(world, [Exit(code=0)], stubborn=False)
    assert world.job.status.state is JobState.SUCCEEDED
    assert world.job.status.attempt == 0

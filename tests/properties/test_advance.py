"""Whatever becomes of its jobs, and wherever the server dies, a study loses no trial and comes to its end."""

from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import seconds
from tests.properties.effort import PROPERTY
from tests.properties.study_world import StudyWorld
from tests.studies.study_builders import a_study
from trainshed.core.jobs.job import JobState
from trainshed.core.tuning.advance import advance
from trainshed.core.tuning.study import RuntimeLimit, Selection, Study, StudyState, StudyStopping

Step: TypeAlias = tuple[Any, ...]

numbers = st.integers(1, 8)
values = st.lists(st.floats(0, 1) | st.just(float("nan")), max_size=2).map(tuple)
MOVES = (JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    limit = st.none() | st.integers(1, 60).map(lambda length: RuntimeLimit(length=seconds(length)))
    stopping = StudyStopping(
        asap=draw(st.booleans()),
        least_runtime=draw(limit),
        most_runtime=draw(limit),
        least_trials=draw(st.integers(0, 3)),
        most_trials=draw(st.integers(0, 6)),
        trials_without_progress=draw(st.integers(0, 4)),
        time_without_progress=draw(st.none() | st.integers(1, 60).map(seconds)),
    )
    return a_study(
        trials=draw(st.integers(1, 8)),
        parallel=draw(st.integers(1, 4)),
        max_failed=draw(st.integers(0, 3)),
        selection=draw(st.sampled_from(Selection)),
        stopping=stopping if draw(st.booleans()) else None,
        state=StudyState.PENDING,
        started_at=None,
    )


def lives() -> st.SearchStrategy[list[Step]]:
    """What happens, in order. The server may die after some lines."""
    return st.lists(
        st.one_of(
            st.tuples(st.just("dies"), st.integers(1, 12)),
            st.just(("run",)),
            st.tuples(st.just("job"), numbers, st.sampled_from(MOVES), values),
            st.tuples(st.just("delete"), numbers),
            st.tuples(st.just("stop trial"), numbers),
            st.tuples(st.just("end"), st.sampled_from((StudyState.CANCELLED, StudyState.SUCCEEDED))),
            st.just(("add",)),
            st.tuples(st.just("resume"), st.integers(0, 3)),
            st.tuples(st.just("time"), st.integers(1, 40)),
        ),
        max_size=40,
    )


def play(world: StudyWorld, step: Step) -> None:
    match step:
        case ("dies", lines):
            world.life_left = lines
            world.run()
            world.life_left = 10**9
        case ("run",):
            world.run()
        case ("job", number, state, reported):
            world.job_moves(number, state, reported)
        case ("delete", number):
            world.delete_job(number)
        case ("stop trial", number):
            world.stop_trial(number)
        case ("end", outcome):
            world.ask_to_end(outcome)
        case ("add",):
            world.add_trial()
        case ("resume", more):
            world.resume(more)
        case ("time", length):
            world.pass_time(length)
        case _:
            raise AssertionError(step)


@PROPERTY
@given(studies(), lives(), st.integers(0, 10))
def test_no_life_of_a_study_breaks_a_rule_and_each_comes_to_its_end(
    study: Study, life: list[Step], points: int
) -> None:
    world = StudyWorld(study, points_left=points)
    for step in life:
        play(world, step)
    for _ in range(40):
        world.run()
        world.finish_jobs()
        world.pass_time(5)
    world.run()
    assert world.study.is_final
    assert world.submits == len(set(world.jobs) | world.deleted), "no trial had two jobs"


@PROPERTY
@given(studies(), lives())
def test_a_step_is_decided_the_same_again_and_says_nothing_new_at_rest(
    study: Study, life: list[Step]
) -> None:
    world = StudyWorld(study)
    for step in life:
        play(world, step)
    assert world.plan() == world.plan()
    world.run()
    plan = world.plan()
    assert (plan.changed, plan.launch, plan.wanted) == ((), (), 0)
    assert plan.status == world.study.status


@PROPERTY
@given(studies(), lives(), lives())
def test_a_study_that_has_ended_never_wakes(study: Study, life: list[Step], after: list[Step]) -> None:
    world = StudyWorld(study)
    for step in [*life, ("end", StudyState.CANCELLED)]:
        play(world, step)
    for _ in range(3):
        world.run()
        world.finish_jobs()
    world.run()
    ended, trials = world.study, dict(world.trials)
    assert ended.is_final
    for step in after:
        if step[0] not in ("stop trial", "resume"):
            play(world, step)
    assert (world.study, world.trials) == (ended, trials)
    assert advance(ended, list(trials.values()), {}, world.now).status == ended.status

"""A job whose replicas are held up says why, and ends with that reason where nothing moves for too long."""

from dataclasses import replace
from datetime import timedelta

from tests.builders import a_job, a_pool, admitted, alive, at, key
from trainshed.core.event import Reason
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.jobs.replica import Observation, Sight
from trainshed.core.obstacle import PATIENCE as PATIENCE_BY_REASON
from trainshed.core.obstacle import Obstacle
from trainshed.settings.values import OBSTACLES

PATIENCE = timedelta(seconds=60)
PAIR = (a_pool(), a_pool())


def held_up(job: Job, pool: int, reason: Reason = Reason.UNSCHEDULABLE) -> Observation:
    obstacle = Obstacle(reason=reason, message="No node has room.", remedy="Add one.", patience=PATIENCE)
    return Observation(key=key(job, pool, 0), sight=Sight.STARTING, obstacle=obstacle)


def after(job: Job, *seen: Observation, seconds: float) -> Job:
    return replace(job, status=decide(job, seen, at(seconds)).status)


def test_the_reason_is_typed_and_stands_once_in_the_history():
    job = admitted(a_job())
    plan = decide(job, [held_up(job, 0)], at(1))
    assert plan.status.waiting is not None and plan.status.waiting.reason is Reason.UNSCHEDULABLE
    assert "Add one." in plan.status.waiting.remedy and "fails at" in plan.status.waiting.remedy
    assert [event.reason for event in plan.events] == [Reason.UNSCHEDULABLE]
    assert plan.again_at == at(1) + PATIENCE
    job = replace(job, status=plan.status)
    again = decide(job, [held_up(job, 0)], at(2))
    assert (again.status, again.events) == (job.status, ())


def test_a_job_that_makes_no_progress_fails_with_the_reason():
    job = admitted(a_job())
    job = after(job, held_up(job, 0), seconds=1)
    assert after(job, held_up(job, 0), seconds=60.9).status.closing is None
    ended = after(job, held_up(job, 0), seconds=61)
    assert ended.status.closing is not None and ended.status.closing.failure is not None
    assert ended.status.closing.failure.reason is Reason.UNSCHEDULABLE
    assert "No node has room. Nothing moved for 1 minutes" in ended.status.closing.failure.message


def test_a_replica_that_starts_is_progress():
    job = admitted(a_job(*PAIR))
    job = after(job, held_up(job, 0), held_up(job, 1), seconds=1)
    job = after(job, held_up(job, 0), alive(key(job, 1, 0)), seconds=50)
    assert after(job, held_up(job, 0), alive(key(job, 1, 0)), seconds=100).status.closing is None
    assert after(job, held_up(job, 0), alive(key(job, 1, 0)), seconds=110).status.closing is not None


def test_to_come_further_is_progress_and_to_fall_back_is_none():
    job = admitted(a_job())
    job = after(job, held_up(job, 0), seconds=1)
    job = after(job, held_up(job, 0, Reason.IMAGE_UNAVAILABLE), seconds=50)
    job = after(job, held_up(job, 0), seconds=100)
    assert job.status.closing is None
    assert after(job, held_up(job, 0), seconds=110).status.closing is not None


def test_reasons_that_change_places_do_not_wait_for_ever():
    job = admitted(a_job())
    for second in range(1, 60, 2):
        job = after(job, held_up(job, 0, Reason.SCALING_UP), seconds=second)
        job = after(job, held_up(job, 0), seconds=second + 1)
    assert after(job, held_up(job, 0), seconds=61).status.closing is not None


def test_words_about_an_obstacle_go_away_with_it():
    job = admitted(a_job())
    job = after(job, held_up(job, 0), seconds=1)
    job = after(job, alive(key(job)), seconds=2)
    assert job.status.state is JobState.RUNNING and job.status.waiting is None


def test_the_setting_knows_every_reason_that_is_not_borne_for_ever():
    assert set(OBSTACLES) == set(PATIENCE_BY_REASON)

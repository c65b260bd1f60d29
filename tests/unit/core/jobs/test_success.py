"""A job that names its success pools succeeds with all their replicas, whatever the primary does."""

from dataclasses import replace

from tests.builders import KILLED, a_job, a_pool, a_rule, all_alive, at, running, seconds
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.job import Job, JobState, Outcome, Scheduling
from trainshed.core.jobs.suspicion import may_hang

ALL = Scheduling(success_pools=(0, 1))
WORKERS = Scheduling(success_pools=(1,), drain=seconds(0))


def gang(scheduling: Scheduling) -> Job:
    rule = a_rule(codes=((1, 255),), restarts=2, retries=0)
    return running(a_job(a_pool(), a_pool(2), scheduling=replace(scheduling, restart=rule)))


def test_the_success_of_the_primary_is_not_yet_that_of_the_job():
    job = gang(ALL)
    plan = decide(job, all_alive(job, {(0, 0): 0}), at(5))
    assert (plan.status.state, plan.status.closing) == (JobState.RUNNING, None)
    assert may_hang(replace(job, status=plan.status))


def test_a_job_has_succeeded_when_all_replicas_of_its_pools_have():
    job = gang(ALL)
    assert decide(job, all_alive(job, {(0, 0): 0, (1, 0): 0, (1, 1): 0}), at(5)).status.state is (
        JobState.SUCCEEDED
    )


def test_a_replica_that_is_killed_after_the_primary_is_started_again():
    job = gang(ALL)
    status = decide(job, all_alive(job, {(0, 0): 0, (1, 0): 0, (1, 1): KILLED}), at(5)).status
    assert (status.state, status.closing) == (JobState.RUNNING, None)
    assert [replica.run for replica in status.replicas] == [0, 0, 1]


def test_replicas_of_other_pools_are_stopped_once_those_that_count_have_succeeded():
    job = gang(WORKERS)
    closing = decide(job, all_alive(job, {(1, 0): 0, (1, 1): 0}), at(5)).status.closing
    assert closing is not None
    assert closing.outcome is Outcome.SUCCEEDED

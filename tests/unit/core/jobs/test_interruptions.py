"""A replica that somebody else ended starts again without using up its restarts, but not for ever."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import a_job, a_pool, admitted, alive, at, key, running
from trainshed.core.event import Reason
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.job import Job, JobState, RestartRule, Scheduling
from trainshed.core.jobs.replica import Exit, Observation, Phase, Sight
from trainshed.core.jobs.restart import INTERRUPTIONS
from trainshed.core.ledger import account
from trainshed.core.queue.fleet import Node, Placement
from trainshed.core.queue.snapshot import Reservation, with_own_gpus

EVICTED = "Its node evicted it: The node was low on resource: memory."


def evicted(job: Job, pool: int = 0, *, lasted: float = 1.0, exit: Exit | None = None) -> Observation:
    replica = next(r for r in job.status.replicas if (r.pool, r.index) == (pool, 0))
    return Observation(
        key=job.key(replica),
        sight=Sight.ENDED,
        exit=exit or Exit(signal=15),
        started_at=at(0),
        ended_at=at(lasted),
        interrupted=EVICTED,
    )


def after(job: Job, *seen: Observation, seconds: float = 5) -> Job:
    return replace(job, status=decide(job, seen, at(seconds)).status)


@pytest.mark.parametrize("exit", [Exit(signal=15), Exit(code=1), Exit()])
def test_an_interrupted_replica_starts_again_however_it_ended_and_that_is_not_counted(exit: Exit):
    job = running(a_job())
    plan = decide(job, [evicted(job, exit=exit)], at(5))
    [replica] = plan.status.replicas
    assert (replica.run, replica.restarts, replica.phase) == (1, 0, Phase.PLANNED)
    [event] = plan.events
    assert event.reason is Reason.REPLICA_RESTARTED
    assert EVICTED in event.message and "counts as none of its 5 restarts" in event.message


def test_interruptions_do_not_use_up_the_restarts_of_a_program_that_crashes():
    job = running(a_job(scheduling=Scheduling(restart=RestartRule(replica_restarts=1, job_retries=0))))
    for _ in range(5):
        job = after(job, evicted(job))
    crashed = replace(evicted(job), interrupted="", exit=Exit(signal=9))
    job = after(job, crashed)
    assert job.status.closing is None and job.status.replicas[0].restarts == 1
    crashed = replace(evicted(job), interrupted="", exit=Exit(signal=9))
    failed = after(job, crashed)
    assert failed.status.failure is not None and failed.status.failure.reason is Reason.RETRIES_EXHAUSTED


def test_a_replica_that_is_interrupted_again_and_again_ends_the_job():
    job = running(a_job())
    for _ in range(INTERRUPTIONS - 1):
        job = after(job, evicted(job))
    assert job.status.state is not JobState.FAILED
    job = after(job, evicted(job))
    assert job.status.failure is not None and job.status.failure.reason is Reason.INTERRUPTED
    assert EVICTED in job.status.failure.message


def test_a_replica_that_ran_for_long_before_it_was_interrupted_has_come_further():
    job = running(a_job())
    for _ in range(2 * INTERRUPTIONS):
        job = after(job, evicted(job, lasted=3600))
    assert job.status.failure is None and job.status.replicas[0].interruptions == 1


def test_a_gang_that_starts_over_as_a_whole_does_not_count_an_interruption_either():
    rule = RestartRule(whole_gang=True, job_retries=0)
    job = running(a_job(a_pool(), a_pool(), scheduling=Scheduling(restart=rule)))
    job = after(job, evicted(job), alive(key(job, 1, 0)))
    gone = Observation(key=job.key(job.status.replicas[1]), sight=Sight.ENDED, exit=Exit(signal=15))
    job = after(job, evicted(job), gone, seconds=6)
    assert (job.status.attempt, job.status.uncounted, job.status.state) == (1, 1, JobState.PENDING)
    assert job.status.replicas[0].interruptions == 1


def test_a_job_without_retries_ends_and_says_who_interrupted_it():
    job = running(a_job(scheduling=Scheduling(restart=RestartRule(disabled=True))))
    job = after(job, evicted(job))
    assert job.status.failure is not None and job.status.failure.reason is Reason.INTERRUPTED
    assert EVICTED in job.status.failure.message


# Replicas that were moved


def test_a_replica_is_counted_on_the_node_where_it_is():
    job = admitted(a_job())
    assert job.status.admission is not None
    [placed] = job.status.admission.placements
    seen = replace(alive(key(job)), node="elsewhere")
    plan = decide(job, [seen], at(5))
    assert plan.status.admission is not None
    assert plan.status.admission.placements == (replace(placed, node="elsewhere"),)
    assert [event.reason for event in plan.events] == [Reason.REPLICA_MOVED, Reason.RUNNING]
    job = replace(job, status=plan.status)
    assert decide(job, [seen], at(6)).status.admission == job.status.admission


def test_the_ledger_has_a_moved_replica_on_each_node_for_its_time():
    job = running(a_job())
    status = decide(job, [replace(alive(key(job)), node="elsewhere")], at(30)).status
    status, intervals = account(job, status, at(30))
    home = job.status.admission.placements[0].node if job.status.admission else ""
    assert [interval.node for interval in intervals] == [home]
    moved = replace(job, status=status)
    assert moved.status.replicas[0].counted_until == at(30)
    ended = Observation(key=key(job), sight=Sight.ENDED, exit=Exit(code=0), ended_at=at(50), node="elsewhere")
    _, later = account(moved, decide(moved, [ended], at(50)).status, at(50))
    assert {interval.node for interval in later} == {"elsewhere"}
    assert later[0].from_at == intervals[-1].to_at


def test_a_move_at_the_moment_of_a_start_makes_no_interval_without_length():
    job = admitted(a_job())
    seen = replace(alive(key(job)), node="elsewhere", started_at=at(5))
    status, intervals = account(job, decide(job, [seen], at(5)).status, at(5))
    assert intervals and all(interval.from_at < interval.to_at for interval in intervals)
    moved = replace(job, status=status)
    ended = Observation(key=key(job), sight=Sight.ENDED, exit=Exit(code=0), ended_at=at(9), node="elsewhere")
    _, later = account(moved, decide(moved, [ended], at(9)).status, at(9))
    begins = [(interval.spent_on, interval.from_at) for interval in (*intervals, *later)]
    assert len(set(begins)) == len(begins)


def test_gpus_of_a_replica_that_was_moved_are_not_those_of_another_there():
    node = Node(name="n", host="n", cpus=4, memory=4, gpus=("0", "1", "2"))
    place = Placement(pool=0, index=0, node="n", host="n", cpus=1, memory=1, gpus=("0",))
    held = [
        Reservation(job=job, display_name=job, placements=(place,), until=at(0) + timedelta(1))
        for job in ("a", "b")
    ]
    gpus = [item.placements[0].gpus for item in with_own_gpus(held, [node])]
    assert gpus == [("0",), ("1",)]

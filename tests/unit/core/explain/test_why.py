"""Why a job stands where it stands: the scheduler's reason, and under it the numbers."""

from dataclasses import replace

import pytest

from tests.builders import (
    T0,
    a_holder,
    a_job,
    a_node,
    a_pool,
    admitted,
    at,
    cancelled,
    closing,
    running,
    seconds,
    with_replica,
)
from trainshed.core.event import Reason, Waiting
from trainshed.core.explain.explanation import Explanation, Fact, Ground, World, lasting
from trainshed.core.explain.history import History, history_of
from trainshed.core.explain.why import MOST_LISTED, explain
from trainshed.core.jobs.job import Failure, Job, JobState, Outcome, Scheduling
from trainshed.core.jobs.replica import Exit, Phase, Replica
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.queue.fleet import Node
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.snapshot import Reservation, Snapshot

FULL = a_holder("h", cpus=8, until=at(3600))


def told(
    job: Job,
    *others: Job,
    held: tuple[Reservation, ...] = (),
    nodes: tuple[Node, ...] = (a_node(),),
    history: History | None = None,
    running: tuple[Job, ...] = (),
) -> Explanation:
    world = World(
        snapshot=Snapshot(nodes=nodes, held=held),
        waiting=(*others, job),
        running=running,
        history=history or History(),
        catalogue=Catalogue(),
        now=T0,
    )
    return explain(world, job)


def facts(ground: Ground, fact: Fact) -> list[Ground]:
    return [part for part in ground.grounds if part.reason is fact]


def test_a_job_that_fits_is_said_to_start_now():
    found = told(a_job())
    assert (found.starts_now, found.position, found.queue) == (True, 1, 1)
    assert found.ground.reason is Reason.WAITS_FOR_ADMISSION


def test_a_job_without_room_is_told_what_it_needs_what_is_free_and_who_holds_the_rest_until_when():
    found = told(a_job(a_pool(2, cpus=2), a_pool(cpus=1)), held=(replace(FULL, until=at(3600)),))
    assert found.ground.reason is Reason.WAITS_FOR_CAPACITY
    [needs], [free], [holder] = (facts(found.ground, f) for f in (Fact.NEEDS, Fact.FREE, Fact.HOLDS))
    assert needs.message == "Needs 5 CPUs, 3.0 GiB for 3 replicas, all at once."
    assert [pool.message for pool in needs.grounds] == [
        "Pool 0: 2 replicas of n1-standard-4, 4 CPUs, 2.0 GiB.",
        "Pool 1: 1 replica of n1-standard-4, 1 CPU, 1.0 GiB.",
    ]
    assert free.message == "Free are 0 CPUs, 31.0 GiB of 8 CPUs, 32.0 GiB."
    assert (holder.job, holder.at) == ("h", at(3600))
    assert holder.message.startswith("Job h 'job-h' holds 8 CPUs, 1.0 GiB, until 2026-05-01 13:00:00 UTC")


def test_of_a_holder_it_is_told_how_long_such_jobs_take():
    holder = running(a_job(id="h"))
    past = [
        replace(holder, id=str(n), status=replace(holder.status, state=JobState.SUCCEEDED, ended_at=at(n)))
        for n in (60, 90, 3600)
    ]
    found = told(a_job(), held=(FULL,), history=history_of(past), running=(holder,))
    [ground] = facts(found.ground, Fact.HOLDS)
    assert ground.message.endswith("; the middle of 3 earlier runs took 1 min 30 s.")


def test_on_several_machines_what_is_free_is_told_of_each():
    held = (a_holder(cpus=3, node="a", until=at(9)),)
    found = told(a_job(a_pool(2, cpus=2)), held=held, nodes=(a_node("a", cpus=3), a_node("b", cpus=3)))
    [free] = facts(found.ground, Fact.FREE)
    assert [one.message.partition(",")[0] for one in free.grounds] == ["a: 0 CPUs", "b: 3 CPUs"]


def test_a_job_behind_others_is_told_who_they_are_and_what_they_wait_for():
    first = a_job(a_pool(cpus=4), id="0", created_at=at(-5), scheduling=Scheduling(priority=3))
    second = a_job(id="2", created_at=at(-4))
    found = told(a_job(), first, second, held=(FULL,))
    assert (found.position, found.queue) == (3, 3)
    assert found.ground.reason is Reason.WAITS_BEHIND_OTHERS
    ahead = facts(found.ground, Fact.BEFORE)
    assert [one.job for one in ahead] == ["0", "2"]
    assert "priority 3: needs 4 CPUs" in ahead[0].message
    assert [one.job for one in ahead[0].grounds] == ["h"]


def test_a_job_that_fits_but_would_delay_the_first_is_told_so():
    first = a_job(a_pool(cpus=8), id="0", created_at=at(-5))
    found = told(a_job(), first, held=(a_holder("h", cpus=4, until=at(60)),))
    [delay] = facts(found.ground, Fact.WOULD_DELAY)
    assert delay.job == "0"
    assert "timeout of 7 d" in delay.message


def test_a_job_that_has_no_room_is_not_said_to_delay_anybody():
    first = a_job(a_pool(cpus=8), id="0", created_at=at(-5))
    assert facts(told(a_job(), first, held=(FULL,)).ground, Fact.WOULD_DELAY) == []


def test_a_job_that_will_give_up_is_told_when():
    job = a_job(scheduling=Scheduling(max_wait=seconds(600)))
    [deadline] = facts(told(job, held=(FULL,)).ground, Fact.DEADLINE)
    assert deadline.at == at(600)


def test_what_would_be_cut_from_a_job_larger_than_the_machines_is_told():
    [needs] = facts(told(a_job(a_pool(cpus=99)), held=(FULL,)).ground, Fact.NEEDS)
    assert "CPUs: asked 99, given 8" in needs.message


def test_without_machines_there_is_no_time_and_no_change():
    found = told(a_job(), nodes=())
    assert (found.ground.reason, found.eta, found.changes) == (Reason.NO_NODES, None, ())


def test_a_long_list_is_cut_and_counted():
    holders = tuple(a_holder(f"h{n}", cpus=0.5, until=at(9)) for n in range(MOST_LISTED + 5))
    found = told(a_job(a_pool(cpus=8)), held=holders)
    [more] = facts(found.ground, Fact.MORE)
    assert len(facts(found.ground, Fact.HOLDS)) == MOST_LISTED
    assert more.message == "And 5 more."


def test_a_starting_job_names_the_replicas_that_have_not_started_and_why():
    job = admitted(a_job(a_pool(3)))
    job = with_replica(job, Replica(pool=0, index=0, phase=Phase.RUNNING))
    job = with_replica(job, Replica(pool=0, index=1, not_before=at(4)))
    found = told(job)
    assert found.ground.reason is Reason.STARTING
    assert "1 of 3 replicas have started" in found.ground.message
    assert [c.message for c in found.ground.grounds] == [
        "workerpool0-1 waits out its back-off: its next start comes in 4 s, at 2026-05-01 12:00:04 UTC.",
        "workerpool0-2 is being started.",
    ]
    assert (found.position, found.changes, found.eta) == (None, (), None)


def test_a_start_that_failed_is_the_reason():
    job = admitted(a_job())
    refusal = Waiting(reason=Reason.LAUNCH_FAILED, message="The disk is full.", remedy="Tried again.")
    found = told(replace(job, status=replace(job.status, waiting=refusal)))
    assert (found.ground.reason, found.ground.remedy) == (Reason.LAUNCH_FAILED, "Tried again.")
    assert found.ground.message.startswith("The disk is full.")


def test_a_running_job_says_when_the_next_restart_comes():
    job = with_replica(running(a_job(a_pool(2))), Replica(pool=0, index=1, run=2, not_before=at(2.5)))
    found = told(job)
    assert found.ground.reason is Reason.RUNNING
    assert found.ground.message == "1 of 2 replicas run, for 0 s now."
    [restart] = facts(found.ground, Fact.REPLICA)
    assert restart.at == at(2.5)
    assert "restart 2 of 5 comes in 2.5 s" in restart.message
    [limit] = facts(found.ground, Fact.DEADLINE)
    assert limit.at == T0 + Scheduling().timeout


def test_a_job_that_is_being_stopped_says_why_and_until_when():
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="workerpool0-1 exited with code 1.")
    found = told(closing(running(a_job(a_pool(2))), Outcome.FAILED, failure=failure))
    assert (found.ground.reason, found.ground.at) == (Reason.PROGRAM_FAILED, at(30))
    assert found.ground.grounds[0].message == failure.message
    assert len(facts(found.ground, Fact.REPLICA)) == 2


def test_a_cancel_that_was_only_just_asked_for_is_the_reason_already():
    found = told(cancelled(running(a_job()), at(-1)))
    assert (found.state, found.ground.reason) == (JobState.CANCELLING, Reason.CANCEL_ASKED)
    assert found.ground.at == at(29)


def test_a_failed_job_says_why_who_was_first_and_where_its_output_is():
    job = running(a_job(a_pool(2)))
    killed = Replica(pool=0, index=0, phase=Phase.ENDED, exit=Exit(signal=15), ended_at=at(9))
    broken = Replica(pool=0, index=1, phase=Phase.ENDED, exit=Exit(code=3), ended_at=at(8))
    job = with_replica(with_replica(job, killed), broken)
    verdict = Verdict(cause=Cause.IMPORT_ERROR, summary="No module named 'x'.", advice="Install it.")
    failure = Failure(
        reason=Reason.PROGRAM_FAILED, message="It failed.", task="workerpool0-1", verdict=verdict
    )
    status = replace(job.status, state=JobState.FAILED, failure=failure, ended_at=at(9))
    found = told(replace(job, status=status))
    assert (found.ground.reason, found.ground.message) == (Reason.PROGRAM_FAILED, "It failed.")
    assert found.ground.remedy == "Its output: trainshed logs 1 --replica workerpool0-1"
    assert [c.message for c in found.ground.grounds] == [
        "IMPORT_ERROR: No module named 'x'. Install it.",
        "workerpool0-1 exited with code 3.",
        "workerpool0-0 was killed by signal 15 (SIGTERM).",
    ]


@pytest.mark.parametrize(
    ("state", "reason", "message"),
    [
        (JobState.SUCCEEDED, Reason.SUCCEEDED, "It succeeded after 1 min 30 s, in attempt 1."),
        (JobState.CANCELLED, Reason.CANCELLED, "It was cancelled after 1 min 30 s, in attempt 1."),
    ],
)
def test_an_ended_job_says_how_it_ended(state: JobState, reason: Reason, message: str):
    job = running(a_job(), attempt=1)
    found = told(replace(job, status=replace(job.status, state=state, ended_at=at(90))))
    assert (found.ground.reason, found.ground.message) == (reason, message)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0 s"),
        (0.25, "0.2 s"),
        (3, "3 s"),
        (59.7, "1 min"),
        (90, "1 min 30 s"),
        (3600, "1 h"),
        (86400 * 7, "7 d"),
        (90061, "1 d 1 h"),
        (-5, "0 s"),
    ],
)
def test_a_length_of_time_is_told_in_two_units_at_most(length: float, text: str):
    assert lasting(seconds(length)) == text

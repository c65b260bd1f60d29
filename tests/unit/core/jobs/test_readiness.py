"""Readiness: nothing starts before what it needs is there; what cannot be had ends the job, and says why."""

from dataclasses import replace

import pytest

from tests.builders import a_job, a_pool, admitted, alive, all_alive, at, cancelled, key, running, with_status
from trainshed.core.event import Reason
from trainshed.core.jobs.decide import Start, decide
from trainshed.core.jobs.job import JobState, Outcome
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState, together
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.verdict import Cause, Verdict

BUILDING = Readiness(standing=ReadinessState.PREPARING, message="Building it: 3 of 12.", remedy="It comes.")
BROKEN = Readiness(
    standing=ReadinessState.FAILED,
    message="It could not be built.",
    verdict=Verdict(cause=Cause.NO_SUCH_PACKAGE, summary="no such thing", advice="Check it."),
)


def test_an_admitted_job_starts_nothing_before_it_is_ready_and_says_so():
    job = admitted(a_job(a_pool(2)))
    plan = decide(job, [], at(1), BUILDING)
    assert plan.actions == ()
    assert plan.status.waiting == BUILDING.waiting
    assert BUILDING.waiting.reason is Reason.PREPARING
    assert len(decide(job, [], at(1), READY).actions) == 2


def test_what_moves_while_it_prepares_is_not_written_again():
    job = admitted(a_job())
    job = with_status(job, decide(job, [], at(1), BUILDING).status)
    further = replace(BUILDING, message="Building it: 4 of 12.")
    assert decide(job, [], at(2), further).status == job.status


def test_a_waiting_job_whose_preparation_failed_ends_with_its_verdict():
    plan = decide(a_job(), [], at(3), BROKEN)
    assert plan.status.state is JobState.FAILED
    assert plan.status.failure is not None
    assert (plan.status.failure.reason, plan.status.failure.verdict) == (
        Reason.PREPARATION_FAILED,
        BROKEN.verdict,
    )
    assert [event.reason for event in plan.events] == [Reason.PREPARATION_FAILED]


def test_a_waiting_job_that_prepares_goes_on_waiting():
    job = a_job()
    assert decide(job, [], at(3), BUILDING).status == job.status


def test_an_admitted_job_whose_preparation_failed_is_wound_up_before_it_ends():
    job = running(a_job(a_pool(2)))
    killed = all_alive(job, {(0, 1): Exit(signal=9)})
    job = with_status(job, decide(job, killed, at(5)).status)  # its second replica is to be started again
    plan = decide(job, [alive(key(job, 0, 0))], at(60), BROKEN)
    assert plan.status.closing is not None
    assert plan.status.closing.outcome is Outcome.FAILED
    assert not plan.status.state.is_final


def test_running_replicas_are_left_alone_whatever_has_become_of_what_they_run_in():
    job = running(a_job(a_pool(2)))
    for readiness in (BUILDING, BROKEN):
        assert decide(job, all_alive(job), at(5), readiness) == decide(job, all_alive(job), at(5))


def test_a_cancel_wins_over_preparing():
    plan = decide(cancelled(a_job()), [], at(5), BUILDING)
    assert plan.status.state is JobState.CANCELLED


def test_once_ready_again_the_replicas_start():
    job = admitted(a_job())
    job = with_status(job, decide(job, [], at(1), BUILDING).status)
    assert [type(action) for action in decide(job, [], at(2)).actions] == [Start]


@pytest.mark.parametrize(
    ("parts", "standing"),
    [
        ((), ReadinessState.READY),
        ((READY, READY), ReadinessState.READY),
        ((READY, BUILDING), ReadinessState.PREPARING),
        ((BUILDING, BROKEN, READY), ReadinessState.FAILED),
    ],
)
def test_several_parts_are_as_ready_as_the_least_ready(
    parts: tuple[Readiness, ...], standing: ReadinessState
):
    assert together(parts).standing is standing


def test_the_notes_of_all_parts_are_told_once():
    noted = replace(READY, notes=("a", "b"))
    assert together((noted, replace(READY, notes=("b", "c")), READY)).notes == ("a", "b", "c")

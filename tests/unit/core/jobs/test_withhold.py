"""The end of a job waits for what it wrote."""

from tests.builders import a_job, all_alive, at, closing, running
from trainshed.core.event import Reason
from trainshed.core.jobs.decide import Plan, decide
from trainshed.core.jobs.job import Job, JobState, Outcome
from trainshed.core.jobs.replica import Exit
from trainshed.core.jobs.withhold import withhold
from trainshed.core.view import STORED, Storing

PENDING = Storing(done=False, message="Half of it is stored.")


def ending(code: int | Exit = 0, job: Job | None = None) -> tuple[Job, Plan]:
    job = job or running(a_job())
    return job, decide(job, all_alive(job, {(0, 0): code}), at(5))


def test_a_job_whose_files_are_stored_ends_as_decided():
    _, plan = ending()
    assert withhold(plan, STORED, at(5)) == plan
    assert plan.status.state is JobState.SUCCEEDED


def test_a_job_that_goes_on_is_left_alone():
    job = running(a_job())
    plan = decide(job, all_alive(job), at(5))
    assert withhold(plan, PENDING, at(5)) is plan


def test_a_job_whose_files_are_on_their_way_keeps_its_decision_and_waits():
    _, plan = ending()
    held = withhold(plan, PENDING, at(5))
    assert held.status.state is JobState.RUNNING
    assert held.status.closing is not None
    assert held.status.closing.outcome is Outcome.SUCCEEDED
    assert held.status.waiting is not None
    assert (held.status.waiting.reason, held.status.waiting.message) == (
        Reason.STORING_OUTPUTS,
        PENDING.message,
    )
    assert not held.actions
    assert held.again_at is not None
    assert Reason.SUCCEEDED not in [event.reason for event in held.events]


def test_the_decision_that_was_kept_is_carried_out_once_all_is_stored():
    job = closing(running(a_job()), Outcome.SUCCEEDED, since=at(5))
    _, plan = ending(0, job)
    done = withhold(plan, Storing(message="3 files stored."), at(9))
    assert done.status.state is JobState.SUCCEEDED
    assert [event.reason for event in done.events] == [Reason.OUTPUTS_STORED, Reason.SUCCEEDED]


def test_a_new_attempt_waits_too():
    job = running(a_job(), run=5)
    _, plan = ending(Exit(signal=9), job)
    assert plan.status.attempt == 1
    held = withhold(plan, PENDING, at(5))
    assert held.status.attempt == 0
    assert held.status.closing is not None
    assert held.status.closing.outcome is Outcome.RETRY


def test_a_success_whose_files_cannot_be_stored_is_a_failure_that_says_so():
    _, plan = ending()
    lost = withhold(plan, Storing(fault="Nothing could be stored."), at(5))
    assert lost.status.state is JobState.FAILED
    assert lost.status.failure is not None
    assert lost.status.failure.reason is Reason.OUTPUTS_LOST
    assert "nothing could be stored" in lost.status.failure.message


def test_a_failure_stays_the_same_failure_and_the_loss_is_told_beside_it():
    _, plan = ending(3)
    lost = withhold(plan, Storing(fault="Nothing could be stored."), at(5))
    assert lost.status == plan.status
    assert [event.reason for event in lost.events] == [Reason.OUTPUTS_LOST, Reason.PROGRAM_FAILED]

"""Which change of a job is told, to whom, and in which words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import a_job, a_pool, at, running
from tests.unit.core.jobs.test_interruptions import evicted
from trainshed.core.event import Event, Reason
from trainshed.core.jobs.closing import preempted, requeued
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.job import Failure, Job, JobState, Owner, OwnerKind, RestartRule, Scheduling, Status
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.core.notice import (
    CHOICES,
    LONGEST_PAUSE,
    LONGEST_SENTENCE,
    NoticeChannel,
    NoticeKind,
    NoticeWay,
    budget_notice,
    check_notice,
    notices_of,
    pause_after,
)

VERDICT = Verdict(
    cause=Cause.IMPORT_ERROR,
    task="workerpool0-0",
    ending="exited with code 1",
    summary="ModuleNotFoundError: No module named 'torchvision'",
    advice="Add it.",
)
FAILURE = Failure(reason=Reason.PROGRAM_FAILED, message="It failed.", task="workerpool0-0", verdict=VERDICT)


def a_channel(**changes: object) -> NoticeChannel:
    channel = NoticeChannel(
        id="c",
        name="team",
        project="shed",
        way=NoticeWay.WEBHOOK,
        shown="https://x",
        on=CHOICES,
        created_at=at(0),
    )
    return replace(channel, **changes)


def over(job: Job, state: JobState, seconds: float = 192, failure: Failure | None = None) -> Status:
    return replace(job.status, state=state, ended_at=at(seconds), updated_at=at(seconds), failure=failure)


def sentence(job: Job, status: Status, *events: Event) -> str:
    [notice] = notices_of(job, status, events)
    return notice.sentence


def test_a_failed_job_is_told_with_its_first_failure_and_where_to_look():
    job = running(a_job(id="123"))
    [notice] = notices_of(job, over(job, JobState.FAILED, failure=FAILURE), ())
    assert notice.sentence == (
        "Job job-123 (123) failed after 3 min 12 s: workerpool0-0 exited with code 1: ModuleNotFoundError: "
        "No module named 'torchvision' — trainshed logs 123"
    )
    assert (notice.kind, notice.state, notice.reason) == (
        NoticeKind.FAILED,
        JobState.FAILED,
        "PROGRAM_FAILED",
    )
    assert (notice.id, notice.task, notice.at) == ("123-2-failed", "workerpool0-0", at(192))
    assert notice.verdict == "IMPORT_ERROR: ModuleNotFoundError: No module named 'torchvision'. Add it."
    assert (notice.created_at, notice.started_at, notice.ended_at) == (at(0), at(0), at(192))


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (None, "failed after 3 min 12 s: no reason is known. —"),
        (Failure(reason=Reason.TIMED_OUT, message="It took too long."), "s: It took too long. —"),
        (
            replace(FAILURE, verdict=replace(VERDICT, summary="it exited with code 1")),
            "s: workerpool0-0 exited with code 1. —",
        ),
    ],
)
def test_what_is_not_known_of_a_failure_is_left_out(failure: Failure | None, words: str):
    job = running(a_job())
    assert words in sentence(job, over(job, JobState.FAILED, failure=failure))


def test_an_end_is_told_as_what_it_was():
    job = running(a_job())
    assert sentence(job, over(job, JobState.SUCCEEDED)) == "Job job-1 (1) succeeded after 3 min 12 s."
    assert sentence(job, over(job, JobState.CANCELLED)) == "Job job-1 (1) was cancelled after 3 min 12 s."
    waiting = a_job()
    told = sentence(waiting, over(waiting, JobState.CANCELLED))
    assert told == "Job job-1 (1) was cancelled before it ran."


def test_names_and_last_words_cannot_break_out_of_their_line():
    job = replace(running(a_job()), display_name="a\nBcc: x\x1b[31m\u2028b")
    failure = replace(FAILURE, verdict=replace(VERDICT, summary="x\r\n" * 1000))
    text = sentence(job, over(job, JobState.FAILED, failure=failure))
    assert text.isprintable() and text.endswith("… — trainshed logs 1")
    assert len(text) < LONGEST_SENTENCE + 40


def test_only_the_write_that_ends_a_job_tells_its_end():
    job = running(a_job())
    assert notices_of(job, job.status, ()) == ()
    final = replace(job, status=over(job, JobState.FAILED))
    assert notices_of(final, final.status, ()) == ()


def test_trials_of_a_study_tell_nothing():
    job = replace(running(a_job()), owner=Owner(OwnerKind.STUDY, "7"))
    assert notices_of(job, over(job, JobState.FAILED), ()) == ()
    job = replace(job, owner=Owner(OwnerKind.PIPELINE, "7"))
    assert len(notices_of(job, over(job, JobState.FAILED), ())) == 1


def test_a_suspected_hang_is_told_with_where_to_look():
    job = running(a_job())
    hang = Event(at=at(9), reason=Reason.HANG_SUSPECTED, message="It seems to hang: no output for 20 min.")
    status = replace(job.status, updated_at=at(9))
    [notice] = notices_of(job, status, (hang, replace(hang, reason=Reason.STACKS)))
    assert notice.sentence == ("Job job-1 (1): it seems to hang: no output for 20 min. — trainshed stacks 1")
    assert (notice.kind, notice.reason) == (NoticeKind.HUNG, "HANG_SUSPECTED")
    assert notices_of(job, status, (replace(hang, reason=Reason.HANG_OVER),)) == ()


def test_a_restart_after_an_interruption_is_told_and_one_after_a_crash_is_not():
    job = running(a_job())
    plan = decide(job, [evicted(job)], at(5))
    [notice] = notices_of(job, plan.status, plan.events)
    assert notice.kind is NoticeKind.INTERRUPTED
    assert notice.sentence.startswith("Job job-1 (1) was interrupted: workerpool0-0 was killed by signal 15")
    assert "Its node evicted it" in notice.sentence
    assert notice.sentence.endswith("— trainshed events 1")
    plan = decide(job, [replace(evicted(job), interrupted="")], at(5))
    assert [event.reason for event in plan.events] == [Reason.REPLICA_RESTARTED]
    assert notices_of(job, plan.status, plan.events) == ()


def test_a_gang_that_starts_over_after_an_interruption_tells_it_once():
    rule = RestartRule(whole_gang=True)
    job = running(a_job(a_pool(), a_pool(), scheduling=Scheduling(restart=rule)))
    plan = decide(job, [evicted(job), evicted(job, 1)], at(5))
    assert plan.status.attempt == 1
    [notice] = notices_of(job, plan.status, plan.events)
    assert notice.kind is NoticeKind.INTERRUPTED


def test_a_job_that_was_stopped_for_another_one_tells_it():
    job = running(a_job())
    job = replace(job, status=replace(job.status, closing=preempted("Preempted by job 2.", at(4))))
    status, event = requeued(job, job.status, preempted("Preempted by job 2.", at(4)), at(5))
    [notice] = notices_of(job, status, [event])
    assert notice.kind is NoticeKind.INTERRUPTED
    assert notice.sentence.startswith("Job job-1 (1) was interrupted: preempted by job 2.")


def test_further_interruptions_within_minutes_are_not_told():
    job = running(a_job())
    job = replace(job, status=decide(job, [evicted(job)], at(5)).status)
    plan = decide(job, [evicted(job, lasted=30)], at(31))
    assert notices_of(job, plan.status, plan.events) == ()
    plan = decide(job, [evicted(job, lasted=700)], at(701))
    assert len(notices_of(job, plan.status, plan.events)) == 1


def test_a_channel_wants_what_it_asks_for_of_its_project_and_labels():
    job = replace(running(a_job()), labels={"team": "vision", "x": "y"})
    [failed] = notices_of(job, over(job, JobState.FAILED), ())
    [succeeded] = notices_of(job, over(job, JobState.SUCCEEDED), ())
    assert a_channel().wants(failed)
    assert a_channel(project="").wants(failed)
    assert not a_channel(project="other").wants(failed)
    assert a_channel(labels={"team": "vision"}).wants(failed)
    assert not a_channel(labels={"team": "vision", "x": "z"}).wants(failed)
    only_failed, any_end = a_channel(on=(NoticeKind.FAILED,)), a_channel(on=(NoticeKind.ENDED,))
    assert only_failed.wants(failed) and not only_failed.wants(succeeded)
    assert any_end.wants(failed) and any_end.wants(succeeded)
    assert not a_channel(on=(NoticeKind.HUNG,)).wants(failed)


def test_a_budget_is_told_to_its_project_and_a_check_to_nobody_else():
    notice = budget_notice("gpu-80", "shed", "80%\nis spent.", at(3))
    assert (notice.id, notice.sentence, notice.at) == ("budget-gpu-80", "80% is spent.", at(3))
    assert a_channel(on=(NoticeKind.BUDGET,)).wants(notice)
    assert not a_channel(on=(NoticeKind.ENDED,)).wants(notice)
    assert not a_channel(project="other").wants(notice)
    check = check_notice(a_channel(), "1", at(4))
    assert check.sentence == (
        "Trainshed tells this channel, team, of jobs of project shed: "
        "ended, failed, hung, interrupted, budget."
    )
    assert not a_channel().wants(check)


def test_pauses_grow_to_an_hour():
    pauses = [pause_after(count) for count in (0, 1, 2, 3, 12, 13, 10_000)]
    assert [pause.total_seconds() for pause in pauses] == [1, 1, 2, 4, 2048, 3600, 3600]
    assert max(pauses) == LONGEST_PAUSE == timedelta(hours=1)


def test_a_channel_of_a_user_is_told_of_their_jobs_and_of_no_budget():
    job = replace(running(a_job()), submitter="ann")
    [notice] = notices_of(job, over(job, JobState.FAILED, failure=FAILURE), ())
    channels = [a_channel(project=job.project, user=user) for user in ("", "ann", "bob")]
    assert [channel.wants(notice) for channel in channels] == [True, True, False]
    budget = budget_notice("1", job.project, "It is spent.", at(0))
    assert [channel.wants(budget) for channel in channels] == [True, False, False]

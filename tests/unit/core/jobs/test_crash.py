"""Crashes at the same place, and programs that never begin: what is decided about them."""

from dataclasses import replace

import pytest

from tests.builders import a_job, a_rule, at, ended, key, running
from trainshed.core.event import Reason
from trainshed.core.jobs.crash import last_words
from trainshed.core.jobs.decide import Plan, decide
from trainshed.core.jobs.job import Job, JobState, Outcome
from trainshed.core.jobs.replica import Exit, Phase


def ends(
    job: Job, seconds: float, end: Exit, words: str | None, unstarted: str = "", after: float = 1
) -> Plan:
    """What follows when the current run of its one replica ends so, a second after its start."""
    (replica,) = job.status.replicas
    seen = ended(key(job, run=replica.run), end, at(seconds))
    seen = replace(seen, started_at=at(seconds - after), last_words=words, unstarted=unstarted)
    return decide(job, [seen], at(seconds))


def crash(job: Job, times: int, end: Exit, *words: str | None, after: float = 1) -> tuple[Plan, int]:
    """The last plan, and how often it was tried."""
    for number in range(times):
        plan = ends(job, 100.0 * (number + 1), end, words[number % len(words)], after=after)
        job = replace(job, status=plan.status)
        if plan.status.closing is not None or plan.status.state.is_final:
            return plan, number + 1
    return plan, times  # pyright: ignore[reportPossiblyUnboundVariable]


@pytest.mark.parametrize(
    "end", [Exit(signal=11), Exit(signal=6), Exit(code=139), Exit(signal=7), Exit(signal=4)]
)
def test_the_third_crash_at_the_same_place_fails_the_job(end: Exit):
    plan, tries = crash(running(a_job()), 5, end, "Fatal Python error: Segmentation fault in f at 3")
    assert tries == 3 and plan.status.failure is not None
    assert plan.status.failure.reason is Reason.PROGRAM_FAILED
    assert "3 times in a row" in plan.status.failure.message


@pytest.mark.parametrize(
    ("end", "words", "after"),
    [
        (Exit(signal=9), ("a",), 1),  # somebody killed it
        (Exit(signal=11), ("a", "b"), 1),  # at another place each time
        (Exit(signal=11), (None,), 1),  # nobody knows where
        (Exit(signal=11), ("a",), 90),  # after work was done
    ],
)
def test_any_other_death_is_retried_as_often_as_ever(end: Exit, words: tuple[str | None, ...], after: float):
    plan, tries = crash(running(a_job()), 6, end, *words, after=after)
    assert tries == 6 and (plan.status.closing is None or plan.status.closing.outcome is Outcome.RETRY)


def test_a_rule_that_retries_every_failure_retries_crashes_too():
    job = running(a_job(rule=a_rule(codes=((1, 255),), restarts=9)))
    _, tries = crash(job, 6, Exit(signal=11), "same")
    assert tries == 6


def test_addresses_times_and_pids_do_not_make_another_place():
    lines = ["2026-01-02 10:11:12,5 pid 77 fault at 0x7f3a", "Thread 0x7f01 (most recent call first):"]
    other = ["2026-01-03 11:12:13,9 pid 99 fault at 0x7abc", "Thread 0x7f99 (most recent call first):"]
    assert last_words(lines, ["step 5"]) == last_words(other, ["step 5"])
    assert last_words(lines, ["step 5"]) != last_words(lines, ["step 6"])


def test_a_program_that_never_begins_fails_its_job_soon_and_is_not_running_meanwhile():
    rule = a_rule(codes=((1, 255),), restarts=1000)
    job = running(a_job(rule=rule))
    job = replace(job, status=replace(job.status, state=JobState.PENDING, started_at=None))
    why = "its container cannot be started: no such device"
    for number in range(4):
        plan = ends(job, 10.0 * (number + 1), Exit(code=126), None, why)
        assert plan.status.state is JobState.PENDING and plan.status.closing is None
        assert plan.status.waiting is not None and plan.status.waiting.reason is Reason.LAUNCH_FAILED
        assert "no such device" in plan.status.waiting.message
        job = replace(job, status=plan.status)
        assert job.status.replicas[0].phase is Phase.PLANNED
    plan = ends(job, 100, Exit(code=126), None, why)
    assert plan.status.state is JobState.FAILED and plan.status.failure is not None
    assert "was never started 5 times: its container cannot be started" in plan.status.failure.message

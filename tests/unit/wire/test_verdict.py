"""A verdict as it is answered."""

from tests.unit.wire.bodies import NOW, a_job
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Failure, JobState
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.wire.custom_job import render_custom_job
from trainshed.wire.job_status import render_job_status

VERDICT = Verdict(
    cause=Cause.IMPORT_ERROR,
    task="workerpool1-0",
    ending="exited with code 1",
    summary="ModuleNotFoundError: No module named 'x'",
    lines=("Traceback (most recent call last):", "ModuleNotFoundError: No module named 'x'"),
    advice="Install it.",
)
FAILURE = Failure(reason=Reason.PROGRAM_FAILED, message="It broke.", task="workerpool1-0", verdict=VERDICT)
FAILED = a_job(state=JobState.FAILED, failure=FAILURE, ended_at=NOW)


def test_the_error_begins_with_the_short_sentence_and_goes_on_with_the_verdict() -> None:
    error = render_custom_job(FAILED)["error"]
    assert error["code"] == 3
    assert error["message"].splitlines() == [
        "It broke.",
        "Cause: IMPORT_ERROR: ModuleNotFoundError: No module named 'x'",
        "Failed first: workerpool1-0, which exited with code 1.",
        "Install it. A retry would most likely fail the same way.",
        "  Traceback (most recent call last):",
        "  ModuleNotFoundError: No module named 'x'",
    ]


def test_the_status_has_the_verdict_in_parts() -> None:
    assert render_job_status(FAILED)["failure"] == {
        "reason": "PROGRAM_FAILED",
        "message": "It broke.",
        "task": "workerpool1-0",
        "verdict": {
            "cause": "IMPORT_ERROR",
            "task": "workerpool1-0",
            "ending": "exited with code 1",
            "summary": "ModuleNotFoundError: No module named 'x'",
            "lines": ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'x'"],
            "retryMayHelp": False,
            "advice": "Install it.",
        },
    }

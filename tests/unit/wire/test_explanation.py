"""An explanation as clients read it."""

from dataclasses import replace

from tests.builders import T0, at
from trainshed.core.event import Reason
from trainshed.core.explain.explanation import Change, ChangeCost, Eta, Explanation, Fact, Ground
from trainshed.core.jobs.job import JobState
from trainshed.wire.explanation import render_explanation

HOLDER = Ground(reason=Fact.HOLDS, message="Job 2 holds it.", job="2", at=at(60))
WAITS = Ground(reason=Reason.WAITS_FOR_CAPACITY, message="Needs 1 CPU.", remedy="Wait.", grounds=(HOLDER,))


def test_a_waiting_job_is_told_with_all_that_is_known():
    change = Change(
        field="cancel",
        before="RUNNING",
        after="CANCELLED",
        sentence="Cancel 2.",
        toll=ChangeCost.OTHER,
        job="2",
    )
    told = Explanation(
        state=JobState.QUEUED,
        ground=WAITS,
        position=2,
        queue=3,
        changes=(change,),
        eta=Eta(earliest=T0, likely=at(1), latest=at(2), basis="From before."),
    )
    assert render_explanation(told) == {
        "state": "JOB_STATE_QUEUED",
        "because": {
            "reason": "WAITS_FOR_CAPACITY",
            "message": "Needs 1 CPU.",
            "remedy": "Wait.",
            "because": [
                {
                    "reason": "HOLDS",
                    "message": "Job 2 holds it.",
                    "job": "2",
                    "time": "2026-05-01T12:01:00.000000Z",
                }
            ],
        },
        "would": "wait",
        "position": 2,
        "queueLength": 3,
        "changes": [
            {
                "field": "cancel",
                "from": "RUNNING",
                "to": "CANCELLED",
                "message": "Cancel 2.",
                "costs": "OTHER",
                "job": "2",
            }
        ],
        "eta": {
            "earliest": "2026-05-01T12:00:00.000000Z",
            "likely": "2026-05-01T12:00:01.000000Z",
            "latest": "2026-05-01T12:00:02.000000Z",
            "basis": "From before.",
        },
    }


def test_there_is_one_likely_time_or_a_range_of_them():
    eta = Eta(earliest=T0, likely=None, latest=None, basis="Who knows.", between=(at(1), at(2)))
    told = Explanation(state=JobState.QUEUED, ground=WAITS, position=1, queue=1, eta=eta)
    assert render_explanation(told)["eta"] == {
        "earliest": "2026-05-01T12:00:00.000000Z",
        "likelyFrom": "2026-05-01T12:00:01.000000Z",
        "likelyTo": "2026-05-01T12:00:02.000000Z",
        "basis": "Who knows.",
    }
    one = replace(told, eta=replace(eta, likely=at(1)))
    assert set(render_explanation(one)["eta"]) == {"earliest", "likely", "basis"}


def test_bounds_that_nothing_tells_are_left_out():
    eta = Eta(earliest=T0, likely=None, latest=None, basis="Who knows.")
    told = Explanation(state=JobState.QUEUED, ground=WAITS, position=1, queue=1, eta=eta)
    assert render_explanation(told)["eta"] == {
        "earliest": "2026-05-01T12:00:00.000000Z",
        "basis": "Who knows.",
    }


def test_a_job_with_room_would_start_now():
    told = Explanation(state=JobState.QUEUED, ground=WAITS, position=1, queue=1, starts_now=True)
    assert render_explanation(told)["would"] == "start now"


def test_a_job_that_is_not_in_the_queue_has_no_place_there():
    told = Explanation(state=JobState.RUNNING, ground=Ground(reason=Reason.RUNNING, message="It runs."))
    assert render_explanation(told) == {
        "state": "JOB_STATE_RUNNING",
        "because": {"reason": "RUNNING", "message": "It runs."},
    }

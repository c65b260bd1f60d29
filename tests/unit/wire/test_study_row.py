"""The row of a study in lists: why it ended, or why its next trial cannot begin."""

from tests.study_builders import a_study
from trainshed.core.event import Reason, Waiting
from trainshed.core.tuning.study import StudyState
from trainshed.core.tuning.trial_outline import StudyFigures
from trainshed.wire.study_row import render_study_row


def test_a_study_that_waits_has_the_reason_for_scripts_and_the_sentence_for_people() -> None:
    waiting = Waiting(reason=Reason.WAITS_FOR_SHARE, message="It waits.", remedy="Raise the share.")
    row = render_study_row(a_study(waiting=waiting), StudyFigures())
    assert row["waiting"] == {
        "reason": "WAITS_FOR_SHARE",
        "message": "It waits.",
        "remedy": "Raise the share.",
    }
    assert row["message"] == "It waits."


def test_a_study_that_has_ended_says_why() -> None:
    row = render_study_row(a_study(state=StudyState.FAILED, message="It failed."), StudyFigures())
    assert (row["message"], "waiting" in row) == ("It failed.", False)

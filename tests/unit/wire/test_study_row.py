"""The row of a study in lists: why it ended, or why its next trial cannot begin."""

from dataclasses import replace

from tests.studies.study_builders import a_study
from trainshed.core.event import Reason, Waiting
from trainshed.core.tuning.study import PARTIAL, StudyState, TrialState
from trainshed.core.tuning.trial_outline import StudyFigures, TrialOutline
from trainshed.wire.study_row import render_best_point, render_study_row


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


def test_the_best_point_of_a_study_whose_template_is_not_all_names_the_job_and_no_copy_of_it() -> None:
    best = TrialOutline(number=3, state=TrialState.SUCCEEDED, point={"lr": 0.5}, values=(1.0,), job="42")
    study = a_study()
    assert "customJob" in render_best_point(study, best)
    answer = render_best_point(replace(study, record={PARTIAL: True}), best)
    assert (answer["job"], "customJob" in answer) == ("42", False)

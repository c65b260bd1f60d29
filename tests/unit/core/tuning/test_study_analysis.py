from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.unit.wire.bodies import NOW
from tests.unit.wire.test_tuning_job import a_body, a_study, a_trial
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.study import StudyLimits, StudyState, StudyStatus, StudyStopping, TrialState
from trainshed.core.tuning.study_analysis import analyse
from trainshed.core.tuning.study_end import StudyEnd, study_end
from trainshed.core.tuning.trial_outline import TrialOutline, outline

POINT = {"lr": 0.01, "batch": 32.0, "layers": 2, "optimizer": "adam"}


def ended(number: int, *values: float, seconds: float = 10, **changes: Any) -> TrialOutline:
    return replace(
        TrialOutline(
            number=number,
            point={**POINT, "lr": 0.001 * number},
            state=TrialState.SUCCEEDED if values else TrialState.INFEASIBLE,
            values=values or None,
            started_at=NOW + timedelta(seconds=number),
            ended_at=NOW + timedelta(seconds=number + seconds),
        ),
        **changes,
    )


def test_the_history_follows_the_ends_and_knows_the_best_until_then():
    trials = [ended(1, 0.2, seconds=50), ended(2, 0.5), ended(3), ended(4, 0.4)]
    analysis = analyse(a_study(), trials, NOW)
    assert [(point.trial, point.value, point.best) for point in analysis.history] == [
        (2, 0.5, 0.5),
        (4, 0.4, 0.5),
        (1, 0.2, 0.5),
    ]
    assert analysis.best == (2,)
    assert analysis.counts == {TrialState.SUCCEEDED: 3, TrialState.INFEASIBLE: 1}


def test_several_objectives_have_several_best_trials():
    metrics = [{"metricId": "a", "goal": "MAXIMIZE"}, {"metricId": "b", "goal": "MINIMIZE"}]
    study = a_study(a_body(studySpec={**a_body()["studySpec"], "metrics": metrics}))
    trials = [ended(1, 0.1, 1.0), ended(2, 0.2, 2.0), ended(3, 0.1, 2.0), ended(4)]
    assert analyse(study, trials, NOW).best == (1, 2)


def test_the_time_left_follows_from_recent_trials_and_those_that_run():
    study = a_study(status=StudyStatus(state=StudyState.RUNNING), limits=StudyLimits(trials=10, parallel=2))
    running = ended(3, started_at=NOW, ended_at=None, state=TrialState.ACTIVE)
    now = NOW + timedelta(seconds=4)
    analysis = analyse(study, [ended(1, 0.1), ended(2, 0.2), running], now)
    assert analysis.left == timedelta(seconds=(8 * 10 - 4) / 2)
    assert analyse(replace(study, status=StudyStatus()), [ended(1, 0.1)], now).left is None
    assert analyse(study, [running], now).left is None


def test_what_early_ends_saved_is_measured_by_the_trials_that_ran_whole():
    trials = [
        ended(1, 0.5, seconds=100),
        ended(2, 0.5, seconds=300),
        ended(3, 0.1, seconds=50, is_stopped=True),
        ended(4, 0.1, seconds=250, is_stopped=True),
    ]
    analysis = analyse(a_study(), trials, NOW)
    assert (analysis.stopped, analysis.saved) == (2, timedelta(seconds=150))
    assert analyse(a_study(), trials[:2], NOW).saved is None


def test_the_importance_of_parameters_is_that_of_the_first_objective():
    trials = [ended(number, 1 / number) for number in range(1, 40)]
    importance = analyse(a_study(), trials, NOW).importance
    assert max(importance, key=lambda name: importance[name]) == "lr"


def test_an_outline_has_the_final_values_of_a_trial_that_succeeded():
    study, final = a_study(), Measurement(2, 1.0, {"accuracy": 0.9, "other": 1.0})
    trial = a_trial(state=TrialState.SUCCEEDED, final=final, stopped="Too slow.")
    assert (outline(study, trial).values, outline(study, trial).is_stopped) == ((0.9,), True)
    assert outline(study, replace(trial, state=TrialState.INFEASIBLE)).value is None


def test_a_target_that_is_reached_ends_the_study():
    study = a_study(status=StudyStatus(state=StudyState.RUNNING, started_at=NOW))
    study = replace(study, spec=replace(study.spec, stopping=StudyStopping(target=0.9)))

    def end(value: float) -> object:
        final = Measurement(1, 1.0, {"accuracy": value})
        return study_end(study, [a_trial(state=TrialState.SUCCEEDED, final=final, ended_at=NOW)], NOW)

    assert end(0.89) is None
    message = "Trial 1 reached accuracy=0.9; 0.9 was asked for."
    assert end(0.9) == StudyEnd(StudyState.SUCCEEDED, message, drains=True)

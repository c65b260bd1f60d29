import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import T0, at
from tests.studies.study_builders import a_trial, asked, done
from tests.unit.wire.bodies import any_json, names
from trainshed.core.errors import Invalid
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.core.tuning.study import Study, StudyState, StudyStatus, TrialState
from trainshed.wire.measurement import MeasurementRequest
from trainshed.wire.trial import render_measurement, render_trial
from trainshed.wire.vizier import (
    CompleteRequest,
    Completion,
    LookupRequest,
    StudyFields,
    SuggestRequest,
    TrialFields,
    parse_completion,
    parse_lookup,
    parse_study,
    parse_suggest,
    parse_told,
    parse_trial,
    render_stopping_state,
    render_study,
    render_suggestion,
    study_state,
)

SPACE = SearchSpace(
    (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=0.0, high=1.0),
        Parameter(id="layers", kind=ParameterKind.INTEGER, low=1, high=8),
        Parameter(id="batch", kind=ParameterKind.DISCRETE, values=(16.0, 32.0)),
        Parameter(id="optimizer", kind=ParameterKind.CATEGORICAL, values=("adam", "sgd")),
        Parameter(
            id="momentum",
            kind=ParameterKind.DOUBLE,
            low=0.0,
            high=1.0,
            parent="optimizer",
            parent_values=("sgd",),
        ),
    )
)
POINT: dict[str, Any] = {"lr": 1, "layers": 2.0, "batch": 32, "optimizer": "adam"}
METRIC = {"metricId": "accuracy", "value": 0.5}


def a_study_body(**changes: object) -> dict[str, Any]:
    spec = {
        "metrics": [{"metricId": "accuracy", "goal": 1}],
        "parameters": [{"parameterId": "lr", "doubleValueSpec": {"maxValue": 1.0}, "scaleType": 1}],
    }
    return {"displayName": "mine", "studySpec": spec, **changes}


def a_trial_body(point: Mapping[str, object] = POINT, **more: object) -> dict[str, Any]:
    return {"parameters": [{"parameterId": name, "value": value} for name, value in point.items()], **more}


def faults(parse: Callable[[], object]) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        parse()
    return {one.field: one.description for one in refused.value.violations}


# ---- studies


def test_a_study_is_read_and_rendered_as_the_sdk_sends_it() -> None:
    name, spec = parse_study(a_study_body())
    assert name == "mine"
    study = replace(asked(), display_name=name, spec=spec)
    assert render_study(study) == {
        "name": "projects/shed/locations/here/studies/7",
        "displayName": "mine",
        "studySpec": {
            "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
            "parameters": [
                {
                    "parameterId": "lr",
                    "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0},
                    "scaleType": "UNIT_LINEAR_SCALE",
                }
            ],
        },
        "state": "ACTIVE",
        "createTime": "2026-05-01T12:00:00.000000Z",
    }
    assert render_study(study, enum_ints=True)["state"] == 1
    assert parse_study(render_study(study)) == (name, spec), "an answer can be sent back"


def test_every_fault_of_a_study_is_told() -> None:
    told = faults(lambda: parse_study({"studySpec": {"parameters": [{"parameterId": "lr"}]}, "trials": []}))
    assert {"display_name", "study_spec.metrics", "study_spec.parameters[0]", "trials"} <= set(told)
    assert set(faults(lambda: parse_study({"displayName": "x" * 129}))) >= {"display_name", "study_spec"}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (StudyStatus(), "ACTIVE"),
        (StudyStatus(state=StudyState.RUNNING), "ACTIVE"),
        (StudyStatus(state=StudyState.STOPPING, outcome=StudyState.SUCCEEDED), "COMPLETED"),
        (StudyStatus(state=StudyState.STOPPING, outcome=StudyState.CANCELLED), "INACTIVE"),
        (StudyStatus(state=StudyState.SUCCEEDED), "COMPLETED"),
        (StudyStatus(state=StudyState.FAILED), "INACTIVE"),
        (StudyStatus(state=StudyState.CANCELLED), "INACTIVE"),
    ],
)
def test_a_study_has_one_of_three_states(status: StudyStatus, state: str) -> None:
    assert study_state(replace(asked(), status=status)) == state


def test_a_study_that_is_inactive_says_why() -> None:
    status = StudyStatus(state=StudyState.CANCELLED, message="It was cancelled.")
    assert render_study(replace(asked(), status=status))["inactiveReason"] == "It was cancelled."


def test_a_name_is_needed_to_look_a_study_up() -> None:
    assert parse_lookup({"displayName": "mine", "parent": "projects/p/locations/l"}) == "mine"
    assert list(faults(lambda: parse_lookup({}))) == ["display_name"]


# ---- suggestions


def test_a_client_asks_for_one_trial_where_it_gives_no_number() -> None:
    assert parse_suggest({}) == ("", 1)
    assert parse_suggest({"suggestionCount": 3, "clientId": "a", "contexts": []}) == ("a", 3)


def test_a_suggestion_of_too_many_or_in_a_context_is_refused() -> None:
    told = faults(lambda: parse_suggest({"suggestionCount": 1001, "contexts": [{}], "clientId": "x" * 257}))
    assert set(told) == {"suggestion_count", "contexts", "client_id"}
    assert list(faults(lambda: parse_suggest({"suggestionCount": -1}))) == ["suggestion_count"]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_operations_have_the_types_of_their_version(version: str) -> None:
    study = asked()
    asked_for = render_suggestion(study, "a", [done(1)], T0, version=version, enum_ints=True)
    assert asked_for["done"] is True
    types = f"type.googleapis.com/google.cloud.aiplatform.{version}"
    assert asked_for["metadata"]["@type"] == f"{types}.SuggestTrialsMetadata"
    assert asked_for["metadata"]["clientId"] == "a"
    assert asked_for["response"]["@type"] == f"{types}.SuggestTrialsResponse"
    assert asked_for["response"]["studyState"] == 1
    assert [trial["id"] for trial in asked_for["response"]["trials"]] == ["1"]
    checked = render_stopping_state(study, 3, True, T0, version=version)
    assert checked["response"] == {
        "@type": f"{types}.CheckTrialEarlyStoppingStateResponse",
        "shouldStop": True,
    }
    assert checked["metadata"]["@type"] == f"{types}.CheckTrialEarlyStoppingStateMetatdata"
    assert checked["metadata"]["trial"] == f"{study.name}/trials/3"


# ---- trials


def test_the_values_of_a_trial_are_made_to_fit_its_parameters() -> None:
    point = parse_trial(a_trial_body(), SPACE).point
    assert point == {"lr": 1.0, "layers": 2, "batch": 32.0, "optimizer": "adam"}
    assert [type(value) for value in point.values()] == [float, int, float, str]


def test_every_value_of_a_trial_that_does_not_fit_is_told_with_its_place() -> None:
    wrong = {"lr": 2, "layers": 1.5, "optimizer": "adam", "momentum": 0.9, "x": 1}
    assert faults(lambda: parse_trial(a_trial_body(wrong), SPACE)) == {
        "parameters.lr": "must not be 2: it is a number from 0 to 1.",
        "parameters.layers": "must not be 1.5: it is a whole number from 1 to 8.",
        "parameters.batch": "is required.",
        "parameters.momentum": "does not apply to this point.",
        "parameters.x": "is no parameter.",
    }
    twice = {"parameters": [{"parameterId": "lr", "value": 1}, {"parameterId": "lr", "value": 1}]}
    assert "parameters[1].parameter_id" in faults(lambda: parse_trial(twice, SPACE))
    told = faults(lambda: parse_trial(a_trial_body({"lr": True, "layers": [1]}), SPACE))
    assert set(told) == {"parameters[0].value", "parameters[1].value"}


def test_a_trial_may_be_given_to_a_client_or_have_ended() -> None:
    ended = parse_trial(a_trial_body(state="SUCCEEDED", finalMeasurement={"metrics": [METRIC]}), SPACE)
    assert ended.final == Measurement(0, 0.0, {"accuracy": 0.5})
    wrong = parse_trial(a_trial_body(state=5, infeasibleReason="no memory"), SPACE)
    assert (wrong.final, wrong.infeasible) == (None, "no memory")
    assert parse_trial(a_trial_body(state="ACTIVE", clientId="a"), SPACE).client == "a"
    assert parse_trial(a_trial_body(state="REQUESTED", clientId="a"), SPACE).client == ""
    body = a_trial_body(measurements=[{"stepCount": "1", "metrics": [METRIC]}])
    running = parse_trial(body, SPACE)
    assert running.measurements == (Measurement(1, 0.0, {"accuracy": 0.5}),)
    assert not running.is_completed
    assert parse_trial({**body, "state": "SUCCEEDED"}, SPACE).is_completed
    assert set(faults(lambda: parse_trial(a_trial_body(state="SUCCEEDED"), SPACE))) == {"final_measurement"}


def test_a_trial_that_was_answered_can_be_sent_back() -> None:
    point = parse_trial(a_trial_body(), SPACE).point
    answer = render_trial(asked(), replace(done(1), point=point, client="a"))
    again = parse_trial(answer, SPACE)
    assert (again.point, again.final) == (point, done(1).final)


def test_a_trial_is_rendered_with_all_it_has() -> None:
    study: Study = asked()
    trial = replace(
        done(3, 0.75), client="a", job="17", measurements=(Measurement(1, 1.5, {"accuracy": 0.5}),)
    )
    assert render_trial(study, trial) == {
        "name": f"{study.name}/trials/3",
        "id": "3",
        "state": "SUCCEEDED",
        "parameters": [{"parameterId": "lr", "value": 0.03}],
        "finalMeasurement": {
            "elapsedDuration": "1s",
            "stepCount": "1",
            "metrics": [{"metricId": "accuracy", "value": 0.75}],
        },
        "measurements": [
            {
                "elapsedDuration": "1.5s",
                "stepCount": "1",
                "metrics": [{"metricId": "accuracy", "value": 0.5}],
            }
        ],
        "startTime": "2026-05-01T12:00:00.000000Z",
        "endTime": "2026-05-01T12:00:03.000000Z",
        "clientId": "a",
        "customJob": "projects/shed/locations/here/customJobs/17",
    }
    waits = render_trial(study, a_trial(1), enum_ints=True)
    assert waits == {
        "name": f"{study.name}/trials/1",
        "id": "1",
        "state": 1,
        "parameters": [{"parameterId": "lr", "value": 0.01}],
    }
    wrong = a_trial(1, state=TrialState.INFEASIBLE, infeasible="no memory", ended_at=at(1))
    assert render_trial(study, wrong)["infeasibleReason"] == "no memory"


# ---- measurements


def test_a_measurement_has_step_time_and_values_and_zeros_may_be_left_out() -> None:
    told = {"measurement": {"elapsedDuration": "2.5s", "stepCount": "7", "metrics": [METRIC]}}
    assert parse_told(told) == Measurement(7, 2.5, {"accuracy": 0.5})
    assert parse_told({"measurement": {"metrics": [{"metricId": "accuracy"}]}}) == Measurement(
        0, 0.0, {"accuracy": 0.0}
    )


@pytest.mark.parametrize(("text", "number"), [("Infinity", math.inf), ("-Infinity", -math.inf)])
def test_infinite_values_are_texts_in_json(text: str, number: float) -> None:
    given = {"measurement": {"metrics": [{"metricId": "accuracy", "value": text}]}}
    measurement = parse_told(given)
    assert measurement.values == {"accuracy": number}
    assert render_measurement(measurement)["metrics"] == [{"metricId": "accuracy", "value": text}]


def test_a_value_that_is_null_is_refused_with_its_place_and_not_taken_for_zero() -> None:
    measurement = {"stepCount": 1, "metrics": [METRIC, {"metricId": "seconds", "value": None}]}
    sentence = 'must be a number, or "NaN" where there is none, not null.'
    assert faults(lambda: parse_told({"measurement": measurement})) == {
        "measurement.metrics[1].value": sentence
    }
    assert faults(lambda: parse_completion({"finalMeasurement": measurement})) == {
        "final_measurement.metrics[1].value": sentence
    }


def test_what_is_not_a_number_is_a_text_in_json() -> None:
    measurement = parse_told({"measurement": {"metrics": [{"metricId": "accuracy", "value": "NaN"}]}})
    assert math.isnan(measurement.values["accuracy"])
    assert '"NaN"' in json.dumps(render_measurement(measurement))


def test_every_fault_of_a_measurement_is_told() -> None:
    wrong = {
        "elapsedDuration": "-1s",
        "stepCount": -1,
        "metrics": [METRIC, METRIC, {"value": "much"}],
    }
    assert set(faults(lambda: parse_told({"measurement": wrong}))) == {
        "measurement.elapsed_duration",
        "measurement.step_count",
        "measurement.metrics[1].metric_id",
        "measurement.metrics[2].metric_id",
        "measurement.metrics[2].value",
    }
    assert "measurement" in faults(lambda: parse_told({}))
    assert list(faults(lambda: parse_told({"measurement": {"stepCount": 1}}))) == ["measurement.metrics"]


def test_a_trial_is_completed_with_a_measurement_with_a_reason_or_with_nothing() -> None:
    assert parse_completion({}) == Completion()
    assert parse_completion({"finalMeasurement": {"metrics": [METRIC]}}).final is not None
    assert parse_completion({"finalMeasurement": {}}) == Completion(), "as some clients send it"
    given = {
        "trialInfeasible": True,
        "finalMeasurement": {"metrics": [METRIC]},
        "infeasibleReason": "x" * 2000,
    }
    assert parse_completion(given) == Completion(None, "x" * 1000)
    assert parse_completion({"trialInfeasible": True}) == Completion(None, "")
    assert list(faults(lambda: parse_completion({"infeasibleReason": "no"}))) == ["infeasible_reason"]


# ---- whatever is sent

MESSAGES = (StudyFields, LookupRequest, SuggestRequest, TrialFields, CompleteRequest, MeasurementRequest)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(names(*MESSAGES), any_json(names(*MESSAGES), "lr", "accuracy", "NaN", "5s"), max_size=5)
)
def test_any_body_is_read_or_refused(body: dict[str, Any]) -> None:
    for parse in (parse_study, parse_lookup, parse_suggest, parse_told, parse_completion):
        try:
            parse(body)
        except Invalid as error:
            assert error.violations
    try:
        assert SPACE.contains(parse_trial(body, SPACE).point)
    except Invalid as error:
        assert error.violations

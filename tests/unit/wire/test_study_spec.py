from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import RuntimeLimit, Selection, StudySpec, StudyStopping
from trainshed.core.tuning.suggestion_port import Algorithm, NoiseLevel, Objective
from trainshed.wire import base
from trainshed.wire.faults import Faults
from trainshed.wire.study_schema import StudySpecFields
from trainshed.wire.study_spec import parse_study_spec, render_study_spec

LR = {
    "parameterId": "lr",
    "doubleValueSpec": {"minValue": 1e-4, "maxValue": 0.1},
    "scaleType": "UNIT_LOG_SCALE",
}
BATCH = {"parameterId": "batch", "discreteValueSpec": {"values": [32, 64.0, "128"]}}
LAYERS = {"parameterId": "layers", "integerValueSpec": {"minValue": "1", "maxValue": 4.0}, "scaleType": 1}
OPTIMIZER = {"parameterId": "optimizer", "categoricalValueSpec": {"values": ["sgd", "adam"]}}


def a_spec(*parameters: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
        "parameters": list(parameters) or [LR],
        **changes,
    }


def parsed(body: Mapping[str, Any]) -> StudySpec:
    faults = Faults("study")
    fields = base.read(StudySpecFields, body, faults, "study_spec")
    spec = parse_study_spec(fields, faults)
    faults.settle()
    return spec


def refused(body: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        parsed(body)
    violations = error.value.violations
    return {violation.field.removeprefix("study_spec."): violation.description for violation in violations}


def under(condition: Mapping[str, Any], child: Mapping[str, Any]) -> dict[str, Any]:
    return {**condition, "parameterSpec": child}


def test_every_kind_of_parameter_is_read():
    space = parsed(a_spec(LR, BATCH, LAYERS, OPTIMIZER)).space
    assert space.parameters == (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=1e-4, high=0.1, scale=Scale.LOG),
        Parameter(id="batch", kind=ParameterKind.DISCRETE, values=(32.0, 64.0, 128.0)),
        Parameter(id="layers", kind=ParameterKind.INTEGER, low=1, high=4),
        Parameter(id="optimizer", kind=ParameterKind.CATEGORICAL, values=("sgd", "adam")),
    )


def test_an_absent_bound_is_zero_as_protocol_buffers_have_it():
    momentum = {"parameterId": "momentum", "doubleValueSpec": {"maxValue": 1}}
    shift = {"parameterId": "shift", "integerValueSpec": {"minValue": -3}}
    first, second = parsed(a_spec(momentum, shift)).space.parameters
    assert (first.low, first.high) == (0, 1)
    assert (second.low, second.high) == (-3, 0)


def test_enumerations_are_read_as_names_and_as_numbers():
    names = a_spec(
        {**BATCH, "scaleType": "UNIT_REVERSE_LOG_SCALE"},
        algorithm="GRID_SEARCH",
        observationNoise="HIGH",
        measurementSelectionType="BEST_MEASUREMENT",
    )
    numbers = {
        **a_spec({**BATCH, "scaleType": 3}),
        "metrics": [{"metricId": "accuracy", "goal": 1}],
        "algorithm": 2,
        "observationNoise": 2,
        "measurementSelectionType": 2,
    }
    assert parsed(names) == parsed(numbers)
    assert parsed(names).selection is Selection.BEST
    assert parsed(names).noise is NoiseLevel.HIGH
    assert parsed(names).algorithm is Algorithm.GRID
    rendered = render_study_spec(parsed(names), enum_ints=True)
    assert rendered["metrics"][0]["goal"] == 1
    assert (rendered["algorithm"], rendered["observationNoise"]) == (2, 2)
    assert rendered["parameters"][0]["scaleType"] == 3


def test_snake_case_and_nulls_are_read():
    body = {
        "metrics": [{"metric_id": "loss", "goal": "MINIMIZE", "safety_config": None}],
        "parameters": [{"parameter_id": "x", "double_value_spec": {"min_value": 1, "max_value": 2}}],
    }
    assert parsed(body).objectives == (Objective("loss", maximize=False),)


@pytest.mark.parametrize(
    ("parent", "condition", "values"),
    [
        (OPTIMIZER, {"parentCategoricalValues": {"values": ["sgd"]}}, ("sgd",)),
        (LAYERS, {"parentIntValues": {"values": ["2", 3.0]}}, (2, 3)),
        (BATCH, {"parentDiscreteValues": {"values": [64]}}, (64.0,)),
    ],
)
def test_a_conditional_parameter_has_its_parent_and_is_shown_below_it_again(
    parent: dict[str, Any], condition: dict[str, Any], values: tuple[object, ...]
):
    child = {"parameterId": "momentum", "doubleValueSpec": {"minValue": 0.1, "maxValue": 0.9}}
    body = a_spec({**parent, "conditionalParameterSpecs": [under(condition, child)]})
    spec = parsed(body)
    assert spec.space.parameters[1].parent == parent["parameterId"]
    assert spec.space.parameters[1].parent_values == values
    assert parsed(render_study_spec(spec)) == spec


def test_conditions_may_be_nested_and_repeat_a_name_that_they_tell_apart():
    inner = {"parameterId": "inner", "doubleValueSpec": {"maxValue": 1}}
    layers = {
        **LAYERS,
        "conditionalParameterSpecs": [under({"parentIntValues": {"values": [4]}}, inner)],
    }
    body = a_spec(
        {
            **OPTIMIZER,
            "conditionalParameterSpecs": [
                under({"parentCategoricalValues": {"values": ["sgd"]}}, layers),
                under({"parentCategoricalValues": {"values": ["adam"]}}, {**LR, "parameterId": "inner"}),
            ],
        }
    )
    spec = parsed(body)
    assert [(p.id, p.parent) for p in spec.space.parameters] == [
        ("optimizer", ""),
        ("layers", "optimizer"),
        ("inner", "layers"),
        ("inner", "optimizer"),
    ]
    assert parsed(render_study_spec(spec)) == spec


def test_a_child_of_a_name_that_stands_twice_needs_a_value_that_only_one_has():
    def branch(value: str, number: int) -> dict[str, Any]:
        child = {"parameterId": f"below-{value}", "doubleValueSpec": {"maxValue": 1}}
        inner = {
            **LAYERS,
            "conditionalParameterSpecs": [under({"parentIntValues": {"values": [number]}}, child)],
        }
        return under({"parentCategoricalValues": {"values": [value]}}, inner)

    faults = refused(
        a_spec({**OPTIMIZER, "conditionalParameterSpecs": [branch("sgd", 1), branch("adam", 2)]})
    )
    path = "parameters[0].conditional_parameter_specs[0].parameter_spec.conditional_parameter_specs[0]"
    assert "stands twice" in faults[path]


def test_all_faults_of_parameters_are_told_with_their_paths():
    child = {"parameterId": "x y", "doubleValueSpec": {"minValue": 2, "maxValue": 1}}
    faults = refused(
        a_spec(
            {**LR, "doubleValueSpec": {"minValue": 0, "maxValue": 1}},
            {"parameterId": "both", "doubleValueSpec": {}, "integerValueSpec": {}},
            {**OPTIMIZER, "scaleType": "UNIT_LINEAR_SCALE"},
            {"parameterId": "list", "discreteValueSpec": {"values": [3, 1]}},
            {
                "parameterId": "parent",
                "categoricalValueSpec": {"values": ["a"]},
                "conditionalParameterSpecs": [
                    under({"parentCategoricalValues": {"values": ["b"]}}, child),
                    under({"parentIntValues": {"values": [1]}}, {**LR, "parameterId": "other"}),
                    {"parentCategoricalValues": {"values": ["a"]}},
                ],
            },
            {"parameterId": "wide", "integerValueSpec": {"maxValue": "9223372036854775807"}},
        )
    )
    conditional = "parameters[4].conditional_parameter_specs"
    assert "above zero" in faults["parameters[0].scale_type"]
    assert "exactly one of doubleValueSpec" in faults["parameters[1]"]
    assert "categorical" in faults["parameters[2].scale_type"]
    assert "rise" in faults["parameters[3].discrete_value_spec.values"]
    assert "spaces" in faults[f"{conditional}[0].parameter_spec.parameter_id"]
    assert "lower bound" in faults[f"{conditional}[0].parameter_spec.double_value_spec.max_value"]
    assert "no value of 'parent'" in faults[f"{conditional}[0].parent_categorical_values"]
    assert "kind categorical" in faults[f"{conditional}[1].parent_int_values"]
    assert faults[f"{conditional}[2].parameter_spec"] == "is required."
    assert "between" in faults["parameters[5].integer_value_spec.max_value"]
    assert len(faults) == 10


def test_what_depends_on_a_double_is_refused():
    child = under({"parentDiscreteValues": {"values": [0.1]}}, {**BATCH})
    faults = refused(a_spec({**LR, "conditionalParameterSpecs": [child]}))
    assert "must not be a double" in faults["parameters[0].conditional_parameter_specs[0]"]


def test_metrics_need_an_id_and_a_goal_and_differ():
    metrics = [{"metricId": "a", "goal": "MINIMIZE"}, {"metricId": "a"}, {"goal": "BIGGER"}]
    faults = refused(a_spec(metrics=metrics))
    assert set(faults) == {
        "metrics[1].metric_id",
        "metrics[1].goal",
        "metrics[2].metric_id",
        "metrics[2].goal",
    }
    assert refused(a_spec(metrics=[])) == {"metrics": "is required: at least one metric."}


def test_a_grid_has_no_doubles():
    faults = refused(a_spec(LR, BATCH, algorithm="GRID_SEARCH"))
    assert list(faults) == ["parameters[0].double_value_spec"]


@pytest.mark.parametrize("name", ["SOBOL", "CMA_ES", "TPE"])
def test_our_own_algorithms_have_names_and_no_numbers(name: str):
    spec = parsed(a_spec(algorithm=name))
    assert render_study_spec(spec, enum_ints=True)["algorithm"] == name


def test_an_unknown_algorithm_is_refused_with_those_that_are_known():
    assert "TPE" in refused(a_spec(algorithm="GENETIC"))["algorithm"]
    assert "algorithm" in refused(a_spec(algorithm=1))


@pytest.mark.parametrize(
    ("name", "given", "rule"),
    [
        ("decayCurveStoppingSpec", {}, StoppingRule(kind=StoppingKind.DECAY_CURVE)),
        (
            "medianAutomatedStoppingSpec",
            {"useElapsedDuration": True},
            StoppingRule(kind=StoppingKind.MEDIAN, use_elapsed=True),
        ),
        (
            "convexAutomatedStoppingSpec",
            {
                "maxStepCount": "100",
                "minStepCount": 5,
                "minMeasurementCount": 3,
                "learningRateParameterName": "lr",
                "updateAllStoppedTrials": True,
            },
            StoppingRule(
                kind=StoppingKind.CONVEX,
                most_step=100,
                least_step=5,
                least_measurements=3,
                learning_rate="lr",
                updates_stopped=True,
            ),
        ),
        (
            "ashaStoppingSpec",
            {"maxStepCount": 81, "reductionFactor": 4},
            StoppingRule(kind=StoppingKind.ASHA, most_step=81, reduction=4),
        ),
        (
            "hyperbandStoppingSpec",
            {"minStepCount": 1},
            StoppingRule(kind=StoppingKind.HYPERBAND, least_step=1),
        ),
    ],
)
def test_each_rule_that_stops_trials_is_read_and_shown_again(
    name: str, given: dict[str, Any], rule: StoppingRule
):
    spec = parsed(a_spec(**{name: given}))
    assert spec.trial_stopping == rule
    assert name in render_study_spec(spec)
    assert parsed(render_study_spec(spec)) == spec


def test_only_googles_fields_of_the_median_rule_are_shown():
    rule = StoppingRule(kind=StoppingKind.MEDIAN, least_measurements=4, least_trials=3, use_elapsed=True)
    spec = replace(parsed(a_spec()), trial_stopping=rule)
    assert render_study_spec(spec)["medianAutomatedStoppingSpec"] == {"useElapsedDuration": True}


def test_the_beta_words_of_the_convex_rule_are_read():
    spec = parsed(a_spec(convexStopConfig={"maxNumSteps": "9", "useSeconds": True}))
    assert spec.trial_stopping == StoppingRule(kind=StoppingKind.CONVEX, most_step=9, use_elapsed=True)


def test_a_rule_that_cannot_be_is_refused():
    faults = refused(
        a_spec(
            ashaStoppingSpec={"maxStepCount": 3, "minStepCount": 9, "reductionFactor": 1},
            medianAutomatedStoppingSpec={},
        )
    )
    assert "at most one rule" in faults["study_spec"]
    faults = refused(a_spec(ashaStoppingSpec={"maxStepCount": 3, "minStepCount": 9, "reductionFactor": 1}))
    assert set(faults) == {"asha_stopping_spec.min_step_count", "asha_stopping_spec.reduction_factor"}
    faults = refused(a_spec(convexAutomatedStoppingSpec={"learningRateParameterName": "rate"}))
    assert "no parameter" in faults["convex_automated_stopping_spec.learning_rate_parameter_name"]


def test_the_study_stopping_config_is_read_and_shown_again():
    given = {
        "shouldStopAsap": True,
        "minimumRuntimeConstraint": {"maxDuration": "60s"},
        "maximumRuntimeConstraint": {"endTime": "2027-01-01T00:00:00Z"},
        "minNumTrials": 5,
        "maxNumTrials": 50,
        "maxNumTrialsNoProgress": 10,
        "maxDurationNoProgress": "3600s",
    }
    spec = parsed(a_spec(studyStoppingConfig=given))
    assert spec.stopping == StudyStopping(
        asap=True,
        least_runtime=RuntimeLimit(length=timedelta(minutes=1)),
        most_runtime=RuntimeLimit(end_at=datetime(2027, 1, 1, tzinfo=UTC)),
        least_trials=5,
        most_trials=50,
        trials_without_progress=10,
        time_without_progress=timedelta(hours=1),
    )
    assert parsed(render_study_spec(spec)) == spec


def test_a_study_stopping_config_that_cannot_be_is_refused():
    two = [{"metricId": "a", "goal": 1}, {"metricId": "b", "goal": 2}]
    config = {
        "minNumTrials": 9,
        "maxNumTrials": 3,
        "maxNumTrialsNoProgress": 4,
        "minimumRuntimeConstraint": {},
        "maxDurationNoProgress": "1s",
    }
    assert set(refused(a_spec(metrics=two, studyStoppingConfig=config))) == {
        "study_stopping_config.max_num_trials",
        "study_stopping_config.max_num_trials_no_progress",
        "study_stopping_config.max_duration_no_progress",
        "study_stopping_config.minimum_runtime_constraint",
    }


@pytest.mark.parametrize("length", ["0s", "-5s"])
def test_a_study_that_would_end_before_its_first_trial_is_refused(length: str):
    config = {
        "minimumRuntimeConstraint": {"maxDuration": length},
        "maximumRuntimeConstraint": {"maxDuration": length},
        "maxDurationNoProgress": length,
    }
    assert refused(a_spec(studyStoppingConfig=config)) == dict.fromkeys(
        (
            "study_stopping_config.max_duration_no_progress",
            "study_stopping_config.minimum_runtime_constraint.max_duration",
            "study_stopping_config.maximum_runtime_constraint.max_duration",
        ),
        "must be longer than 0s, as 3600s is.",
    )


def test_what_is_only_echoed_is_shown_as_it_was_given():
    metric = {
        "metricId": "m",
        "goal": "MINIMIZE",
        "safetyConfig": {"safetyThreshold": 0.5, "desiredMinSafeTrialsFraction": 0.9},
    }
    given = a_spec(
        metrics=[metric],
        observationNoise="LOW",
        measurementSelectionType="LAST_MEASUREMENT",
        transferLearningConfig={"disableTransferLearning": True},
        priorStudyNames=["projects/p/locations/l/hyperparameterTuningJobs/77", "78"],
        metricPattern=r"m=(?P<value>\S+)",
    )
    spec = parsed(given)
    assert spec.prior_studies == tuple(given["priorStudyNames"])
    rendered = render_study_spec(spec)
    assert {name: rendered[name] for name in given} == {**given, "parameters": rendered["parameters"]}


def test_a_default_value_is_kept():
    given = a_spec(
        {"parameterId": "a", "integerValueSpec": {"minValue": "0", "maxValue": "5", "defaultValue": "0"}},
        {"parameterId": "b", "categoricalValueSpec": {"values": ["x", "y"], "defaultValue": "y"}},
    )
    first, second = render_study_spec(parsed(given))["parameters"]
    assert first["integerValueSpec"] == {"minValue": "0", "maxValue": "5", "defaultValue": "0"}
    assert second["categoricalValueSpec"]["defaultValue"] == "y"


def test_a_pattern_must_be_a_regular_expression_with_a_group():
    assert "group" in refused(a_spec(metricPattern="accuracy"))["metric_pattern"]
    for wrong, why in (
        ("(?P<value>[", "no regular expression"),
        (r"(?P<value>\d+)(?=x)", "look-around"),
        (r"(?P<value>\d)\1", "back-reference"),
        ("(?P<value>\n)", "one line"),
    ):
        assert why in refused(a_spec(metricPattern=wrong))["metric_pattern"]
    two = [{"metricId": "a", "goal": 1}, {"metricId": "b", "goal": 2}]
    assert "name" in refused(a_spec(metrics=two, metricPattern="(?P<value>.)"))["metric_pattern"]


def test_unknown_fields_are_refused_with_their_path():
    faults = refused(a_spec({**LR, "scale": 1}, maxTrialCount=3))
    assert set(faults) == {"maxTrialCount", "parameters[0].scale"}

"""Katib's Experiment, as a study."""

import copy
from typing import Any

import pytest

from tests.unit.wire.bodies import OFFER
from trainshed.core.errors import Invalid
from trainshed.core.tuning.search_space import Parameter, ParameterKind, Scale
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import Selection, StudyLimits
from trainshed.core.tuning.suggestion_port import Algorithm, Objective
from trainshed.dialects.kubernetes.experiment import named_groups
from trainshed.dialects.kubernetes.manifest import ExperimentManifest, parse_manifest

EXPERIMENT: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1beta1",
    "kind": "Experiment",
    "metadata": {"namespace": "kubeflow", "name": "random"},
    "spec": {
        "objective": {"type": "minimize", "goal": 0.001, "objectiveMetricName": "loss"},
        "algorithm": {
            "algorithmName": "random",
            "algorithmSettings": [{"name": "random_state", "value": "10"}],
        },
        "parallelTrialCount": 3,
        "maxTrialCount": 12,
        "maxFailedTrialCount": 3,
        "parameters": [
            {"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0.01", "max": "0.05"}},
            {"name": "layers", "parameterType": "int", "feasibleSpace": {"min": "2", "max": "5"}},
            {"name": "optimizer", "parameterType": "categorical", "feasibleSpace": {"list": ["sgd", "adam"]}},
        ],
        "trialTemplate": {
            "primaryContainerName": "training-container",
            "trialParameters": [
                {"name": "learningRate", "description": "Learning rate", "reference": "lr"},
                {"name": "numberLayers", "reference": "layers"},
                {"name": "optimizer", "reference": "optimizer"},
            ],
            "trialSpec": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "spec": {
                    "template": {
                        "spec": {
                            "containers": [
                                {
                                    "name": "training-container",
                                    "image": "trainshed/python:3",
                                    "command": [
                                        "python",
                                        "train.py",
                                        "--lr=${trialParameters.learningRate}",
                                        "--layers=${trialParameters.numberLayers}",
                                        "--optimizer=${trialParameters.optimizer}",
                                    ],
                                }
                            ],
                            "restartPolicy": "Never",
                        }
                    }
                },
            },
        },
    },
}


def changed(**changes: Any) -> dict[str, Any]:
    document = copy.deepcopy(EXPERIMENT)
    document["spec"].update(changes)
    return document


def parsed(document: dict[str, Any]) -> ExperimentManifest:
    wanted = parse_manifest(document, OFFER)
    assert isinstance(wanted, ExperimentManifest)
    return wanted


def faults(document: dict[str, Any]) -> set[str]:
    with pytest.raises(Invalid) as refused:
        parse_manifest(document, OFFER)
    return {violation.field for violation in refused.value.violations}


def test_an_experiment_is_a_study_with_its_job_as_the_template() -> None:
    wanted = parsed(EXPERIMENT)
    spec = wanted.experiment.spec
    assert spec.objectives == (Objective("loss", maximize=False),)
    assert spec.algorithm is Algorithm.RANDOM
    assert spec.stopping.target == 0.001
    assert wanted.experiment.limits == StudyLimits(trials=12, parallel=3, failed=3)
    assert wanted.experiment.seed == 10
    assert spec.space.parameters == (
        Parameter(id="lr", kind=ParameterKind.DOUBLE, low=0.01, high=0.05),
        Parameter(id="layers", kind=ParameterKind.INTEGER, low=2, high=5),
        Parameter(id="optimizer", kind=ParameterKind.CATEGORICAL, values=("sgd", "adam")),
    )
    [pool] = wanted.draft.spec.pools
    assert pool.command[2:] == (
        "--lr=${trialParameters.lr}",
        "--layers=${trialParameters.layers}",
        "--optimizer=${trialParameters.optimizer}",
    )
    assert wanted.manifest.name == "random"


def test_steps_and_distributions() -> None:
    parameters = [
        {
            "name": "lr",
            "parameterType": "double",
            "feasibleSpace": {"min": "0.1", "max": "0.3", "step": "0.1"},
        },
        {"name": "layers", "parameterType": "int", "feasibleSpace": {"min": "2", "max": "8", "step": "3"}},
        {
            "name": "optimizer",
            "parameterType": "double",
            "feasibleSpace": {"min": "0.001", "max": "1", "distribution": "logUniform"},
        },
    ]
    first, second, third = parsed(changed(parameters=parameters)).experiment.spec.space.parameters
    assert (first.kind, first.values) == (ParameterKind.DISCRETE, (0.1, 0.2, 0.3))
    assert second.values == (2.0, 5.0, 8.0)
    assert third.scale is Scale.LOG


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [("0", "1", "0.001"), ("0", "1e308", "0.1"), ("-1e308", "1e308", "1"), ("1", "0", "0.1")],
)
def test_a_step_that_gives_no_values_or_too_many_is_refused(low: str, high: str, step: str) -> None:
    document = changed()
    room = {"min": low, "max": high, "step": step}
    document["spec"]["parameters"][0]["feasibleSpace"] = room
    assert faults(document) == {"spec.parameters[0].feasibleSpace.step"}


def test_early_stopping_and_the_pattern_of_the_collector() -> None:
    katib = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
    spec = parsed(
        changed(
            earlyStopping={
                "algorithmName": "medianstop",
                "algorithmSettings": [
                    {"name": "start_step", "value": "5"},
                    {"name": "min_trials_required", "value": "2"},
                ],
            },
            metricsCollectorSpec={
                "collector": {"kind": "StdOut"},
                "source": {"filter": {"metricsFormat": [katib]}},
            },
        )
    ).experiment.spec
    rule = StoppingRule(kind=StoppingKind.MEDIAN, least_measurements=5, least_trials=2)
    assert spec.trial_stopping == rule
    assert spec.pattern == r"(?P<name>[\w|-]+)\s*=\s*(?P<value>[+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"


def test_early_stopping_waits_as_long_as_in_katib_where_the_file_does_not_say():
    rule = parsed(changed(earlyStopping={"algorithmName": "medianstop"})).experiment.spec.trial_stopping
    assert rule == StoppingRule(kind=StoppingKind.MEDIAN, least_measurements=4, least_trials=3)


def test_settings_that_are_not_known_are_told_and_wrong_ones_refused():
    settings = [{"name": "restart_strategy", "value": "ipop"}, {"name": "random_state", "value": "3"}]
    wanted = parsed(changed(algorithm={"algorithmName": "cmaes", "algorithmSettings": settings}))
    assert wanted.experiment.seed == 3
    note = "spec.algorithm.algorithmSettings[0] is ignored: 'restart_strategy' is not known here."
    assert note in wanted.notes
    wrong = [{"name": "start_step", "value": "soon"}]
    assert faults(changed(earlyStopping={"algorithmName": "medianstop", "algorithmSettings": wrong})) == {
        "spec.earlyStopping.algorithmSettings[0].value"
    }


def test_an_experiment_without_a_number_of_trials_is_told_how_many_are_run():
    document = changed()
    del document["spec"]["maxTrialCount"]
    wanted = parsed(document)
    assert wanted.experiment.limits.trials == 30
    assert "spec.maxTrialCount is not there: at most 30 trials are run." in wanted.notes
    assert not any("maxTrialCount" in note for note in parsed(EXPERIMENT).notes)


@pytest.mark.parametrize(
    ("strategy", "selection"),
    [("latest", Selection.LAST), ("min", Selection.BEST), (None, Selection.BEST)],
)
def test_the_best_value_of_a_trial_counts_unless_the_file_says_the_latest(
    strategy: str | None, selection: Selection
):
    rows = [{"name": "accuracy", "value": "max"}]
    rows += [{"name": "loss", "value": strategy}] if strategy else []
    objective = {**EXPERIMENT["spec"]["objective"], "metricStrategies": rows}
    assert parsed(changed(objective=objective)).experiment.spec.selection is selection


def test_the_worst_value_of_a_trial_cannot_count():
    rows = [{"name": "loss", "value": "max"}]
    objective = {**EXPERIMENT["spec"]["objective"], "metricStrategies": rows}
    assert faults(changed(objective=objective)) == {"spec.objective.metricStrategies[0].value"}


def test_groups_are_named_where_they_are_groups() -> None:
    assert named_groups(r"\((?:a)[(](b)(c)(d)") == r"\((?:a)[(](?P<name>b)(?P<value>c)(d)"


def test_everything_that_is_wrong_is_told_with_its_path() -> None:
    document = changed(
        objective={"type": "more"},
        algorithm={"algorithmName": "darts"},
        parallelTrialCount=0,
        earlyStopping={"algorithmName": "other"},
        metricsCollectorSpec={"collector": {"kind": "Custom"}},
    )
    document["spec"]["parameters"][0]["feasibleSpace"] = {"min": "x", "max": "1"}
    document["spec"]["trialTemplate"]["trialParameters"][2]["reference"] = "nobody"
    document["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    assert faults(document) == {
        "spec.objective.objectiveMetricName",
        "spec.objective.type",
        "spec.algorithm.algorithmName",
        "spec.parallelTrialCount",
        "spec.earlyStopping.algorithmName",
        "spec.metricsCollectorSpec.collector.kind",
        "spec.parameters[0].feasibleSpace.min",
        "spec.trialTemplate.trialParameters[2].reference",
        "spec.trialTemplate.trialParameters",
        "spec.trialTemplate.trialSpec.spec.template.spec.restartPolicy",
    }


def test_a_place_without_a_parameter_and_a_job_that_is_none_are_refused() -> None:
    document = changed()
    container = document["spec"]["trialTemplate"]["trialSpec"]["spec"]["template"]["spec"]["containers"][0]
    container["command"].append("${trialParameters.momentum}")
    assert faults(document) == {"spec.trialTemplate.trialSpec"}
    document = changed()
    document["spec"]["trialTemplate"]["trialSpec"] = {"apiVersion": "v1", "kind": "ImageCache"}
    assert "spec.trialTemplate.trialSpec.kind" in faults(document)
    document["spec"]["trialTemplate"].pop("trialSpec")
    assert faults(document) == {"spec.trialTemplate.trialSpec"}


def test_a_grid_needs_steps() -> None:
    assert faults(changed(algorithm={"algorithmName": "grid"})) == {"spec.parameters[0].feasibleSpace.step"}

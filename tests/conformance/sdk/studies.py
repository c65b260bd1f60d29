"""What people do with aiplatform's Vizier client, one small function each: nothing of it is replaced."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from typing import Any

from google.cloud import aiplatform_v1, aiplatform_v1beta1
from google.cloud.aiplatform import initializer
from google.cloud.aiplatform.vizier import Study, pyvizier

Reach = dict[str, Any]
GOALS = pyvizier.ObjectiveMetricGoal


def problem(metrics: dict[str, str], algorithm: str = "ALGORITHM_UNSPECIFIED", stopping: bool = False) -> Any:
    """A double, an integer, a list of numbers and a category; one of each."""
    config = pyvizier.StudyConfig()
    config.algorithm = pyvizier.Algorithm[algorithm]
    if stopping:
        config.automated_stopping_config = pyvizier.AutomatedStoppingConfig.decay_curve_stopping_config(
            use_steps=True
        )
    for name, goal in metrics.items():
        config.metric_information.append(pyvizier.MetricInformation(name=name, goal=GOALS[goal]))
    root = config.search_space.select_root()
    root.add_float_param("lr", 1e-4, 1.0, scale_type=pyvizier.ScaleType.LOG)
    root.add_int_param("layers", 1, 8)
    root.add_discrete_param("batch", [16, 32, 64])
    root.add_categorical_param("optimizer", ["adam", "sgd"])
    return config


def grid(metric: str) -> Any:
    config = pyvizier.StudyConfig()
    config.algorithm = pyvizier.Algorithm.GRID_SEARCH
    config.metric_information.append(pyvizier.MetricInformation(name=metric, goal=GOALS.MAXIMIZE))
    config.search_space.select_root().add_categorical_param("optimizer", ["adam", "sgd"])
    return config


def trial_told(trial: Any) -> dict[str, Any]:
    whole = trial.materialize()
    final = whole.final_measurement
    return {
        "uid": trial.uid,
        "name": trial.resource_name,
        "status": trial.status.name,
        "worker": whole.assigned_worker,
        "parameters": {name: value.value for name, value in trial.parameters.items()},
        "final": measurement_told(final) if final and final.metrics else None,
        "measurements": [measurement_told(one) for one in whole.measurements],
        "infeasible": whole.infeasibility_reason,
    }


def measurement_told(measurement: Any) -> dict[str, Any]:
    return {
        "steps": measurement.steps,
        "elapsed": measurement.elapsed_secs,
        "metrics": {name: metric.value for name, metric in measurement.metrics.items()},
    }


def measurement(value: dict[str, float], steps: int = 0, elapsed: float = 0.0) -> Any:
    return pyvizier.Measurement(metrics=value, steps=steps, elapsed_secs=elapsed)


def create(reach: Reach, name: str, metrics: dict[str, str], **more: Any) -> str:
    return str(Study.create_or_load(display_name=name, problem=problem(metrics, **more)).resource_name)


def create_grid(reach: Reach, name: str) -> str:
    return str(Study.create_or_load(display_name=name, problem=grid("accuracy")).resource_name)


def score(point: dict[str, Any]) -> float:
    """Best at lr=0.1 with few layers and adam."""
    near = -((point["lr"] - 0.1) ** 2) - 0.01 * point["layers"]
    return float(near + (0.1 if point["optimizer"] == "adam" else 0.0))


def tune(reach: Reach, study: str, trials: int) -> list[dict[str, Any]]:
    """The loop of the documentation: suggest, measure, ask whether to stop, complete."""
    told: list[dict[str, Any]] = []
    opened = Study(study)
    for _ in range(trials):
        (trial,) = opened.suggest(count=1, worker="worker-0")
        point = {name: value.value for name, value in trial.parameters.items()}
        stops: list[bool] = []
        for step in (1, 2, 3):
            trial.add_measurement(measurement({"accuracy": score(point) - 0.1 / step}, step, 1.5 * step))
            stops.append(trial.should_stop())
        final = trial.complete(measurement({"accuracy": score(point)}, 4, 6.25))
        told.append(trial_told(trial) | {"stops": stops, "completed": measurement_told(final)})
    return told


def suggest(reach: Reach, study: str, worker: str, count: int = 1) -> list[dict[str, Any]]:
    return [trial_told(trial) for trial in Study(study).suggest(count=count, worker=worker)]


def measure(reach: Reach, study: str, uid: int, **given: Any) -> dict[str, Any]:
    trial = Study(study).get_trial(uid)
    trial.add_measurement(measurement(**given))
    return trial_told(trial)


def complete(
    reach: Reach, study: str, uid: int, value: dict[str, float] | None = None, reason: str | None = None
) -> dict[str, Any]:
    trial = Study(study).get_trial(uid)
    final = measurement(value) if value is not None else None
    trial.complete(final, infeasible_reason=reason)
    return trial_told(trial)


def should_stop(reach: Reach, study: str, uid: int) -> bool:
    return bool(Study(study).get_trial(uid).should_stop())


def delete_trial(reach: Reach, study: str, uid: int) -> None:
    Study(study).get_trial(uid).delete()


def trials(reach: Reach, study: str) -> list[int]:
    return [trial.uid for trial in Study(study).trials()]


def trial(reach: Reach, study: str, uid: int) -> dict[str, Any]:
    return trial_told(Study(study).get_trial(uid))


def optimal(reach: Reach, study: str) -> list[dict[str, Any]]:
    return [trial_told(one) for one in Study(study).optimal_trials()]


def names(reach: Reach) -> list[str]:
    return [study.display_name for study in Study.list()]


def from_uid(reach: Reach, uid: str) -> str:
    return str(Study.from_uid(uid).display_name)


def config(reach: Reach, study: str) -> dict[str, Any]:
    """The study's configuration, read back into the SDK's own words."""
    found = pyvizier.StudyConfig.from_proto(Study(study)._gca_resource.study_spec)
    return {
        "metrics": {metric.name: metric.goal.name for metric in found.metric_information},
        "algorithm": found.algorithm.name,
        "parameters": [parameter.name for parameter in found.search_space.parameters],
    }


def delete(reach: Reach, study: str) -> None:
    Study(study).delete()


def _client(beta: bool = False) -> Any:
    version = aiplatform_v1beta1 if beta else aiplatform_v1
    config = initializer.global_config
    options = config.get_client_options(location_override="us-central1")
    return version.VizierServiceClient(
        transport="rest", credentials=config.credentials, client_options=options
    )


def lookup(reach: Reach, name: str) -> str:
    parent = f"projects/{reach['project']}/locations/us-central1"
    return str(_client().lookup_study(request={"parent": parent, "display_name": name}).name)


def state(reach: Reach, study: str) -> str:
    return str(_client().get_study(name=study).state.name)


def create_trial(reach: Reach, study: str, parameters: dict[str, Any]) -> str:
    values = [{"parameter_id": name, "value": value} for name, value in parameters.items()]
    made = _client().create_trial(parent=study, trial=aiplatform_v1.Trial(parameters=values))
    return f"{made.name} {made.state.name}"


def stop_trial(reach: Reach, trial: str) -> str:
    return str(_client().stop_trial(request={"name": trial}).state.name)


def pages(reach: Reach, study: str, size: int) -> list[list[str]]:
    found = _client().list_trials(request={"parent": study, "page_size": size})
    return [[trial.id for trial in page.trials] for page in found.pages]


def suggest_as_beta(reach: Reach, study: str) -> dict[str, Any]:
    """The gapic client of v1beta1, whose operations have types of their own."""
    client = _client(beta=True)
    asked = {"parent": study, "suggestion_count": 1, "client_id": "beta"}
    operation = client.suggest_trials(request=asked)
    trials = operation.result().trials
    check = client.check_trial_early_stopping_state(request={"trial_name": trials[0].name})
    return {
        "trials": [trial.name for trial in trials],
        "client": operation.metadata.client_id,
        "stop": check.result().should_stop,
    }


def page(reach: Reach, block: str) -> list[int]:
    """A block of the guide, behind its `init`. The best trials."""
    names: dict[str, Any] = {}
    exec(block, names)
    return [best.uid for best in names["study"].optimal_trials()]

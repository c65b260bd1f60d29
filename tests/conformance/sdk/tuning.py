"""What people do with aiplatform.HyperparameterTuningJob, one small function each."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import time
from typing import Any

import gapic
from google.cloud import aiplatform
from google.cloud.aiplatform import hyperparameter_tuning as hpt
from google.cloud.aiplatform_v1.types import study as study_types

Reach = dict[str, Any]
PATIENCE = 60


def parameters() -> dict[str, Any]:
    """Every kind, with conditions on three of them."""
    momentum = hpt.DoubleParameterSpec(
        min=0.0, max=0.9, scale="linear", parent_values=["sgd"], conditional_parameter_spec=None
    )
    width = hpt.IntegerParameterSpec(min=8, max=16, scale="linear", parent_values=[2])
    warmup = hpt.DoubleParameterSpec(min=0.1, max=0.5, scale="unspecified", parent_values=[64])
    return {
        "lr": hpt.DoubleParameterSpec(min=0.001, max=0.1, scale="log"),
        "optimizer": hpt.CategoricalParameterSpec(
            values=["sgd", "adam"], conditional_parameter_spec={"momentum": momentum}
        ),
        "layers": hpt.IntegerParameterSpec(
            min=1, max=2, scale="linear", conditional_parameter_spec={"width": width}
        ),
        "batch": hpt.DiscreteParameterSpec(
            values=[32, 64], scale="linear", conditional_parameter_spec={"warmup": warmup}
        ),
        "dropout": hpt.DoubleParameterSpec(min=0.5, max=0.9, scale="reverse_log"),
    }


def made(reach: Reach, name: str, pools: list[Any], spec: Any = None, **more: Any) -> Any:
    inner = aiplatform.CustomJob(display_name=name, worker_pool_specs=pools, **more.pop("custom", {}))
    return aiplatform.HyperparameterTuningJob(
        display_name=name,
        custom_job=inner,
        metric_spec=more.pop("metrics", {"accuracy": "maximize"}),
        parameter_spec=spec or parameters(),
        max_trial_count=more.pop("trials", 2),
        parallel_trial_count=more.pop("parallel", 2),
        **more,
    )


def told(job: Any) -> dict[str, Any]:
    return {
        "resource_name": job.resource_name,
        "display_name": job.display_name,
        "state": job.state.name,
        "labels": dict(job.labels or {}),
        "error": job.error and job.error.message,
    }


def trial(of: Any) -> dict[str, Any]:
    return {
        "id": of.id,
        "state": of.state.name,
        "parameters": {row.parameter_id: row.value for row in of.parameters},
        "final": {row.metric_id: row.value for row in of.final_measurement.metrics},
        "measurements": [
            {"step": item.step_count, **{row.metric_id: row.value for row in item.metrics}}
            for item in of.measurements
        ],
        "seconds": (of.end_time - of.start_time).total_seconds() if of.end_time else None,
        "job": of.custom_job,
        "infeasible": of.infeasible_reason,
    }


def run(reach: Reach, name: str, pools: list[Any], **more: Any) -> dict[str, Any]:
    job = made(reach, name, pools, **more)
    job.run()
    spec = type(job._gca_resource).to_dict(job._gca_resource, use_integers_for_enums=False)["study_spec"]
    return told(job) | {"trials": [trial(of) for of in job.trials], "spec": spec}


def submit(reach: Reach, name: str, pools: list[Any], **more: Any) -> dict[str, Any]:
    job = made(reach, name, pools, **more)
    job.run(sync=False)
    job.wait_for_resource_creation()
    return told(job)


def get(reach: Reach, name: str) -> dict[str, Any]:
    return told(aiplatform.HyperparameterTuningJob.get(name))


def find(reach: Reach, filter: str) -> list[Any]:
    jobs = aiplatform.HyperparameterTuningJob.list(filter=filter)
    return [[job.display_name, len(job.trials)] for job in jobs]


def cancel(reach: Reach, name: str) -> dict[str, Any]:
    job = aiplatform.HyperparameterTuningJob.get(name)
    job.cancel()
    deadline = time.monotonic() + PATIENCE
    while job.state.name != "JOB_STATE_CANCELLED" and time.monotonic() < deadline:
        time.sleep(0.1)
    return told(job)


def delete(reach: Reach, name: str) -> None:
    aiplatform.HyperparameterTuningJob.get(name).delete(sync=True)


def with_stopping(reach: Reach, name: str, pools: list[Any]) -> dict[str, Any]:
    """By the generated client: what the high-level class has no words for."""
    spec = study_types.StudySpec(
        metrics=[{"metric_id": "accuracy", "goal": "MAXIMIZE"}],
        parameters=[{"parameter_id": "lr", "double_value_spec": {"min_value": 0, "max_value": 1}}],
        convex_automated_stopping_spec={"max_step_count": 10, "use_elapsed_duration": True},
        study_stopping_config={
            "max_num_trials": 5,
            "maximum_runtime_constraint": {"max_duration": {"seconds": 600}},
            "should_stop_asap": False,
        },
    )
    job = {
        "display_name": name,
        "study_spec": spec,
        "max_trial_count": 1,
        "parallel_trial_count": 1,
        "trial_job_spec": {"worker_pool_specs": pools},
    }
    api = gapic.client(reach)
    made_job = api.create_hyperparameter_tuning_job(parent=gapic.parent(reach), hyperparameter_tuning_job=job)
    read = api.get_hyperparameter_tuning_job(name=made_job.name)
    return {"name": read.name, "spec": str(read.study_spec)}

"""What people do with aiplatform's training jobs and the models they give, one small function each."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import os
import tempfile
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

import jobs
from buckets import bucket_of, pointed_at
from google.cloud import aiplatform
from google.cloud.aiplatform import training_jobs

Reach = dict[str, Any]
PATIENCE = 60
ENDED = {f"PIPELINE_STATE_{word}" for word in ("SUCCEEDED", "FAILED", "CANCELLED")}
SERVING = "trainshed/sklearn:1"

# run() looks at the pipeline every five seconds; nothing else about it is changed.
training_jobs._JOB_WAIT_TIME = 0.3


@contextmanager
def staged(reach: Reach) -> Iterator[str]:
    """A bucket to stage in, and a folder with nothing else in it, as a person would have both."""
    here = os.getcwd()
    with pointed_at(reach), tempfile.TemporaryDirectory() as folder:
        bucket_of(reach, "staging")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(here)


def container(name: str, image: str, source: str, **more: Any) -> Any:
    return aiplatform.CustomContainerTrainingJob(
        display_name=name, container_uri=image, command=["python", "-c", source], **more
    )


def told(job: Any) -> dict[str, Any]:
    backing = job._gca_resource.training_task_metadata.get("backingCustomJob")
    return jobs.told(job) | {"backing": backing}


def model_told(model: Any) -> dict[str, Any] | None:
    if model is None:
        return None
    return {
        "resource_name": model.resource_name,
        "versioned": model.versioned_resource_name,
        "display_name": model.display_name,
        "description": model.description,
        "uri": model.uri,
        "version": model.version_id,
        "aliases": list(model.version_aliases),
        "labels": dict(model.labels or {}),
        "image": model.container_spec.image_uri,
        "route": model.container_spec.predict_route,
        "ports": [port.container_port for port in model.container_spec.ports],
        "times": [bool(model.create_time), bool(model.update_time)],
        "pipeline": model._gca_resource.training_pipeline,
    }


def _run(job: Any, **more: Any) -> dict[str, Any]:
    """Run it to its end, in either way, and tell what there is to know."""
    model = job.run(**more)
    if more.get("sync") is False:
        job.wait()
        model = job.get_model() if more.get("model_display_name") else None
    return told(job) | {
        "error": job.error and job.error.message,
        "times": [bool(job.create_time), bool(job.start_time), bool(job.end_time), bool(job.update_time)],
        "model": model_told(model),
    }


def run(reach: Reach, name: str, image: str, source: str, made: Any = None, **more: Any) -> dict[str, Any]:
    return _run(container(name, image, source, **(made or {})), **more)


def submit(reach: Reach, name: str, image: str, source: str, made: Any = None, **more: Any) -> dict[str, Any]:
    job = container(name, image, source, **(made or {}))
    job.submit(**more)
    return told(job)


def script(reach: Reach, name: str, image: str, source: str, made: Any = None, **more: Any) -> dict[str, Any]:
    """CustomTrainingJob: a script of this folder, packed and staged by the SDK."""
    with staged(reach) as folder:
        path = os.path.join(folder, "task.py")
        with open(path, "w") as file:
            file.write(source)
        job = aiplatform.CustomTrainingJob(
            display_name=name, script_path=path, container_uri=image, **(made or {})
        )
        return _run(job, **more)


def package(
    reach: Reach, name: str, image: str, sdist: str, module: str, made: Any = None, **more: Any
) -> dict[str, Any]:
    """CustomPythonPackageTrainingJob: a package somebody put into a bucket."""
    with staged(reach):
        blob = bucket_of(reach, "staging").blob(f"packages/{os.path.basename(sdist)}")
        blob.upload_from_filename(sdist)
        job = aiplatform.CustomPythonPackageTrainingJob(
            display_name=name,
            python_package_gcs_uri=f"gs://staging/{blob.name}",
            python_module_name=module,
            container_uri=image,
            **(made or {}),
        )
        return _run(job, **more)


def missing_package(reach: Reach, name: str, image: str) -> dict[str, Any]:
    with staged(reach):
        job = aiplatform.CustomPythonPackageTrainingJob(
            display_name=name,
            python_package_gcs_uri="gs://staging/nowhere/trainer-0.1.tar.gz",
            python_module_name="trainer.task",
            container_uri=image,
        )
        return _run(job)


def content(reach: Reach, bucket: str, name: str) -> str:
    """An object's text: what a program wrote under /gcs is there when its job has ended."""
    with pointed_at(reach):
        return str(bucket_of(reach, bucket).blob(name).download_as_text())


def local_script(reach: Reach, name: str, image: str, source: str, **more: Any) -> dict[str, Any]:
    """CustomJob.from_local_script."""
    with staged(reach) as folder:
        path = os.path.join(folder, "task.py")
        with open(path, "w") as file:
            file.write(source)
        job = aiplatform.CustomJob.from_local_script(
            display_name=name, script_path=path, container_uri=image, **more
        )
        job.run()
        return {"resource_name": job.resource_name, "state": job.state.name}


def get(reach: Reach, name: str, kind: str = "CustomContainerTrainingJob") -> dict[str, Any]:
    return told(getattr(aiplatform, kind).get(name))


def resource(reach: Reach, name: str) -> Any:
    found = aiplatform.CustomContainerTrainingJob.get(name)._gca_resource
    return type(found).to_dict(found, use_integers_for_enums=False)


def find(reach: Reach, filter: str, order_by: str | None = None) -> list[str]:
    found = aiplatform.CustomContainerTrainingJob.list(filter=filter, order_by=order_by)
    return [job.display_name for job in found]


def wait(reach: Reach, name: str) -> dict[str, Any]:
    """By looking: the SDK's own way to block stumbles over a job it got by name that has not ended yet."""
    job = aiplatform.CustomContainerTrainingJob.get(name)
    _until(job, ENDED)
    return told(job)


def model_of(reach: Reach, name: str) -> dict[str, Any] | None:
    return model_told(aiplatform.CustomContainerTrainingJob.get(name).get_model())


def delete(reach: Reach, name: str) -> None:
    aiplatform.CustomContainerTrainingJob.get(name).delete(sync=True)


def _until(job: Any, states: Container[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while job.state.name not in states and time.monotonic() < deadline:
        time.sleep(0.05)


def cancel_while_running(reach: Reach, name: str, image: str, source: str) -> dict[str, Any]:
    job = container(name, image, source)
    job.submit()
    _until(job, {"PIPELINE_STATE_RUNNING"})
    job.cancel()
    try:
        job._block_until_complete()
    except RuntimeError as error:
        return told(job) | {"raised": str(error)}
    return told(job)


def web_access(reach: Reach, name: str, image: str, source: str) -> dict[str, Any]:
    """Submits with a shell, waits until it runs, and reads where the shells are; then cancels."""
    job = container(name, image, source)
    job.submit(enable_web_access=True, replica_count=2)
    _until(job, {"PIPELINE_STATE_RUNNING"})
    uris = dict(job.web_access_uris)
    inside = dict(job._gca_resource.training_task_metadata.get("webAccessUris") or {})
    job.cancel()
    return {"uris": uris, "inside": inside}


def models(reach: Reach, filter: str) -> list[str]:
    return [model.display_name for model in aiplatform.Model.list(filter=filter)]


def model(reach: Reach, name: str, version: str | None = None) -> dict[str, Any] | None:
    return model_told(aiplatform.Model(name, version=version))


def delete_model(reach: Reach, name: str) -> None:
    aiplatform.Model(name).delete(sync=True)


def automl(reach: Reach, name: str) -> None:
    """What other training jobs send, without the dataset that the SDK would look up first."""
    job = aiplatform.AutoMLImageTrainingJob(display_name=name, prediction_type="classification")
    job._run_job(
        training_task_definition=training_jobs.schema.training_job.definition.automl_image_classification,
        training_task_inputs={"budgetMilliNodeHours": 8000},
        dataset=None,
        training_fraction_split=None,
        validation_fraction_split=None,
        test_fraction_split=None,
        model=None,
    )

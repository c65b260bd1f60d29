"""What people do with aiplatform.CustomJob, one small function each."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import time
from typing import Any

from google.cloud import aiplatform
from google.cloud.aiplatform_v1.types import Scheduling

Reach = dict[str, Any]
PATIENCE = 60


def made(name: str, pools: list[Any], **more: Any) -> Any:
    return aiplatform.CustomJob(display_name=name, worker_pool_specs=pools, **more)


def told(job: Any) -> dict[str, Any]:
    return {
        "resource_name": job.resource_name,
        "name": job.name,
        "display_name": job.display_name,
        "state": job.state.name,
        "labels": dict(job.labels or {}),
    }


def submit(reach: Reach, name: str, pools: list[Any], **more: Any) -> dict[str, Any]:
    made_with = {k: more.pop(k) for k in ("labels", "base_output_dir") if k in more}
    if "scheduling_strategy" in more:
        more["scheduling_strategy"] = Scheduling.Strategy[more["scheduling_strategy"]]
    job = made(name, pools, **made_with)
    job.submit(**more)
    return told(job)


def run(reach: Reach, name: str, pools: list[Any], **more: Any) -> dict[str, Any]:
    job = made(name, pools)
    job.run(**more)
    return told(job) | {
        "error": job.error and job.error.message,
        "times": [bool(job.create_time), bool(job.start_time), bool(job.end_time), bool(job.update_time)],
    }


def get(reach: Reach, name: str) -> dict[str, Any]:
    return told(aiplatform.CustomJob.get(name))


def spec(reach: Reach, name: str) -> Any:
    return type(aiplatform.CustomJob.get(name)._gca_resource).to_dict(
        aiplatform.CustomJob.get(name)._gca_resource, use_integers_for_enums=False
    )


def find(reach: Reach, filter: str, order_by: str | None = None) -> list[str]:
    return [job.display_name for job in aiplatform.CustomJob.list(filter=filter, order_by=order_by)]


def wait(reach: Reach, name: str, state: str = "JOB_STATE_SUCCEEDED") -> dict[str, Any]:
    job = aiplatform.CustomJob.get(name)
    deadline = time.monotonic() + PATIENCE
    while job.state.name != state and time.monotonic() < deadline:
        time.sleep(0.1)
    return told(job)


def cancel(reach: Reach, name: str) -> None:
    aiplatform.CustomJob.get(name).cancel()


def delete(reach: Reach, name: str) -> None:
    aiplatform.CustomJob.get(name).delete(sync=True)


def web_access(reach: Reach, name: str, pools: list[Any]) -> dict[str, Any]:
    """Submits with a shell, waits until it runs, and reads where the shells are; then cancels."""
    job = made(name, pools)
    job.submit(enable_web_access=True)
    deadline = time.monotonic() + PATIENCE
    while job.state.name != "JOB_STATE_RUNNING" and time.monotonic() < deadline:
        time.sleep(0.05)
    uris = dict(job.web_access_uris)
    job.cancel()
    return uris


def cancel_while_running(reach: Reach, name: str, pools: list[Any]) -> dict[str, Any]:
    """The whole life of a cancelled job, as a script would have it."""
    job = made(name, pools)
    job.submit()
    while job.state.name != "JOB_STATE_RUNNING":
        time.sleep(0.05)
    job.cancel()
    try:
        job._block_until_complete()
    except RuntimeError as error:
        return told(job) | {"raised": str(error)}
    return told(job)

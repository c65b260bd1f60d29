"""What rows of our own lists have beyond Google's fields, and the other answers about many jobs.

`api/job_lists.py` adds these fields only where a client asks for our own view: Google's clients fail on
unknown fields.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from trainshed.core.jobs.job import Job, JobState
from trainshed.core.jobs.limits import without_gpus
from trainshed.core.jobs.replica import Phase
from trainshed.core.ledger import ResourceTime
from trainshed.core.query import CUSTOM_JOB
from trainshed.core.queue.guarantee import Standing
from trainshed.wire import enums
from trainshed.wire.job_status import render_waiting


def render_job_row(job: Job, used: ResourceTime, standing: Standing | None = None) -> dict[str, Any]:
    """The fields beyond Google's, without the progress."""
    status = job.status
    row: dict[str, Any] = {"kind": job.kind or CUSTOM_JOB, "replicas": _replicas(job), "version": job.version}
    if why := sentence_of(job):
        row["why"] = why
    if status.waiting is not None:
        row["waiting"] = render_waiting(status.waiting)
    if lacks := _lacks(job):
        row["lacks"] = lacks
    if used.cpu_seconds or used.gpu_seconds:
        row["usage"] = {"cpuSeconds": round(used.cpu_seconds, 3), "gpuSeconds": round(used.gpu_seconds, 3)}
    if standing is not None:
        row["standing"] = standing.value
    if job.submitter:
        row["submitter"] = job.submitter
    return row


def sentence_of(job: Job) -> str:
    """Why a job waits, hangs or has failed, in a sentence; empty for one that does none of these."""
    status = job.status
    if status.failure is not None and job.is_final:
        verdict = status.failure.verdict
        return verdict.summary if verdict is not None else status.failure.message
    if status.waiting is not None:
        return status.waiting.message
    return status.hang.message if status.hang is not None else ""


def render_counts(by_state: Mapping[JobState, int]) -> dict[str, int]:
    """Only the states that jobs are in."""
    return {enums.state_name(state): number for state, number in by_state.items() if number}


def render_projects(projects: Mapping[str, Mapping[JobState, int]]) -> list[dict[str, Any]]:
    return [
        {"projectId": project, "jobCount": sum(by_state.values()), "byState": render_counts(by_state)}
        for project, by_state in projects.items()
    ]


def render_values(values: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"value": value, "jobCount": number} for value, number in values]


def _replicas(job: Job) -> dict[str, int]:
    running = sum(replica.phase is Phase.RUNNING for replica in job.status.replicas)
    return {"running": running, "wanted": sum(pool.replicas for pool in job.spec.pools)}


def _lacks(job: Job) -> str:
    """Which requested GPUs a running job lacks."""
    admission = job.status.admission
    return "" if admission is None or job.is_final else without_gpus(job.spec, admission.placements)

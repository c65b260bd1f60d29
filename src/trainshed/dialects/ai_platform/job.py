"""A job of AI Platform Training (`ml` v1): parses a request into a draft, and renders a core Job.

`--job-dir DIR` is appended to the program's arguments. The tier is CUSTOM where machines or images are given
without a tier. Packages run in the runtime nearest to `runtimeVersion` and `pythonVersion`. A field that is
accepted but has no effect becomes a remark, a warning in the job's history. A refusal lists every violation.
This module reads neither running jobs nor the clock.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from trainshed.core.jobs.job import Job, JobSpec, JobState
from trainshed.core.jobs.job import Scheduling as Limits
from trainshed.core.jobs.task_names import task_called, with_task_names
from trainshed.core.ports import Operation
from trainshed.core.tuning.study import Study, StudyLimits, StudySpec, StudyState, Trial
from trainshed.core.view import place_fault
from trainshed.dialects.ai_platform.origin import TrainingJobRecord, record_from, record_of
from trainshed.dialects.ai_platform.roles import Translated, parse_cluster
from trainshed.dialects.ai_platform.schema import TrainingInput, TrainingScheduling
from trainshed.dialects.ai_platform.schema import TrainingJobBody as Body
from trainshed.dialects.ai_platform.tuning import parse_tuning, render_tuning_output
from trainshed.wire import base, job_schema
from trainshed.wire.custom_job import render_error, web_access_uris
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels
from trainshed.wire.pool import Offer
from trainshed.wire.scalars import shown, time_text
from trainshed.wire.scheduling import parse_scheduling

RUNTIME = "trainshed/tensorflow"
# There a job ended with its master, and TensorFlow workers that serve never end by themselves. The other
# replicas have this long to finish once the master has succeeded.
DRAIN = timedelta(seconds=10)
LONGEST_ID = 128
LONGEST_REGION = 63
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,2}")
_PLACES = re.compile(r"(gs://|s3://|file:///|/).+", re.DOTALL)
_INPUT = "training_input"
_METADATA = "type.googleapis.com/google.cloud.ml.v1.OperationMetadata"
_EMPTY = "type.googleapis.com/google.protobuf.Empty"

STATES: Mapping[JobState, str] = {state: state.value for state in JobState} | {JobState.PENDING: "PREPARING"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJobDraft:
    """A requested job: valid, without an id."""

    job_id: str
    region: str
    spec: JobSpec
    training_input: Mapping[str, Any]
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    remarks: tuple[str, ...] = ()
    tuning: tuple[StudySpec, StudyLimits] | None = None  # None: its program runs once
    resumed: str = ""  # the jobId of an earlier job whose trials are known from the start


def parse_training_job(body: Mapping[str, object], offer: Offer) -> TrainingJobDraft:
    """The requested job; Invalid with every violation."""
    faults = Faults("job")
    job = base.read(Body, body, faults)
    _check_id(job.job_id, faults)
    check_labels(job.labels, "labels", faults)
    if job.prediction_input is not None:
        faults.lose("prediction_input", "cannot be used: this server trains, it has no batch prediction.")
    if job.training_input is None:
        faults.lose(_INPUT, "is required.")
    given = job.training_input or TrainingInput()
    _check_region(given.region, faults)
    if given.job_dir and not _PLACES.fullmatch(given.job_dir):
        faults.add(
            f"{_INPUT}.job_dir",
            "must begin with gs://, s3:// or file:// and name a place there, or be an absolute path, "
            f"not {shown(given.job_dir)}.",
        )
    elif fault := place_fault(given.job_dir):
        faults.add(f"{_INPUT}.job_dir", fault)
    tuning = None
    if given.hyperparameters is not None:
        tuning = parse_tuning(given.hyperparameters, f"{_INPUT}.hyperparameters", faults)
    cluster = parse_cluster(given, _runtime(given, faults), offer, faults)
    spec = JobSpec(
        pools=cluster.pools,
        scheduling=_scheduling(given.scheduling, faults),
        output=given.job_dir,
        web_access=given.enable_web_access,
        extras=_echoed(given),
    )
    faults.settle()
    return TrainingJobDraft(
        job_id=job.job_id,
        region=given.region,
        spec=spec,
        training_input=base.write(given) | {"scaleTier": cluster.tier},
        labels=dict(job.labels),
        remarks=cluster.remarks,
        tuning=tuning,
        resumed=given.hyperparameters.resume_previous_job_id if given.hyperparameters else "",
    )


def parse_labels(body: Mapping[str, object]) -> tuple[Mapping[str, str], str]:
    """The full set of labels in an update, and the etag it was based on, if given."""
    faults = Faults("job")
    job = base.read(Body, body, faults)
    check_labels(job.labels, "labels", faults)
    faults.settle()
    return dict(job.labels), job.etag


def _check_id(job_id: str, faults: Faults) -> None:
    if not job_id:
        faults.add("job_id", "is required.")
    elif len(job_id) > LONGEST_ID or not _ID.fullmatch(job_id):
        faults.add(
            "job_id",
            f"must have at most {LONGEST_ID} letters, digits and underscores, a letter first, "
            f"not {shown(job_id)}.",
        )


def _check_region(region: str, faults: Faults) -> None:
    path = f"{_INPUT}.region"
    if not region:
        faults.add(path, "is required, for example us-central1.")
    elif region == "-" or "/" in region or not region.isprintable() or len(region) > LONGEST_REGION:
        faults.add(path, f"must be a name without slashes, at most {LONGEST_REGION} letters long.")


def _runtime(given: TrainingInput, faults: Faults) -> str:
    """The image name for a runtime version. The runtimes resolve it and report a version that differs."""
    for name in ("runtime_version", "python_version"):
        version: str = getattr(given, name)
        if version and not _VERSION.fullmatch(version):
            faults.add(f"{_INPUT}.{name}", f"must be a version such as 2.11, not {shown(version)}.")
    if faults.under(f"{_INPUT}.runtime_version") or faults.under(f"{_INPUT}.python_version"):
        return RUNTIME
    python = f"-py{given.python_version}" if given.python_version else ""
    return f"{RUNTIME}:{given.runtime_version or 'latest'}{python}"


def _scheduling(given: TrainingScheduling | None, faults: Faults) -> Limits:
    if given is None:
        return Limits(drain=DRAIN)
    lengths = {"timeout": given.max_running_time, "max_wait_duration": given.max_wait_time}
    given_lengths = {name: length for name, length in lengths.items() if length is not None}
    path = f"{_INPUT}.scheduling"
    names = {
        "scheduling.timeout": f"{path}.max_running_time",
        "scheduling.max_wait_duration": f"{path}.max_wait_time",
    }
    limits = job_schema.SchedulingSpec(priority=given.priority, **given_lengths)
    return replace(parse_scheduling(limits, "scheduling", Translated(faults, names)), drain=DRAIN)


def _echoed(given: TrainingInput) -> dict[str, object]:
    """Fields that the newer API has too, so that the job shows them there."""
    fields = {"serviceAccount": given.service_account, "network": given.network}
    return {name: value for name, value in fields.items() if value}


def render_training_job(job: Job, *, base_url: str = "") -> dict[str, Any]:
    """The job as AI Platform Training answers it."""
    record, status = _record(job), job.status
    answer: dict[str, Any] = {
        "jobId": record.job_id,
        "trainingInput": dict(record.training_input),
        "createTime": time_text(job.created_at),
    }
    if status.started_at is not None:
        answer["startTime"] = time_text(status.started_at)
    if job.is_final and status.ended_at is not None:
        answer["endTime"] = time_text(status.ended_at)
    answer["state"] = STATES[status.state]
    if error := render_error(job):
        answer["errorMessage"] = with_task_names(job, str(error["message"]))
    answer["trainingOutput"] = _output(job, record, base_url)
    if job.labels:
        answer["labels"] = dict(job.labels)
    answer["etag"] = etag(job)
    return answer


def render_training_study(study: Study, trials: Sequence[Trial]) -> dict[str, Any]:
    """A job that tunes, with its trials."""
    record, status = record_from(study.record), study.status
    answer: dict[str, Any] = {
        "jobId": record.job_id,
        "trainingInput": dict(record.training_input),
        "createTime": time_text(study.created_at),
    }
    if status.started_at is not None:
        answer["startTime"] = time_text(status.started_at)
    if study.is_final and status.ended_at is not None:
        answer["endTime"] = time_text(status.ended_at)
    answer["state"] = STATES[study.job_state]
    if status.state in (StudyState.FAILED, StudyState.CANCELLED) and status.message:
        answer["errorMessage"] = status.message
    answer["trainingOutput"] = render_tuning_output(study, trials)
    if study.labels:
        answer["labels"] = dict(study.labels)
    answer["etag"] = etag(study)
    return answer


def etag(job: Job | Study) -> str:
    """Covers only what a client can change, the labels. State changes do not alter it."""
    content = json.dumps([job.id, sorted(job.labels.items())]).encode()
    return base64.b64encode(hashlib.blake2b(content, digest_size=9).digest()).decode()


def _record(job: Job) -> TrainingJobRecord:
    record = record_of(job)
    if record is None:
        raise LookupError(f"job {job.id} is not one of the older API")
    return record


def _output(job: Job, record: TrainingJobRecord, base_url: str) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if tuning := record.training_input.get("hyperparameters"):  # older releases ran its program once
        answer["isHyperparameterTuningJob"] = True
        if tag := tuning.get("hyperparameterMetricTag"):
            answer["hyperparameterMetricTag"] = tag
    if job.spec.web_access and job.status.state is JobState.RUNNING:
        shells = web_access_uris(job, base_url)
        answer["webAccessUris"] = {task_called(job, task): uri for task, uri in shells.items()}
    return answer


def render_ml_operation(operation: Operation) -> dict[str, Any]:
    """An operation under its name here, which has no location."""
    at = time_text(operation.created_at)
    _, project, *_, identity = operation.name.split("/")
    return {
        "name": f"projects/{project}/operations/{identity}",
        "metadata": {"@type": _METADATA, "createTime": at, "startTime": at, "endTime": at},
        "done": True,
        "response": {"@type": _EMPTY},
    }

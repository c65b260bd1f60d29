"""What is kept of a request of AI Platform Training, and its words for the job and its replicas. Pure.

Its pools are, by position, the master, the workers, the parameter servers and the evaluators. The record has
the jobId, which is unique in the project, and the training input as sent. Nothing is decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainshed.core.jobs.job import Job, Pool
from trainshed.core.jobs.origin import Origin
from trainshed.core.tuning.trial_job import with_trial_words

KIND = "legacy"  # as stored and in answers; never change it
CHIEF, MASTER = "chief", "master"
ROLES = (MASTER, "worker", "ps", "evaluator")  # by position

# Stored as an idempotency key. Clients send theirs in a header, which cannot have a line break.
_KEY = "ml.jobs\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJobRecord:
    job_id: str
    training_input: Mapping[str, Any]
    request: str = ""  # the idempotency key it was created with, if any

    def as_json(self) -> dict[str, Any]:
        """What is stored; `record_from` reads it."""
        record = {"jobId": self.job_id, "trainingInput": dict(self.training_input)}
        return record | ({"request": self.request} if self.request else {})

    @property
    def origin(self) -> Origin:
        return Origin(
            kind=KIND,
            record=self.as_json(),
            name=self.job_id,
            output_field="trainingInput.jobDir",
            request=self.training_input,
            chief=CHIEF if self.says_chief else MASTER,
            lists_evaluators=False,
        )

    @property
    def says_chief(self) -> bool:
        """Whether TF_CONFIG calls the first replica chief: where asked for, and for TensorFlow 2.

        TensorFlow 2 refuses a master. Google's runtimes did so from 2.1 on; there never was a 2.0.
        """
        major = str(self.training_input.get("runtimeVersion", "")).partition(".")[0]
        return bool(self.training_input.get("useChiefInTfConfig")) or (major.isdigit() and int(major) >= 2)


def record_of(job: Job) -> TrainingJobRecord | None:
    """What is kept of the request; None where the job did not come from this API."""
    if job.origin is None or job.origin.kind != KIND:
        return None
    return record_from(job.origin.record)


def record_from(record: Mapping[str, Any]) -> TrainingJobRecord:
    return TrainingJobRecord(
        job_id=record["jobId"], training_input=record["trainingInput"], request=record.get("request", "")
    )


def trial_words(record: TrainingJobRecord, trial: Origin) -> Origin:
    """The origin of a trial's job, with the words of this API: its log appears under the jobId."""
    return replace(
        record.origin, kind=trial.kind, record={**record.as_json(), **trial.record}, trial=trial.trial
    )


def with_older_trial_words(job: Job) -> Job:
    """The job of a trial that the store has read, in whichever API its study came."""
    plain = with_trial_words(job)
    if job.origin is None or plain.origin is None or "trainingInput" not in job.origin.record:
        return plain
    origin = trial_words(record_from(job.origin.record), plain.origin)
    return replace(job, origin=origin, spec=replace(job.spec, pools=with_roles(job.spec.pools)))


def with_roles(pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    return tuple(replace(pool, role=role) for pool, role in zip(pools, ROLES, strict=False))


def with_training_words(job: Job) -> Job:
    """A job that the store has read, with the words of this API in its origin and its roles."""
    record = record_of(job)
    if record is None:
        return job
    return replace(job, origin=record.origin, spec=replace(job.spec, pools=with_roles(job.spec.pools)))


def key_of(job_id: str) -> str:
    """The key under which a job of that jobId is stored, unique in its project."""
    return _KEY + job_id

"""What is kept of a request of AI Platform Training, and its words for the job and its replicas. Pure.

Its pools are, by position, the master, the workers, the parameter servers and the evaluators. The record has
the jobId, which is unique in the project, and the training input as sent. Nothing is decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainshed.core.job import Job, Pool
from trainshed.core.origin import Origin

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

    @property
    def origin(self) -> Origin:
        record = {"jobId": self.job_id, "trainingInput": dict(self.training_input)}
        return Origin(
            kind=KIND,
            record=record | ({"request": self.request} if self.request else {}),
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
    record = job.origin.record
    return TrainingJobRecord(
        job_id=record["jobId"], training_input=record["trainingInput"], request=record.get("request", "")
    )


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

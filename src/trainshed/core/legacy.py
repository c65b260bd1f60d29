"""What AI Platform Training, the older of Google's APIs, calls a job and its parts. Pure.

A job that came by that door is a Job like any other, run by the same engine: `extras["legacy"]` keeps the
name its owner gave it (its jobId, unique in the project) and its training input as it was sent. Its pools
are, by position, the master, the workers, the parameter servers and the evaluators. Nothing is decided here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from trainshed.core.job import LEGACY, Job
from trainshed.core.names import task_name

MASTER, CHIEF = "master", "chief"
ROLES = (MASTER, "worker", "ps", "evaluator")  # by position
_REPLICA = re.compile(r"([a-z]+)-replica-(0|[1-9][0-9]{0,8})")
_TASK = re.compile(r"\bworkerpool[0-3]-[0-9]+\b")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")

# Kept where idempotency keys are, which come in a header: no header can hold this one's line break.
_KEY = "ml.jobs\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Legacy:
    job_id: str
    training_input: Mapping[str, Any]
    request: str = ""  # the idempotency key it was created with, if any

    def extra(self) -> dict[str, object]:
        """As it is kept in `Job.extras`."""
        kept: dict[str, object] = {"jobId": self.job_id, "trainingInput": dict(self.training_input)}
        return {LEGACY: kept | ({"request": self.request} if self.request else {})}

    @property
    def says_chief(self) -> bool:
        """Whether TF_CONFIG calls the first replica chief: where that is asked for, and for TensorFlow 2.

        That refuses a master. Google's own runtimes did so from 2.1 on; there never was a 2.0.
        """
        major = str(self.training_input.get("runtimeVersion", "")).partition(".")[0]
        return bool(self.training_input.get("useChiefInTfConfig")) or (major.isdigit() and int(major) >= 2)


def legacy_of(job: Job) -> Legacy | None:
    """What the older API knows of a job; None where it did not come from there."""
    kept = job.extras.get(LEGACY)
    if not isinstance(kept, Mapping):
        return None
    said = cast("Mapping[str, Any]", kept)
    return Legacy(job_id=said["jobId"], training_input=said["trainingInput"], request=said.get("request", ""))


def key_of(job_id: str) -> str:
    """By which a job of that name is unique in its project and found again."""
    return _KEY + job_id


def known_as(job: Job) -> str:
    """What the job's own API calls it."""
    legacy = legacy_of(job)
    return job.id if legacy is None else legacy.job_id


def task_called(job: Job, task: str) -> str:
    """What the job's own API calls one of its replicas: `workerpool1-3`, or `worker-replica-3`."""
    if LEGACY not in job.extras or not task.startswith("workerpool"):
        return task
    pool, _, index = task.removeprefix("workerpool").partition("-")
    return f"{ROLES[int(pool)]}-replica-{index}"


def told(job: Job, text: str) -> str:
    """A sentence about the job, with its replicas called as its own API calls them."""
    return _TASK.sub(lambda match: task_called(job, match[0]), text) if LEGACY in job.extras else text


def task_meant(job: Job, called: str) -> str:
    """The other way round. A name that none has stays as it is, and names nothing."""
    match = _REPLICA.fullmatch(called) if LEGACY in job.extras else None
    if match is None or match[1] not in ROLES:
        return called
    return task_name(ROLES.index(match[1]), int(match[2]))


def snake(value: Any) -> Any:
    """A training input with its names as TF_CONFIG has them."""
    if isinstance(value, Mapping):
        said = cast("Mapping[str, Any]", value)
        return {_CAPITAL.sub(lambda m: f"_{m[1].lower()}", name): snake(item) for name, item in said.items()}
    if isinstance(value, list | tuple):
        return [snake(item) for item in cast("list[Any]", value)]
    return value

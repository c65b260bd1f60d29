"""Names that AI Platform Training, Google's older API, has for a job and its replicas. Pure.

`wire/`, `service/` and `core/cluster_env.py` use it. A job of that API is a Job like any other.
`extras["legacy"]` keeps its jobId (unique in the project) and its training input as sent. Its pools are, by
position, the master, the workers, the parameter servers and the evaluators. Nothing is decided here.
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

# Stored as an idempotency key. Clients send theirs in a header, which cannot have a line break.
_KEY = "ml.jobs\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Legacy:
    job_id: str
    training_input: Mapping[str, Any]
    request: str = ""  # the idempotency key it was created with, if any

    def extra(self) -> dict[str, object]:
        """The entry for `Job.extras`."""
        kept: dict[str, object] = {"jobId": self.job_id, "trainingInput": dict(self.training_input)}
        return {LEGACY: kept | ({"request": self.request} if self.request else {})}

    @property
    def says_chief(self) -> bool:
        """Whether TF_CONFIG calls the first replica chief: where asked for, and for TensorFlow 2.

        TensorFlow 2 refuses a master. Google's runtimes did so from 2.1 on; there never was a 2.0.
        """
        major = str(self.training_input.get("runtimeVersion", "")).partition(".")[0]
        return bool(self.training_input.get("useChiefInTfConfig")) or (major.isdigit() and int(major) >= 2)


def legacy_of(job: Job) -> Legacy | None:
    """What the older API knows of a job; None where it did not come from there."""
    kept = job.extras.get(LEGACY)
    if not isinstance(kept, Mapping):
        return None
    entry = cast("Mapping[str, Any]", kept)
    return Legacy(
        job_id=entry["jobId"], training_input=entry["trainingInput"], request=entry.get("request", "")
    )


def key_of(job_id: str) -> str:
    """The key under which a job of that jobId is stored, unique in its project."""
    return _KEY + job_id


def known_as(job: Job) -> str:
    """The name of the job in its own API."""
    legacy = legacy_of(job)
    return job.id if legacy is None else legacy.job_id


def task_called(job: Job, task: str) -> str:
    """The name of a replica in the job's own API: `workerpool1-3`, or `worker-replica-3`."""
    if LEGACY not in job.extras or not task.startswith("workerpool"):
        return task
    pool, _, index = task.removeprefix("workerpool").partition("-")
    return f"{ROLES[int(pool)]}-replica-{index}"


def told(job: Job, text: str) -> str:
    """A sentence about the job, with the names that its own API has for its replicas."""
    return _TASK.sub(lambda match: task_called(job, match[0]), text) if LEGACY in job.extras else text


def task_meant(job: Job, called: str) -> str:
    """The task of a replica named by `task_called`. An unknown name is returned unchanged."""
    match = _REPLICA.fullmatch(called) if LEGACY in job.extras else None
    if match is None or match[1] not in ROLES:
        return called
    return task_name(ROLES.index(match[1]), int(match[2]))


def snake(value: Any) -> Any:
    """A training input with its names as TF_CONFIG has them."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {_CAPITAL.sub(lambda m: f"_{m[1].lower()}", key): snake(item) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        return [snake(item) for item in cast("list[Any]", value)]
    return value

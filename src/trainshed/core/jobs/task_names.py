"""The names of a job and its tasks as the job's owner knows them. Pure.

`wire/`, `service/logs.py` and the dialects use it. A task is `workerpool1-3`. In a job whose pools have roles
it is shown as `worker-replica-3`, and found by that name.
"""

import re

from trainshed.core.jobs.job import Job
from trainshed.core.names import task_name

_TASK = re.compile(r"\bworkerpool([0-9])-([0-9]+)\b")
_REPLICA = re.compile(r"([a-z]+)-replica-(0|[1-9][0-9]{0,8})")


def known_as(job: Job) -> str:
    """The name of the job in its own API."""
    return (job.origin and job.origin.name) or job.id


def task_called(job: Job, task: str) -> str:
    """The name of a task in the job's own API: `workerpool1-3`, or `worker-replica-3`."""
    match = _TASK.fullmatch(task)
    return task if match is None else _called(job, match)


def with_task_names(job: Job, text: str) -> str:
    """A sentence about the job, with the names that its own API has for its tasks."""
    return _TASK.sub(lambda match: _called(job, match), text)


def _called(job: Job, match: re.Match[str]) -> str:
    pools, number = job.spec.pools, int(match[1])
    role = pools[number].role if number < len(pools) else ""
    return f"{role}-replica-{match[2]}" if role else match[0]


def task_meant(job: Job, called: str) -> str:
    """The task named by `task_called`. An unknown name is returned unchanged."""
    match = _REPLICA.fullmatch(called)
    roles = [pool.role for pool in job.spec.pools]
    if match is None or match[1] not in roles:
        return called
    return task_name(roles.index(match[1]), int(match[2]))

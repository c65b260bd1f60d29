"""Shows users the environment variables of a job's replicas: each one's role and the others' addresses.

It is the same for every backend. It leaves out what a backend adds (PATH, devices, folders), the job's
token and all secrets: only programs get these.
"""

from collections.abc import Mapping

from trainshed.api.call import Json
from trainshed.core.errors import Conflict, NotFound
from trainshed.core.jobs.cluster_env import JobCluster
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.secret import MASK, secret_names
from trainshed.core.names import task_name


def environment(job: Job, project_env: Mapping[str, str], task: str = "") -> Json:
    """Of all replicas, or of `task` only. `project_env` has the variables of every job of the project."""
    if job.status.admission is None:
        raise Conflict(
            f"Job {job.name} is {job.status.state} and has no places yet: addresses and ports, and with them "
            "the environment, are known once it is admitted."
        )
    replicas = {task_name(replica.pool, replica.index): replica for replica in job.status.replicas}
    if task and task not in replicas:
        raise NotFound(f"Job {job.name} has no replica '{task[:60]}'; it has {_names(list(replicas))}.")
    chosen = {task: replicas[task]} if task else replicas
    cluster = JobCluster(job)
    return {
        "attempt": job.status.attempt,
        "replicas": [
            {"task": name, "environment": {**project_env, **_shown(job, cluster, replica)}}
            for name, replica in chosen.items()
        ],
    }


def _shown(job: Job, cluster: JobCluster, replica: Replica) -> dict[str, str]:
    return cluster.env(replica) | dict.fromkeys(secret_names(job.spec.pools[replica.pool]), MASK)


def _names(tasks: list[str]) -> str:
    more = f" and {len(tasks) - 5} more" if len(tasks) > 5 else ""
    return (", ".join(tasks[:5]) or "none") + more

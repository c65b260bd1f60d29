"""The environment variables of every replica: who it is, and where the others are. Pure.

`core/launching.py` and `api/environment.py` call it. The variables are Google's (CLUSTER_SPEC, TF_CONFIG,
CLOUD_ML_*, AIP_*), PyTorch's (MASTER_ADDR, RANK, …), torchrun's (PET_*) and two that older guides print. The
job's own `env` wins over all of them; where its grammar says so, it may name them (`core/pool_words.py`).
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from trainshed.core.fleet import Admission
from trainshed.core.job import Job, JobSpec, Pool
from trainshed.core.pool_words import LateValues
from trainshed.core.replica import Replica
from trainshed.core.task_names import known_as

MOST_ARGUMENTS = 16 * 1024  # Linux allows 128 KiB in one variable
CHIEF, WORKER, SERVER, EVALUATOR = "chief", "worker", "ps", "evaluator"  # as TensorFlow calls them
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def cluster_env(job: Job, replica: Replica) -> dict[str, str]:
    """All variables of one replica. The job must be admitted: addresses come from its admission."""
    admission = job.status.admission
    if admission is None:
        raise LookupError(f"job {job.id} is not admitted")
    env = {
        "CLUSTER_SPEC": json.dumps(cluster_spec(job, admission, replica)),
        "TF_CONFIG": json.dumps(tf_config(job, admission, replica)),
        "CLOUD_ML_JOB_ID": known_as(job),
        "CLOUD_ML_PROJECT_ID": job.project,
        "CLOUD_ML_REGION": job.location,
        "TRAINSHED_JOB": job.name,
        "TRAINSHED_ATTEMPT": str(job.status.attempt),
        "TRAINSHED_RESTART": str(replica.run),
        "TRAINSHED_TASK": f"workerpool{replica.pool}-{replica.index}",
    }
    env |= (ranks := _ranks(job.spec, admission, replica))
    env |= _output(job.spec)
    if job.origin is not None and job.origin.index_variable:
        env[job.origin.index_variable] = str(replica.index)
    own = dict(job.spec.pools[replica.pool].env)
    late = late_values(job, replica, env)
    if job.origin is not None and job.origin.pools and job.origin.pools[replica.pool].remote is not None:
        # Whoever starts programs in the replicas ranks them: a replica's own rank would lead them astray.
        env = {name: value for name, value in env.items() if name not in {*ranks, "TF_CONFIG"}}
    return env | (own if late is None else {name: late.fill(value) for name, value in own.items()})


def late_values(job: Job, replica: Replica, env: Mapping[str, str]) -> LateValues | None:
    """What `$(NAME)` stands for in the texts of a replica with these variables; None: for itself."""
    admission, origin = job.status.admission, job.origin
    if admission is None or origin is None or not origin.pools:
        return None
    hosts = {(place.pool, place.index): place.host for place in admission.placements}
    return origin.pools[replica.pool].late_values(replica.index, env, hosts)


def cluster_spec(job: Job, admission: Admission, replica: Replica) -> dict[str, object]:
    pools: dict[str, list[str]] = {}
    for place in admission.placements:
        pools.setdefault(_pool_name(job.spec, place.pool), []).append(f"{place.host}:{place.port}")
    name = _pool_name(job.spec, replica.pool)
    trial = "" if job.origin is None else job.origin.trial
    task: dict[str, object] = {"type": name, "index": replica.index, "trial": trial}
    return {"cluster": pools, "environment": "cloud", "task": task, "job": json.dumps(_job(job))}


def _pool_name(spec: JobSpec, number: int) -> str:
    return spec.pools[number].role or f"workerpool{number}"


def tf_config(job: Job, admission: Admission, replica: Replica) -> dict[str, object]:
    """TensorFlow has one chief: further replicas of the first pool are its first workers."""
    origin = job.origin
    chief = CHIEF if origin is None else origin.chief
    cluster: dict[str, list[str]] = {}
    mine = ("", 0)
    for place in admission.placements:
        role = _role(job.spec, place.pool, place.index, chief)
        if role is None:
            continue
        members = cluster.setdefault(role, [])
        if (place.pool, place.index) == (replica.pool, replica.index):
            mine = (role, len(members))
        members.append(f"{place.host}:{place.port}")
    config: dict[str, object] = {"cluster": cluster, "environment": "cloud", "job": _job(job)}
    if origin is not None and not origin.lists_evaluators:
        cluster.pop(EVALUATOR, None)
    if mine[0]:
        trial = {"trial": origin.trial} if origin is not None and origin.trial else {}
        config["task"] = {"type": mine[0], "index": mine[1], **trial}
    return config


def _role(spec: JobSpec, pool: int, index: int, chief: str) -> str | None:
    """TensorFlow's name for a replica; None for reducers. Pools after the evaluators are workers."""
    if spec.pools[pool].is_reducer:
        return None
    if pool == 0:
        return chief if index == 0 else WORKER
    return {2: SERVER, 3: EVALUATOR}.get(pool, WORKER)


def _ranks(spec: JobSpec, admission: Admission, replica: Replica) -> dict[str, str]:
    """Every replica but the reducers has a rank, in order of pools; the first one is the master."""
    ranked = [p for p in admission.placements if not spec.pools[p.pool].is_reducer]
    ranked = ranked or list(admission.placements)  # a job of reducers only must start too
    master, port = ranked[0].host, str(admission.master_port)
    size = str(len(ranked))
    env = {"MASTER_ADDR": master, "MASTER_PORT": port, "PET_MASTER_ADDR": master, "PET_MASTER_PORT": port}
    rank = next((n for n, p in enumerate(ranked) if (p.pool, p.index) == (replica.pool, replica.index)), None)
    if rank is None:
        return env
    return env | {
        "RANK": str(rank),
        "WORLD_SIZE": size,
        "NODE_RANK": str(rank),
        "GROUP_RANK": str(rank),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NNODES": size,
        "PET_NNODES": size,
        "PET_NODE_RANK": str(rank),
        "CLOUD_ML_HP_TUNING_RANK": str(rank),
        "CLOUD_ML_HP_TUNING_WORLD_SIZE": size,
    }


def _output(spec: JobSpec) -> dict[str, str]:
    if not spec.output:
        return {}
    base = spec.output.rstrip("/")
    return {
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
    }


def _job(job: Job) -> dict[str, object]:
    """The job, for programs to read. Its arguments are left out where they are too large for a variable."""
    if job.origin is not None and job.origin.request is not None:
        return _request(job.origin.request)
    pools = job.spec.pools
    size = sum(len(text) for pool in pools for text in pool.command + pool.args)
    return {"worker_pool_specs": [_pool(pool, brief=size > MOST_ARGUMENTS) for pool in pools]}


def _request(given: Mapping[str, Any]) -> dict[str, object]:
    """The request in snake case, without its largest parts where it is too large for a variable."""
    result: dict[str, object] = _snake(given)
    for large in ("args", "hyperparameters", "package_uris", *result):
        if len(json.dumps(result)) <= MOST_ARGUMENTS:
            break
        result.pop(large, None)
    return result


def _snake(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        return {_CAPITAL.sub(lambda m: f"_{m[1].lower()}", key): _snake(item) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        return [_snake(item) for item in cast("list[Any]", value)]
    return value


def _pool(pool: Pool, *, brief: bool) -> Mapping[str, object]:
    if pool.is_empty:
        return {}
    machine: dict[str, object] = {"machine_type": pool.machine_type}
    if pool.accelerator:
        machine |= {"accelerator_type": pool.accelerator, "accelerator_count": pool.accelerators}
    spec: dict[str, object] = {"machine_spec": machine, "replica_count": pool.replicas}
    if pool.module:
        spec["python_package_spec"] = {
            "executor_image_uri": pool.image,
            "package_uris": list(pool.packages),
            "python_module": pool.module,
            "args": [] if brief else list(pool.args),
        }
    else:
        spec["container_spec"] = {
            "image_uri": pool.image,
            "command": [] if brief else list(pool.command),
            "args": [] if brief else list(pool.args),
        }
    return spec

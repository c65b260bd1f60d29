"""The environment variables of every replica: who it is, and where the others are. Pure.

`core/jobs/launching.py` and `api/environment.py` call it. The variables are Google's (CLUSTER_SPEC,
TF_CONFIG, CLOUD_ML_*, AIP_*), PyTorch's (MASTER_ADDR, RANK, …), torchrun's (PET_*) and two that older guides
print. The job's own `env` wins over all of them; where its grammar says so, it may name them
(`core/jobs/pool_words.py`).
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from trainshed.core.jobs.job import Job, JobSpec, Pool
from trainshed.core.jobs.pool_words import LateValues
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.task_names import known_as

MOST_ARGUMENTS = 16 * 1024  # Linux allows 128 KiB in one variable
CHIEF, WORKER, SERVER, EVALUATOR = "chief", "worker", "ps", "evaluator"  # as TensorFlow calls them
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


class JobCluster:
    """Who the replicas of an admitted job are and where. Made once for all: there may be thousands."""

    def __init__(self, job: Job) -> None:
        admission = job.status.admission
        if admission is None:
            raise LookupError(f"job {job.id} is not admitted")
        self._job, self.admission, self.places = job, admission, admission.by_replica()
        self._trial = "" if job.origin is None else job.origin.trial
        self._as_text, self._as_json = json.dumps(about := _about(job)), about
        self._pool_names = [pool.role or f"workerpool{n}" for n, pool in enumerate(job.spec.pools)]
        pools: dict[str, list[str]] = {}
        for place in admission.placements:
            pools.setdefault(self._pool_names[place.pool], []).append(place.address)
        self._pools = json.dumps(pools)
        self._tasks: dict[tuple[int, int], tuple[str, int]] = {}  # as TensorFlow calls them
        self._tensorflow = json.dumps(self._roles())
        ranked = [place for place in admission.placements if not job.spec.pools[place.pool].is_reducer]
        ranked = ranked or admission.placements  # a job of reducers only must start too
        self._ranks = {(place.pool, place.index): rank for rank, place in enumerate(ranked)}
        self._master = ranked[0].host

    def env(self, replica: Replica) -> dict[str, str]:
        """All variables of one replica."""
        job, origin = self._job, self._job.origin
        env = {
            "CLUSTER_SPEC": self._cluster_spec(replica),
            "TF_CONFIG": self._tf_config(replica),
            "CLOUD_ML_JOB_ID": known_as(job),
            "CLOUD_ML_PROJECT_ID": job.project,
            "CLOUD_ML_REGION": job.location,
            "TRAINSHED_JOB": job.name,
            "TRAINSHED_ATTEMPT": str(job.status.attempt),
            "TRAINSHED_RESTART": str(replica.run),
            "TRAINSHED_TASK": f"workerpool{replica.pool}-{replica.index}",
        }
        env |= (ranks := self._rank_variables(replica))
        env |= _output(job.spec)
        if origin is not None and origin.index_variable:
            env[origin.index_variable] = str(replica.index)
        if origin is not None and not origin.tells_alone and len(self.places) == 1:
            del env["TF_CONFIG"]
        own = dict(job.spec.pools[replica.pool].env)
        late = self.late_values(replica, env)
        if origin is not None and origin.pools and origin.pools[replica.pool].remote is not None:
            # Whoever starts programs in the replicas ranks them: a replica's own rank would lead them astray.
            env = {name: value for name, value in env.items() if name not in {*ranks, "TF_CONFIG"}}
        return env | (own if late is None else {name: late.fill(value) for name, value in own.items()})

    def late_values(self, replica: Replica, env: Mapping[str, str]) -> LateValues | None:
        """What `$(NAME)` stands for in the texts of a replica with these variables; None: for itself."""
        origin = self._job.origin
        if origin is None or not origin.pools:
            return None
        hosts = {place: placement.host for place, placement in self.places.items()}
        return origin.pools[replica.pool].late_values(replica.index, env, hosts)

    def _cluster_spec(self, replica: Replica) -> str:
        task = {"type": self._pool_names[replica.pool], "index": replica.index, "trial": self._trial}
        return _with_cluster(self._pools, {"environment": "cloud", "task": task, "job": self._as_text})

    def _tf_config(self, replica: Replica) -> str:
        config: dict[str, object] = {"environment": "cloud", "job": self._as_json}
        if (replica.pool, replica.index) in self._tasks:
            role, index = self._tasks[replica.pool, replica.index]
            trial = {"trial": self._trial} if self._trial else {}
            config["task"] = {"type": role, "index": index, **trial}
        return _with_cluster(self._tensorflow, config)

    def _roles(self) -> dict[str, list[str]]:
        """TensorFlow has one chief: further replicas of the first pool are its first workers."""
        origin = self._job.origin
        chief = CHIEF if origin is None else origin.chief
        roles = [_role(pool, number) for number, pool in enumerate(self._job.spec.pools)]
        cluster: dict[str, list[str]] = {}
        for place in self.admission.placements:
            role = roles[place.pool]
            if role is None:
                continue
            if place.pool == place.index == 0:
                role = chief
            members = cluster.setdefault(role, [])
            self._tasks[place.pool, place.index] = (role, len(members))
            members.append(place.address)
        if origin is not None and not origin.lists_evaluators:
            cluster.pop(EVALUATOR, None)
        return cluster

    def _rank_variables(self, replica: Replica) -> dict[str, str]:
        """Every replica but the reducers has a rank, in order of pools; the first one is the master."""
        master, port = self._master, str(self.admission.master_port)
        env = {"MASTER_ADDR": master, "MASTER_PORT": port, "PET_MASTER_ADDR": master, "PET_MASTER_PORT": port}
        if (replica.pool, replica.index) not in self._ranks:
            return env
        rank, size = str(self._ranks[replica.pool, replica.index]), str(len(self._ranks))
        return env | {
            "RANK": rank,
            "WORLD_SIZE": size,
            "NODE_RANK": rank,
            "GROUP_RANK": rank,
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "NNODES": size,
            "PET_NNODES": size,
            "PET_NODE_RANK": rank,
            "CLOUD_ML_HP_TUNING_RANK": rank,
            "CLOUD_ML_HP_TUNING_WORLD_SIZE": size,
        }


def _with_cluster(cluster: str, more: Mapping[str, object]) -> str:
    """As JSON, with a first member that is JSON already."""
    return f'{{"cluster": {cluster}, {json.dumps(more)[1:]}'


def _role(pool: Pool, number: int) -> str | None:
    """TensorFlow's name for its replicas; None for reducers. Pools after the evaluators are workers."""
    return None if pool.is_reducer else {2: SERVER, 3: EVALUATOR}.get(number, WORKER)


def _output(spec: JobSpec) -> dict[str, str]:
    if not spec.output:
        return {}
    base = spec.output.rstrip("/")
    return {
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
    }


def _about(job: Job) -> dict[str, object]:
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

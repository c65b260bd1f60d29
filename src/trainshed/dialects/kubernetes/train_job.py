"""Converts a TrainJob of Kubeflow's trainer to the body of a customJob. For `manifest.py`. Pure.

A cluster has runtimes, which say how the nodes of a TrainJob are started. Those that Kubeflow installs and
that can run here are in `_RUNTIMES`. The nodes are one pool, as the Pods of a JobSet (`job_set.py`). Replicas
find the variables that the runtime sets.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.gang import GangPool, GangReader
from trainshed.dialects.kubernetes.job import RETRIES, restart_rule
from trainshed.dialects.kubernetes.job_set import ReplicatedJob, pod_pool
from trainshed.dialects.kubernetes.machine import CPU, DEFAULT, GPU, amount
from trainshed.dialects.kubernetes.pod import Wanted
from trainshed.dialects.kubernetes.shape import number, part, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

_TRAINER, _NODE = "spec.trainer", "node"
_CONTAINER = f"{_TRAINER}.spec.containers[0]"  # as the reader of Pods calls it
_FIELDS = ("image", "command", "args", "env")
_BY_SSH = ("deepspeed-distributed", "mlx-distributed")
_COORDINATOR = "$(MASTER_ADDR):$(MASTER_PORT)"
_MOST_PROCESSES = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRuntime:
    image: str  # where the TrainJob names none
    env: Callable[[int, str, int], Mapping[str, str]]  # by nodes, and the processes and GPUs of each


def _torch(nodes: int, processes: str, gpus: int) -> Mapping[str, str]:
    late = ("PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
    known = {"PET_NNODES": str(nodes), "PET_NPROC_PER_NODE": processes}
    return known | {name: f"$({name})" for name in late}


def _jax(nodes: int, processes: str, gpus: int) -> Mapping[str, str]:
    return {
        "JAX_NUM_PROCESSES": str(nodes),
        "JAX_PROCESS_ID": "$(RANK)",
        "JAX_COORDINATOR_ADDRESS": _COORDINATOR,
        "JAX_COORDINATOR_PORT": "$(MASTER_PORT)",
        "JAX_DISTRIBUTED_BACKEND": "gloo",
    }


def _xgboost(nodes: int, processes: str, gpus: int) -> Mapping[str, str]:
    return {
        "DMLC_TRACKER_URI": "$(MASTER_ADDR)",
        "DMLC_TRACKER_PORT": "$(MASTER_PORT)",
        "DMLC_TASK_ID": "$(RANK)",
        "DMLC_NUM_WORKER": str(nodes * max(gpus, 1)),
    }


_RUNTIMES = {
    "torch-distributed": TrainingRuntime(image="trainshed/pytorch", env=_torch),
    "jax-distributed": TrainingRuntime(image="trainshed/jax", env=_jax),
    "xgboost-distributed": TrainingRuntime(image="trainshed/xgboost", env=_xgboost),
}


class _TrainerFaults(Faults):
    """Forwards faults of the Pod that a trainer is, under the paths of the trainer."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(faults.root)
        self._to = faults

    def add(self, path: str, sentence: str) -> None:
        self._to.add(_renamed(path), sentence)


def convert_train_job(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    reader = GangReader(document, catalogue, _TrainerFaults(faults))
    spec = part(document, "spec")
    trainer = part(spec, "trainer")
    runtime = _runtime(part(spec, "runtimeRef"), faults)
    nodes = number(trainer, "numNodes")
    if nodes is not None and nodes < 1:
        faults.add(f"{_TRAINER}.numNodes", f"must be at least 1, not {nodes}.")
    if not trainer.get("image") and not trainer.get("command"):
        faults.add(f"{_TRAINER}.command", "is required: a runtime has no program of its own.")
    pool = _pool(trainer, runtime, max(nodes or 1, 1), catalogue, reader)
    scheduling = restart_rule(RETRIES) | reader.timeout(spec, "spec") | {"successPools": [0]}
    wanted = reader.convert([pool], f"{_TRAINER}.numNodes", scheduling)
    wanted.origins = {name: _renamed(path) for name, path in wanted.origins.items()}
    wanted.notes = [_renamed(note) for note in wanted.notes]
    return wanted


def _renamed(words: str) -> str:
    words = words.replace(f"{_CONTAINER}.resources", f"{_TRAINER}.resourcesPerNode")
    return words.replace(_CONTAINER, _TRAINER)


def _runtime(given: Mapping[str, Any], faults: Faults) -> TrainingRuntime:
    name, known = text(given, "name"), ", ".join(_RUNTIMES)
    if name in _BY_SSH:
        sentence = f"cannot be had: {name} starts its nodes by mpirun over ssh; known are {known}."
        faults.add("spec.runtimeRef.name", sentence)
    elif name not in _RUNTIMES:
        sentence = f"must be a runtime that is known here ({known}), not {shown(name)}; or write a JobSet."
        faults.add("spec.runtimeRef.name", sentence)
    return _RUNTIMES.get(name) or _RUNTIMES["torch-distributed"]


def _pool(
    trainer: Mapping[str, Any], runtime: TrainingRuntime, nodes: int, catalogue: Catalogue, reader: GangReader
) -> GangPool:
    container = {name: trainer[name] for name in _FIELDS if name in trainer}
    container |= {"resources": part(trainer, "resourcesPerNode")}
    if not text(trainer, "image"):
        container["image"] = runtime.image
    template = {"spec": {"containers": [container]}}
    row = ReplicatedJob(
        name=_NODE,
        path=_TRAINER,
        given={"template": {"spec": {"template": template}}},
        jobs=1,
        pods=nodes,
        first=0,
    )
    pool = pod_pool(row, [row], reader.name, "", reader)
    gpus = int(amount(_resources(trainer).get(GPU)) or 0)
    env = runtime.env(nodes, _processes(trainer, gpus, catalogue, reader.faults), gpus)
    return replace(pool, path=_TRAINER, counted_at=f"{_TRAINER}.numNodes", env={**pool.env, **env})


def _resources(trainer: Mapping[str, Any]) -> Mapping[str, Any]:
    resources = part(trainer, "resourcesPerNode")
    return {**part(resources, "requests"), **part(resources, "limits")}


def _processes(trainer: Mapping[str, Any], gpus: int, catalogue: Catalogue, faults: Faults) -> str:
    """How many processes a node has, as torchrun takes it. Without GPUs: one for each CPU of the node."""
    given, resources = trainer.get("numProcPerNode"), _resources(trainer)
    whole = number(trainer, "numProcPerNode")
    if whole is None and isinstance(given, str) and given.isascii() and given.isdigit():
        whole = int(given[:9])
    if whole is not None and 1 <= whole <= _MOST_PROCESSES:
        return str(whole)
    if given not in (None, "auto", "cpu", "gpu"):
        sentence = f"must be auto, cpu, gpu or a number of processes, not {shown(given)}."
        faults.add(f"{_TRAINER}.numProcPerNode", sentence)
        return "1"
    if given == "gpu" or (given != "cpu" and gpus):
        return given or "auto"
    if not resources and (machine := catalogue.machines.get(DEFAULT)):
        return str(max(1, math.ceil(machine.cpus)))
    return str(min(max(1, math.ceil(amount(resources.get(CPU)) or 1)), _MOST_PROCESSES))

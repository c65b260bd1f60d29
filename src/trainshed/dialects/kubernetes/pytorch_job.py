"""Converts a PyTorchJob of Kubeflow's training operator to the body of a customJob. For `manifest.py`. Pure.

The master is the first pool and the workers the second. Replicas find the variables that the operator sets:
those of `core/jobs/cluster_env.py`, and torchrun's own (PET_*) by `nprocPerNode` and `elasticPolicy`.
"""

import re
from collections.abc import Mapping
from typing import Any

from trainshed.core.jobs.pool_words import host_reference
from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.gang import GangReader, service_names
from trainshed.dialects.kubernetes.job import DRAIN
from trainshed.dialects.kubernetes.pod import Wanted
from trainshed.dialects.kubernetes.replica_specs import ReplicaSpecs, check_cleaning
from trainshed.dialects.kubernetes.shape import number, part, parts, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

MASTER, WORKER = "Master", "Worker"
_SPECS = "spec.pytorchReplicaSpecs"
_PROCESSES = ("auto", "cpu", "gpu")
_COUNT = re.compile("[1-9][0-9]{0,2}")
# Told to each replica; a file's own values would lead it astray, and the operator overwrites them too.
_OWN = ("MASTER_ADDR", "MASTER_PORT", "RANK", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")


def convert_pytorch_job(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    reader = GangReader(document, catalogue, faults)
    spec = part(document, "spec")
    specs = ReplicaSpecs(reader=reader, path=_SPECS, operator="pytorchjob-controller", leaders=(MASTER,))
    policy = part(spec, "runPolicy")
    counts = {kind: specs.count(kind) for kind in (MASTER, WORKER)}
    if not specs.given.get(MASTER) and not specs.given.get(WORKER):
        faults.add(_SPECS, "is required: Master, Worker or both.")
    kinds = [kind for kind, count in counts.items() if count]
    env = {name: f"$({name})" for name in _OWN} | _env(spec, counts, kinds, reader)
    pools = [specs.pool(kind, counts[kind], env) for kind in kinds]
    scheduling = specs.restarts(kinds, policy, "OnFailure") | reader.timeout(policy, "spec.runPolicy")
    clean = check_cleaning(policy, "spec.runPolicy", faults)
    if MASTER not in kinds and pools:
        scheduling["successPools"] = [0]
    elif clean in ("", "None") and len(pools) > 1:
        scheduling["drainDuration"] = DRAIN
    return reader.convert(pools, _SPECS, scheduling)


def _env(
    spec: Mapping[str, Any], counts: Mapping[str, int], kinds: list[str], reader: GangReader
) -> dict[str, str]:
    """The variables that are the same in all replicas."""
    total, elastic = sum(counts.values()), part(spec, "elasticPolicy")
    processes = _processes(spec, elastic, reader.faults)
    each = int(processes) if processes.isdigit() else 1
    env = {"WORLD_SIZE": str(total * each), "PET_NNODES": str(total)}
    if processes:
        env["PET_NPROC_PER_NODE"] = processes
    return env | (_rendezvous(elastic, counts, kinds, reader) if elastic else {})


def _processes(spec: Mapping[str, Any], elastic: Mapping[str, Any], faults: Faults) -> str:
    given, path = spec.get("nprocPerNode"), "spec.nprocPerNode"
    if given is None:
        given, path = elastic.get("nProcPerNode"), "spec.elasticPolicy.nProcPerNode"
    if given is None:
        return ""
    processes = str(given)
    if processes not in _PROCESSES and not _COUNT.fullmatch(processes):
        faults.add(path, f"must be auto, cpu, gpu or a number of processes, not {shown(given)}.")
        return ""
    return processes


def _rendezvous(
    elastic: Mapping[str, Any], counts: Mapping[str, int], kinds: list[str], reader: GangReader
) -> dict[str, str]:
    """What `elasticPolicy` tells torchrun. The number of replicas stays as it is."""
    path, workers = "spec.elasticPolicy", counts[WORKER]
    least, most = number(elastic, "minReplicas"), number(elastic, "maxReplicas")
    low, high = least if least is not None else workers, most if most is not None else workers
    if not workers:
        reader.faults.add(path, "is for workers, and there are none.")
    elif not 1 <= low <= workers:
        sentence = f"must be 1 to {workers}, the number of workers, not {low}."
        reader.faults.add(f"{path}.minReplicas", sentence)
    elif high < workers:
        sentence = f"must be at least {workers}, the number of workers, not {high}."
        reader.faults.add(f"{path}.maxReplicas", sentence)
    env = {"PET_NNODES": f"{low}:{high}" if (least, most) != (None, None) else str(workers)}
    env["PET_RDZV_BACKEND"] = text(elastic, "rdzvBackend") or "c10d"
    env["PET_RDZV_ENDPOINT"] = _endpoint(elastic, counts, kinds, reader)
    if (restarts := number(elastic, "maxRestarts")) is not None:
        env["PET_MAX_RESTARTS"] = str(restarts)
    if identity := text(elastic, "rdzvId"):
        env["PET_RDZV_ID"] = identity
    if rows := parts(elastic, "rdzvConf"):
        env["PET_RDZV_CONF"] = ",".join(f"{text(row, 'key')}={text(row, 'value')}" for row in rows)
    if elastic.get("standalone") is True:
        env["PET_STANDALONE"] = "1"
    return env


def _endpoint(
    elastic: Mapping[str, Any], counts: Mapping[str, int], kinds: list[str], reader: GangReader
) -> str:
    """Where replicas meet: at the first worker, unless the file names another host."""
    given, port = text(elastic, "rdzvHost"), number(elastic, "rdzvPort")
    hosts = {
        name: host_reference(pool, index)
        for pool, kind in enumerate(kinds)
        for index in range(min(counts[kind], 1))
        for name in service_names(f"{reader.name}-{kind.lower()}-{index}", reader.namespace)
    }
    first = kinds.index(WORKER) if WORKER in kinds else 0
    host = hosts.get(given, given) or host_reference(first, 0)
    if port is not None and not 0 < port < 65536:
        reader.faults.add("spec.elasticPolicy.rdzvPort", f"must be a port, 1 to 65535, not {port}.")
    return f"{host}:{'$(MASTER_PORT)' if port is None else port}"

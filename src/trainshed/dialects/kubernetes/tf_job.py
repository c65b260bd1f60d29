"""Converts a TFJob of Kubeflow's training operator to the body of a customJob. For `manifest.py`. Pure.

The chief is the first pool, workers the second, parameter servers the third and evaluators the fourth. Where
there is no chief, workers are the first. Replicas find TF_CONFIG as the operator writes it: evaluators are
not in the cluster, and a replica without others finds none.
"""

from collections.abc import Mapping
from typing import Any

from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.gang import GangPool, GangReader
from trainshed.dialects.kubernetes.job import DRAIN
from trainshed.dialects.kubernetes.pod import Wanted
from trainshed.dialects.kubernetes.replica_specs import ReplicaSpecs, check_cleaning
from trainshed.dialects.kubernetes.shape import part, text
from trainshed.wire.faults import Faults
from trainshed.wire.scalars import shown

CHIEF, MASTER, WORKER, SERVER, EVALUATOR = "Chief", "Master", "Worker", "PS", "Evaluator"
_SPECS = "spec.tfReplicaSpecs"
_FURTHER = (WORKER, SERVER, EVALUATOR)  # in the order of their pools
_ENV = {"TF_CONFIG": "$(TF_CONFIG)"}  # the operator overwrites a file's own value too


def convert_tf_job(document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> Wanted:
    """The requested job. Valid only if no faults were recorded."""
    reader, spec = GangReader(document, catalogue, faults), part(document, "spec")
    specs = ReplicaSpecs(reader=reader, path=_SPECS, operator="tfjob-controller", leaders=(CHIEF, MASTER))
    policy = part(spec, "runPolicy")
    counts = {kind: specs.count(kind) for kind in (CHIEF, MASTER, *_FURTHER)}
    first = _first(counts, faults)
    kinds = [first, *(kind if kind != first else "" for kind in _FURTHER)]
    pools = [specs.pool(kind, counts[kind], _ENV) if counts.get(kind) else None for kind in kinds]
    given = [kind for kind in kinds if counts.get(kind)]
    scheduling = specs.restarts(given, policy, "Never") | reader.timeout(policy, "spec.runPolicy")
    if _all_workers(spec, faults) and first == WORKER:
        scheduling["successPools"] = [0]
    if check_cleaning(policy, "spec.runPolicy", faults) in ("", "None") and sum(counts.values()) > 1:
        scheduling["drainDuration"] = DRAIN
    reader.wanted.chief = first.lower()
    return reader.convert(_without_end(pools), _SPECS, scheduling)


def _first(counts: Mapping[str, int], faults: Faults) -> str:
    """The type whose replica is the first: the job has succeeded when that has."""
    if counts[CHIEF] and counts[MASTER]:
        faults.add(f"{_SPECS}.{MASTER}", "is another name for Chief, which is there: leave one of them out.")
    first = next((kind for kind in (CHIEF, MASTER, WORKER) if counts[kind]), "")
    if not first and (counts[SERVER] or counts[EVALUATOR]):
        faults.add(_SPECS, "must have a Chief or a Worker: the job ends as that does.")
    return first or WORKER


def _all_workers(spec: Mapping[str, Any], faults: Faults) -> bool:
    policy = text(spec, "successPolicy")
    if policy not in ("", "AllWorkers"):
        faults.add("spec.successPolicy", f"must be AllWorkers or empty, not {shown(policy)}.")
    return policy == "AllWorkers"


def _without_end(pools: list[GangPool | None]) -> list[GangPool | None]:
    """Without the empty pools behind the last one."""
    while pools and pools[-1] is None:
        pools = pools[:-1]
    return pools

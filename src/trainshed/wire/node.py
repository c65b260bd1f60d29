"""Nodes as JSON. Google's API has no counterpart: the names are ours. Called by `api/nodes.py`."""

from collections.abc import Callable
from typing import Any

from trainshed.core.queue.node_use import Holding, NodeState, PartInUse
from trainshed.core.queue.place import Amount
from trainshed.wire import enums

_ELSEWHERE = {"job": "", "displayName": "another project", "task": ""}


def render_node(state: NodeState, sees: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
    """With the names of jobs in projects that `sees` is true of. Others hold as much, without a name."""
    node = state.node
    answer: dict[str, Any] = {
        "name": node.name,
        "backends": list(node.backends),
        "capacity": render_amount(Amount(node.cpus, node.memory, len(node.gpus))),
        "free": render_amount(state.free),
        "holders": [_holder(holding, sees(holding.job.project)) for holding in state.holdings],
        "use": _use(state),
    }
    if node.gpus:
        answer |= {"gpuName": node.gpu_kind, "gpus": _gpus(state, sees)}
    return answer | ({"acceleratorType": node.accelerator} if node.gpus and node.accelerator else {})


def render_amount(amount: Amount) -> dict[str, Any]:
    return {"cpus": round(amount.cpus, 3), "memoryBytes": str(amount.memory), "gpus": amount.gpus}


def _names(holding: Holding, is_seen: bool) -> dict[str, Any]:
    if not is_seen:
        return dict(_ELSEWHERE)
    return {"job": holding.job.name, "displayName": holding.job.display_name, "task": holding.task}


def _holder(holding: Holding, is_seen: bool) -> dict[str, Any]:
    place = holding.placement
    answer: dict[str, Any] = {
        **_names(holding, is_seen),
        "state": enums.state_name(holding.job.status.state),
        "cpus": round(place.cpus, 3),
        "memoryBytes": str(place.memory),
        "gpus": list(place.gpus),
    }
    if (cpu := holding.use.get("cpu")) is not None:
        answer["cpusUsed"] = round(cpu, 3)
    if (memory := holding.use.get("memory")) is not None:
        answer["memoryBytesUsed"] = str(int(memory))
    return answer


def _gpus(state: NodeState, sees: Callable[[str], bool]) -> list[dict[str, Any]]:
    uses = {use.device: use for use in state.use.gpus}
    holders = {device: holding for holding in state.holdings for device in holding.placement.gpus}
    rows: list[dict[str, Any]] = []
    for device in state.node.gpus:
        row: dict[str, Any] = {"device": device, "free": device in state.free_gpus}
        if (holding := holders.get(device)) is not None:
            row |= _names(holding, sees(holding.job.project))
        if (use := uses.get(device)) is not None:
            row |= {"share": round(use.share, 3), "memoryBytesUsed": str(use.memory)}
            row |= {"memoryBytes": str(use.memory_size)} if use.memory_size else {}
        rows.append(row)
    return rows


def _use(state: NodeState) -> dict[str, Any]:
    """What is not known is left out."""
    use, answer = state.use, dict[str, Any]()
    if use.cpus is not None:
        answer["cpus"] = {"used": round(use.cpus.used, 3), "size": round(use.cpus.size, 3)}
    for name, part in (("memory", use.memory), ("disk", use.disk)):
        if part is not None:
            answer[name] = _bytes(part)
    return answer


def _bytes(part: PartInUse) -> dict[str, str]:
    return {"usedBytes": str(int(part.used)), "sizeBytes": str(int(part.size))}

"""Quotas: how much of each resource the jobs of a share may have, have and wait for. Pure.

`service/quotas.py` counts them. `service/share_limits.py` names in a refusal what `metric` names here. Jobs
that run as spot count for no share: they have quotas of their own, which are those of all machines. What
shares and persistent resources keep for their own jobs is in no number of a share above them, whose own
projects cannot have it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainshed.core.queue.share import CPUS, GPUS, MEMORY, Amounts, ShareTree, Stake
from trainshed.core.queue.share_use import ShareUse, amount_there

TRAINING_METRIC = "aiplatform.googleapis.com/custom_model_training_"  # Google's names begin with it
_MEMORY_OF_GPU = re.compile(r"(?<!a100)_\d+gb$")  # Google's metrics name it of A100 alone


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareQuota:
    item: str  # a resource, as shares name it
    is_spot: bool = False
    limit: float
    used: float = 0
    waiting: float = 0  # what waiting jobs ask for

    @property
    def metric(self) -> str:
        return metric(self.item, is_spot=self.is_spot)


def metric(item: str, *, is_spot: bool = False) -> str:
    """The end of the name that Google's metrics have for a resource, such as nvidia_t4_gpus."""
    name = item.lower()
    if item not in (CPUS, MEMORY, GPUS):
        name = _MEMORY_OF_GPU.sub("", name.replace("tesla_", ""))
        name = name if name.startswith("tpu") else f"{name}_gpus"
    return f"preemptible_{name}" if is_spot else name


def quotas(
    tree: ShareTree, share: str, capacity: Amounts, running: Iterable[Stake], waiting: Iterable[Stake]
) -> tuple[ShareQuota, ...]:
    """The quotas of a share, with the jobs of those below it: CPUs, memory and GPUs, then each type."""
    stakes = list(running)
    used = _counted(tree, share, stakes)
    asked = _counted(tree, share, (each for each in waiting if not _is_apart(tree, each, share)))
    named = {*capacity, *tree.divided, *(item for item, _ in (*used, *asked))}
    kinds = sorted(named - {CPUS, MEMORY, GPUS})
    gpus = (GPUS,) if kinds or capacity.get(GPUS) else ()
    there = {item: amount_there(capacity, item) for item in (CPUS, MEMORY, GPUS, *kinds)}
    unused, use = ShareUse(tree, there), ShareUse(tree, there)
    use.take_all(stakes)
    rows: list[ShareQuota] = []
    for item in (CPUS, MEMORY, *gpus, *kinds):
        parts = {item, GPUS} if item in kinds else {item}  # a type is bounded as all GPUs are
        most = min(unused.most(share, part) for part in parts)
        below = sum(use.used.get((child, item), 0) for child in tree.children[share])
        own = min(below, max(unused.kept_below(share, part) - use.kept_below(share, part) for part in parts))
        for is_spot, limit in ((False, most), (True, there[item])):
            key = item, is_spot
            rows.append(
                ShareQuota(
                    item=item,
                    is_spot=is_spot,
                    limit=limit,
                    used=used.get(key, 0) - (0 if is_spot else own),
                    waiting=asked.get(key, 0),
                )
            )
    return tuple(sorted(rows, key=lambda row: row.is_spot))


def _is_apart(tree: ShareTree, stake: Stake, share: str) -> bool:
    """Whether the job is one of a persistent resource below the share."""
    return stake.share != share and not stake.is_spot and tree.shares[stake.share].is_reserved


def _counted(tree: ShareTree, share: str, stakes: Iterable[Stake]) -> Mapping[tuple[str, bool], float]:
    amounts: dict[tuple[str, bool], float] = {}
    for stake in stakes:
        if stake.is_spot or share in tree.paths[stake.share]:
            for item, amount in stake.amounts.items():
                key = item, stake.is_spot
                amounts[key] = amounts.get(key, 0) + amount
    return amounts

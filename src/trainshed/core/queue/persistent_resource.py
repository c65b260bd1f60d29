"""A PersistentResource: machines that are reserved for the jobs which name it. Pure.

`service/persistent_resources.py` makes and deletes them. Each is a reserved share below the share of its
project: from the moment it is there, no new job from outside gets what it has. It is PROVISIONING while jobs
that run already have some of that. Nothing is stopped for it but spot jobs, which may use what it leaves.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from trainshed.core.errors import Violation
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.ports import Operation
from trainshed.core.queue.place import EPSILON, needs
from trainshed.core.queue.share import (
    ROOT,
    UNDIVIDED,
    Amounts,
    Share,
    ShareTree,
    Stake,
    amounts_of,
    in_amount,
)
from trainshed.core.queue.share_use import ShareUse, amount_there


class ResourceState(StrEnum):
    PROVISIONING = "PROVISIONING"  # running jobs from outside still have some of it
    RUNNING = "RUNNING"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentResource:
    id: str
    project: str
    location: str
    pools: tuple[Pool, ...]  # of machines: without programs
    created_at: datetime
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    started_at: datetime | None = None  # when all of it was seen to be free
    extras: Mapping[str, object] = field(default_factory=dict[str, object])  # echoed, not used

    @property
    def name(self) -> str:
        return f"projects/{self.project}/locations/{self.location}/persistentResources/{self.id}"

    @property
    def state(self) -> ResourceState:
        return ResourceState.PROVISIONING if self.started_at is None else ResourceState.RUNNING

    @property
    def spec(self) -> JobSpec:
        """A job that would use all of it."""
        return JobSpec(pools=self.pools)

    @property
    def amounts(self) -> Amounts:
        return amounts_of(self.spec, needs(self.spec))


class PersistentResourceStore(Protocol):
    """Remembers persistent resources, in the same place as jobs.

    1. a name is taken once in a project and location: AlreadyExists.
    2. what is written is there after the next start, with the operation that was written with it.
    3. a write or delete of what was deleted meanwhile is NotFound.
    """

    async def insert_resource(self, resource: PersistentResource, operation: Operation) -> None: ...

    async def resources(self) -> tuple[PersistentResource, ...]:
        """All there are, oldest first."""
        ...

    async def write_resource(self, resource: PersistentResource) -> None: ...

    async def delete_resource(self, resource: PersistentResource, operation: Operation) -> None: ...


def with_resources(tree: ShareTree | None, resources: Iterable[PersistentResource]) -> ShareTree:
    """The tree with a reserved share for each."""
    base = tree or UNDIVIDED
    reserved = {
        resource.name: Share(
            name=resource.name,
            parent=base.share_of(resource.project),
            nominal=resource.amounts,
            is_reserved=True,
        )
        for resource in resources
    }
    return replace(base, shares={**base.shares, **reserved})


def reservable(tree: ShareTree, share: str, item: str, capacity: Amounts) -> float:
    """How much of a resource another persistent resource may reserve below this share."""
    reserved = sum(tree.nominal[name].get(item, 0) for name in tree.reserved)
    room = amount_there(capacity, item) - reserved
    if item in tree.divided:
        whole = amount_there(capacity, item) if share == ROOT else tree.nominal[share][item]
        room = min(room, whole - sum(tree.nominal[child][item] for child in tree.children[share]))
    return max(0, room)


def too_small(tree: ShareTree, resources: Iterable[PersistentResource]) -> Iterator[Violation]:
    """Of the shares that have less than is reserved in them, beside what the shares below them have."""
    by_share: dict[str, list[PersistentResource]] = {}
    for resource in resources:
        by_share.setdefault(tree.share_of(resource.project), []).append(resource)
    by_share.pop(ROOT, None)  # it has what the machines have
    for share, inside in by_share.items():
        for item in sorted(tree.divided):
            reserved = sum(resource.amounts.get(item, 0) for resource in inside)
            below = sum(tree.nominal[child][item] for child in tree.children[share])
            has = tree.nominal[share][item]
            if reserved and reserved + below > has + EPSILON:
                names = ", ".join(resource.name for resource in inside if resource.amounts.get(item))
                beside = f", beside {in_amount(item, below)} of the shares below it" if below else ""
                text = (
                    f"is {in_amount(item, has)}, less than was reserved in it by {names}: "
                    f"{in_amount(item, reserved)}{beside}. Make it at least "
                    f"{in_amount(item, reserved + below)}, or delete persistent resources."
                )
                yield Violation(f"share.{share}.nominal.{item}", text)


def is_free(use: ShareUse, share: str) -> bool:
    """Whether its jobs could have all that the reserved share has, by the use of all jobs.

    Those from outside leave it on the machines and in the shares above, and no other share keeps it.
    """
    tree = use.tree
    own = tree.nominal[share].items()
    unused = {
        item: rest for item, amount in own if (rest := amount - use.used.get((share, item), 0)) > EPSILON
    }
    whole = Stake(job="", share=share, amounts=unused, created_at=datetime.max.replace(tzinfo=UTC))
    if use.shortage(whole) is not None:
        return False
    for item, amount in tree.nominal[share].items():
        outside = use.used.get((ROOT, item), 0) - use.used.get((share, item), 0)
        others = [name for name in tree.reserved if name != share]
        idle = sum(max(0, tree.nominal[o].get(item, 0) - use.used.get((o, item), 0)) for o in others)
        if outside + idle + amount > amount_there(use.capacity, item) + EPSILON:
            return False
    return True

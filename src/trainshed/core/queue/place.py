"""Places replicas on nodes: what a job needs, what is free, and a place for every replica or for none. Pure.

`core/queue/admit.py` and `core/explain/why.py` call it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from trainshed.core.jobs.job import JobSpec
from trainshed.core.queue.fleet import Fit, Node, Placement
from trainshed.core.queue.machine import GIB, in_cpus

ReplicaSize: TypeAlias = tuple[float, int, int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaNeed:
    """What one replica asks for."""

    pool: int
    index: int
    cpus: float
    memory: int
    gpus: int
    kind: str = ""  # the only type of GPU it takes, where a machine has that type
    node: str = ""  # the only node it may use, where it was cut to fit there

    @property
    def size(self) -> ReplicaSize:
        """All that decides where it fits."""
        return self.cpus, self.memory, self.gpus, self.kind, self.node


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of each resource, as people read it in a waiting reason."""

    cpus: float = 0
    memory: int = 0
    gpus: int = 0
    names_gpus: bool = field(default=False, compare=False)  # say "0 GPUs" too: there are some
    kind: str = field(default="", compare=False)  # the type of GPU that alone is counted

    def plus(self, other: "Amount", sign: int = 1) -> "Amount":
        return Amount(
            self.cpus + sign * other.cpus, self.memory + sign * other.memory, self.gpus + sign * other.gpus
        )

    def __str__(self) -> str:
        named = self.gpus or self.names_gpus
        what = self.kind or f"GPU{'s' if self.gpus != 1 else ''}"
        gpus = f", {self.gpus} {what}" if named else ""
        cpus = in_cpus(self.cpus)
        return f"{cpus} CPU{'s' if cpus != '1' else ''}, {self.memory / GIB:.1f} GiB{gpus}"


def needs(spec: JobSpec, nodes: Iterable[Node] = ()) -> tuple[ReplicaNeed, ...]:
    """A type of GPU counts where one of the nodes has it. Else any GPU will do: it is what there is."""
    kinds = {node.accelerator for node in nodes if node.gpus}
    return tuple(
        ReplicaNeed(
            pool=number,
            index=index,
            cpus=pool.cpus,
            memory=pool.memory,
            gpus=pool.accelerators,
            kind=pool.accelerator if pool.accelerators and pool.accelerator in kinds else "",
        )
        for number, pool in enumerate(spec.pools)
        for index in range(pool.replicas)
    )


def total(parts: Iterable[ReplicaNeed]) -> Amount:
    cpus, memory, gpus = 0.0, 0, 0
    kinds: set[str] = set()
    for part in parts:
        cpus, memory, gpus = cpus + part.cpus, memory + part.memory, gpus + part.gpus
        if part.gpus:
            kinds.add(part.kind)
    return Amount(cpus, memory, gpus, kind=kinds.pop() if len(kinds) == 1 else "")


def capacity(nodes: Iterable[Node], kind: str = "") -> Amount:
    """With a type of GPU, of GPUs those of that type."""
    cpus, memory, gpus = 0.0, 0, 0
    for node in nodes:
        cpus, memory = cpus + node.cpus, memory + node.memory
        gpus += len(node.gpus) if kind in ("", node.accelerator) else 0
    return Amount(cpus, memory, gpus, kind=kind)


EPSILON = 1e-9  # shares of a CPU are floats


class Room:
    """What is free on each node. Mutable on purpose: one scheduling cycle takes from its own copy."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = {n.name: n for n in nodes}
        self.cpus = {n.name: float(n.cpus) for n in nodes}
        self.memory = {n.name: n.memory for n in nodes}
        self.gpus = {n.name: n.gpus for n in nodes}

    def copy(self) -> "Room":
        twin = Room(())
        twin.nodes = self.nodes
        twin.cpus, twin.memory, twin.gpus = dict(self.cpus), dict(self.memory), dict(self.gpus)
        return twin

    def part(self, names: Iterable[str]) -> "Room":
        """A copy of these nodes only."""
        twin = Room(())
        for name in names:
            twin.nodes[name], twin.cpus[name] = self.nodes[name], self.cpus[name]
            twin.memory[name], twin.gpus[name] = self.memory[name], self.gpus[name]
        return twin

    def replace(self, part: "Room") -> None:
        """Set what is free on these nodes."""
        self.cpus.update(part.cpus)
        self.memory.update(part.memory)
        self.gpus.update(part.gpus)

    def free(self, within: frozenset[str] | None = None, kind: str = "") -> Amount:
        """What is free in all. A node that was made smaller than what it runs counts as full.

        With a type of GPU, of GPUs those of that type.
        """
        names = self.nodes if within is None else [name for name in self.nodes if name in within]
        with_gpus = [name for name in names if self.nodes[name].accelerator == kind] if kind else names
        return Amount(
            sum([cpus for name in names if (cpus := self.cpus[name]) > 0], 0.0),
            sum([memory for name in names if (memory := self.memory[name]) > 0]),
            sum([len(self.gpus[name]) for name in with_gpus]),
            names_gpus=any(self.nodes[name].gpus for name in with_gpus),
            kind=kind,
        )

    def free_on(self, node: str) -> Amount:
        return Amount(max(0.0, self.cpus[node]), max(0, self.memory[node]), len(self.gpus[node]))

    def take(self, placements: Iterable[Placement]) -> None:
        for p in placements:
            if p.node in self.nodes:
                self.cpus[p.node] -= p.cpus
                self.memory[p.node] -= p.memory
                if p.gpus:
                    self.gpus[p.node] = tuple([g for g in self.gpus[p.node] if g not in p.gpus])

    def give(self, placements: Iterable[Placement]) -> None:
        for p in placements:
            if p.node in self.nodes:
                self.cpus[p.node] += p.cpus
                self.memory[p.node] += p.memory
                if p.gpus:
                    back = {*self.gpus[p.node], *p.gpus}
                    self.gpus[p.node] = tuple([g for g in self.nodes[p.node].gpus if g in back])

    def place(
        self, wanted: Sequence[ReplicaNeed], within: frozenset[str] | None = None
    ) -> tuple[Placement, ...] | None:
        """Place every replica or none, and take the room. With `within` only these nodes are tried."""
        names: list[str] = []
        placements: list[Placement] = []
        size: ReplicaSize | None = None
        at = 0
        for need in wanted:
            # Where the replica before needs the same, the nodes before its own have no room for this one.
            if need.size != size:
                names, size, at = self._best_first(need, wanted), need.size, 0
            while at < len(names) and not self._has_room(need, names[at], within):
                at += 1
            if at == len(names):
                self.give(placements)
                return None
            place = self._placement(need, names[at])
            self.take((place,))
            placements.append(place)
        return tuple(placements)

    def _best_first(self, need: ReplicaNeed, wanted: Sequence[ReplicaNeed]) -> list[str]:
        """The nodes with enough free GPUs for one replica, in the order in which they are tried.

        First those that have room for all of its size, the fullest before: so whole nodes stay free. Then
        the emptiest: so a gang is on few nodes. Without GPUs nodes are tried in their own order.
        """
        names = self.with_gpus(need.gpus)
        if not need.gpus:
            return names
        together = need.gpus * sum([other.size == need.size for other in wanted])
        free = {name: len(self.gpus[name]) for name in names}
        return sorted(names, key=lambda name: (0, free[name]) if free[name] >= together else (1, -free[name]))

    def with_gpus(self, number: int) -> list[str]:
        """The nodes with so many free GPUs, in their order."""
        return [name for name, ids in self.gpus.items() if len(ids) >= number]

    def _has_room(self, need: ReplicaNeed, name: str, within: frozenset[str] | None) -> bool:
        return (
            need.gpus <= len(self.gpus[name])
            and need.cpus <= self.cpus[name] + EPSILON
            and need.memory <= self.memory[name]
            and may_use(need, self.nodes[name], within)
        )

    def _placement(self, need: ReplicaNeed, name: str) -> Placement:
        return Placement(
            pool=need.pool,
            index=need.index,
            node=name,
            host=self.nodes[name].host,
            cpus=need.cpus,
            memory=need.memory,
            gpus=self.gpus[name][: need.gpus],
        )


def may_use(need: ReplicaNeed, node: Node, within: frozenset[str] | None) -> bool:
    """Whether the replica may be on the node, whatever is free there."""
    return (
        need.kind in ("", node.accelerator)
        and need.node in ("", node.name)
        and (within is None or node.name in within)
        and (need.gpus > 0 or not node.only_gpus)
    )


Fitted: TypeAlias = tuple[tuple[ReplicaNeed, ...], tuple[str, ...]] | None


def fitted(spec: JobSpec, nodes: Sequence[Node], fit: Fit) -> Fitted:
    """The job's needs cut to fit the empty fleet, and what was cut; None where it may not shrink."""
    wanted = needs(spec, nodes)
    if Room(nodes).place(wanted) is not None:
        return wanted, ()
    if fit is Fit.STRICT or not nodes:
        return None
    return _shrink(spec, wanted, nodes)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to place a job: what its replicas get, what was cut for that, and on which nodes."""

    wanted: tuple[ReplicaNeed, ...]
    cuts: tuple[str, ...] = ()
    nodes: frozenset[str] | None = None  # None: on any


def ways(spec: JobSpec, nodes: Sequence[Node], fit: Fit, sites: Sequence[str]) -> tuple[Way, ...]:
    """The ways to place a job at one of these sites, the best first; none where it fits nowhere.

    All replicas are placed at one site. A job is cut only where it would have to be at every site.
    """
    if not sites:
        fits = fitted(spec, nodes, fit)
        return () if fits is None else (Way(*fits),)
    possible: list[Way] = []
    for site in sites:
        there = [node for node in nodes if node.site == site]
        if (fits := fitted(spec, there, fit)) is not None:
            possible.append(Way(*fits, frozenset(node.name for node in there)))
    return tuple(way for way in possible if not way.cuts) or tuple(possible[:1])


def placed(ways: Sequence[Way], room: Room) -> tuple[Way, tuple[Placement, ...] | None]:
    """The first way for which there is room, which is taken; None for the placements where there is none."""
    for way in ways:
        if (placements := room.place(way.wanted, way.nodes)) is not None:
            return way, placements
    return ways[0], None


def eligible(nodes: Sequence[Node], sites: Sequence[str]) -> tuple[Node, ...]:
    return tuple(node for node in nodes if not sites or node.site in sites)


def _shrink(
    spec: JobSpec, wanted: tuple[ReplicaNeed, ...], nodes: Sequence[Node]
) -> tuple[tuple[ReplicaNeed, ...], tuple[str, ...]]:
    """Deal the replicas over the nodes; give each its share of the node, for each resource."""
    kinds = {need.kind for need in wanted if need.kind}
    with_kind = [node for node in nodes if node.accelerator in kinds] if kinds else []
    nodes = with_kind or [node for node in nodes if not node.only_gpus] or nodes
    dealt: list[list[ReplicaNeed]] = [list(wanted[i :: len(nodes)]) for i in range(len(nodes))]
    given: dict[tuple[int, int], ReplicaNeed] = {}
    for node, group in zip(nodes, dealt, strict=True):
        asked = total(group)
        cpu_share = min(1.0, node.cpus / asked.cpus) if asked.cpus else 1.0
        memory_share = min(1.0, node.memory / asked.memory) if asked.memory else 1.0
        gpus_left = len(node.gpus)
        for position, need in enumerate(group):
            fair = -(-gpus_left // (len(group) - position))  # evenly; the first replicas get the remainder
            gpus = min(need.gpus, fair, gpus_left)
            gpus_left -= gpus
            given[need.pool, need.index] = replace(
                need,
                cpus=need.cpus * cpu_share,
                memory=int(need.memory * memory_share),
                gpus=gpus,
                node=node.name,
            )
    shrunk = tuple(given[n.pool, n.index] for n in wanted)
    return shrunk, _cuts(spec, total(wanted), total(shrunk))


def _cuts(spec: JobSpec, asked: Amount, got: Amount) -> tuple[str, ...]:
    cuts: list[str] = []
    if got.cpus < asked.cpus - EPSILON:
        cuts.append(f"CPUs: asked {in_cpus(asked.cpus)}, given {in_cpus(got.cpus)}")
    if got.memory < asked.memory:
        cuts.append(f"memory: asked {asked.memory / GIB:.1f} GiB, given {got.memory / GIB:.1f} GiB")
    if got.gpus < asked.gpus:
        kinds = ", ".join(dict.fromkeys(p.accelerator for p in spec.pools if p.accelerator))
        cuts.append(f"accelerators ({kinds}): asked {asked.gpus}, given {got.gpus}")
    return tuple(cuts)

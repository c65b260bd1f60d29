"""GrowingRoom: says when there is room for a job, while what others hold is given back bit by bit. Pure.

`core/queue/admit.py` asks it when a head can start, `core/queue/preempt.py` how many jobs must stop. To try a
placement after each step would cost all nodes each time. This counts how many replicas of each size fit on
each node, and looks again only at nodes that have changed. Where the counts are enough, but may be too large,
it tries a placement: so the answer is always that of `Room.place`.
"""

from collections import Counter
from collections.abc import Collection
from typing import TypeAlias

from trainshed.core.queue.fleet import Node, Placement
from trainshed.core.queue.place import EPSILON, ReplicaNeed, Room, Way, may_use

SLACK = 1e-6  # of a CPU: a count may be too large, and is never too small
SURE = EPSILON / 10  # of a CPU: where a count needs no more than this, it is not too large

Given: TypeAlias = tuple[float, int, int]  # CPUs, bytes of memory and GPUs of a node


class GrowingRoom:
    def __init__(self, ways: tuple[Way, ...], room: Room) -> None:
        """Changes the room that it is given."""
        self.room = room
        self._counts = [(way, [SizeCount(way, *size) for size in _sizes(way)]) for way in ways]
        for _, counts in self._counts:
            for count in counts:
                count.look(room, room.with_gpus(count.need.gpus))  # none fits on the others

    def give(self, placements: Collection[Placement]) -> None:
        self.room.give(placements)
        self._look({place.node for place in placements})

    def take(self, placements: Collection[Placement]) -> None:
        self.room.take(placements)
        self._look({place.node for place in placements})

    def has_room(self) -> bool:
        """Whether the job could be placed now. Takes nothing."""
        return any(self._has_room(way, counts) for way, counts in self._counts)

    def _has_room(self, way: Way, counts: "list[SizeCount]") -> bool:
        for count in counts:
            if not count.is_enough:
                return False
        return (len(counts) == 1 and counts[0].is_sure) or self._fits(way, counts)

    def fitting_nodes(self) -> set[str]:
        """The nodes on which a replica of some size fits."""
        return {name for _, counts in self._counts for count in counts for name in count.on}

    def _fits(self, way: Way, counts: "list[SizeCount]") -> bool:
        names: Collection[str] = {name for count in counts for name in count.on}
        if len(counts) > 1:  # then it matters in which order nodes are tried
            names = [name for name in self.room.nodes if name in names]
        return self.room.part(names).place(way.wanted, way.nodes) is not None

    def missing(self) -> "SizeCount | None":
        """A size of which not all replicas have room; None where the counts say that all have."""
        return next((count for _, counts in self._counts for count in counts if not count.is_enough), None)

    def _look(self, names: Collection[str]) -> None:
        for _, counts in self._counts:
            for count in counts:
                count.look(self.room, names)


class SizeCount:
    """How many replicas of one size fit at most: on each node, and in all."""

    def __init__(self, way: Way, need: ReplicaNeed, wanted: int) -> None:
        self.way, self.need, self.wanted = way, need, wanted
        self._fitting = 0
        self.on: dict[str, int] = {}  # only nodes on which one fits
        self._unsure: set[str] = set()  # nodes where it may be fewer

    @property
    def is_enough(self) -> bool:
        return self._fitting >= self.wanted

    @property
    def is_sure(self) -> bool:
        """Whether so many fit indeed, while nothing of another size is placed."""
        return not self._unsure

    def look(self, room: Room, names: Collection[str]) -> None:
        for name in names:
            if (node := room.nodes.get(name)) is not None:
                number = self._number(node, cpus := room.cpus[name], room.memory[name], len(room.gpus[name]))
                self._fitting += number - self.on.pop(name, 0)
                if number:
                    self.on[name] = number
                if number and number * self.need.cpus > cpus + SURE:
                    self._unsure.add(name)
                else:
                    self._unsure.discard(name)

    def fits_more(self, room: Room, name: str, given: Given) -> bool:
        """Whether one more has room on this node once so much is given back there."""
        cpus, memory = room.cpus[name] + given[0], room.memory[name] + given[1]
        gpus = len(room.gpus[name]) + given[2]
        return self._number(room.nodes[name], cpus, memory, gpus) > self.on.get(name, 0)

    def _number(self, node: Node, cpus: float, memory: int, gpus: int) -> int:
        need, number = self.need, self.wanted
        if need.gpus:
            number = min(number, gpus // need.gpus)
        if need.memory and number:
            number = min(number, memory // need.memory)
        if need.cpus and number:
            number = min(number, int((cpus + SLACK) / need.cpus))
        return number if number > 0 and may_use(need, node, self.way.nodes) else 0


def _sizes(way: Way) -> list[tuple[ReplicaNeed, int]]:
    """A need of each size, and how many replicas have it."""
    numbers = Counter(need.size for need in way.wanted)
    first = {need.size: need for need in reversed(way.wanted)}
    return [(first[size], number) for size, number in numbers.items()]

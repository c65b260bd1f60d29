"""GrowingRoom: says when there is room for a job, while what others hold is given back bit by bit. Pure.

`core/admit.py` asks it when a head can start, `core/preempt.py` how many jobs must stop. To try a placement
after each step would cost all nodes each time. This counts how many replicas of each size fit on each node,
and looks again only at nodes that have changed. Only where the counts are enough is a placement tried, so the
answer is always that of `Room.place`.
"""

from collections import Counter
from collections.abc import Collection

from trainshed.core.fleet import Node, Placement
from trainshed.core.place import ReplicaNeed, Room, Way, may_use, placed

SLACK = 1e-6  # of a CPU: a count may be too large, and is never too small


class GrowingRoom:
    def __init__(self, ways: tuple[Way, ...], room: Room) -> None:
        """Changes the room that it is given."""
        self.room = room
        self._counts = [(way, [_SizeCount(way, *size) for size in _sizes(way)]) for way in ways]
        for _, counts in self._counts:
            for count in counts:
                count.look(room, room.with_gpus(count.need.gpus))  # none fits on the others

    def give(self, placements: Collection[Placement]) -> None:
        self.room.give(placements)
        self._look({place.node for place in placements})

    def take(self, placements: Collection[Placement]) -> None:
        self.room.take(placements)
        self._look({place.node for place in placements})

    def placed(self) -> tuple[Placement, ...] | None:
        """Where the job would be now; None where there is no room. Takes nothing."""
        ways = [way for way, counts in self._counts if all(count.is_enough for count in counts)]
        return placed(ways, self.room.copy())[1] if ways else None

    def _look(self, names: Collection[str]) -> None:
        for _, counts in self._counts:
            for count in counts:
                count.look(self.room, names)


class _SizeCount:
    """How many replicas of one size fit at most: on each node, and in all."""

    def __init__(self, way: Way, need: ReplicaNeed, wanted: int) -> None:
        self.way, self.need, self.wanted = way, need, wanted
        self._fitting = 0
        self._on: dict[str, int] = {}

    @property
    def is_enough(self) -> bool:
        return self._fitting >= self.wanted

    def look(self, room: Room, names: Collection[str]) -> None:
        for name in names:
            if (node := room.nodes.get(name)) is not None:
                number = self._number(room, node)
                self._fitting += number - self._on.get(name, 0)
                self._on[name] = number

    def _number(self, room: Room, node: Node) -> int:
        need, name, number = self.need, node.name, self.wanted
        if need.gpus:
            number = min(number, len(room.gpus[name]) // need.gpus)
        if need.memory and number:
            number = min(number, room.memory[name] // need.memory)
        if need.cpus and number:
            number = min(number, int((room.cpus[name] + SLACK) / need.cpus))
        return number if number > 0 and may_use(need, node, self.way.nodes) else 0


def _sizes(way: Way) -> list[tuple[ReplicaNeed, int]]:
    """A need of each size, and how many replicas have it."""
    numbers = Counter(need.size for need in way.wanted)
    first = {need.size: need for need in reversed(way.wanted)}
    return [(first[size], number) for size, number in numbers.items()]

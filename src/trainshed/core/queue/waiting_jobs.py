"""The waiting jobs in the order of the queue, grouped by shape. Nothing is decided here.

The scheduler keeps one and changes it job by job; `core/explain/change.py` and `core/explain/foresee.py` make
their own. A cycle walks through it without looking at every job: once a shape is refused, the walk skips all
others of that shape. Where shares are set, the jobs of each share stand in order, those that run as spot
apart, and the cycle says from which of them the next job comes. What the jobs come to on the machines is
remembered here from cycle to cycle (`core/queue/demands.py`).

To add or remove a job is a binary search and an insertion into a list. The insertion is a memmove:
microseconds for 10,000 jobs.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy
from heapq import heapify, heappop, heappush, heapreplace, merge
from itertools import islice
from typing import Any, Protocol, TypeAlias

from trainshed.core.jobs.job import Job
from trainshed.core.queue.demands import Demands
from trainshed.core.queue.fleet import Fit, Node
from trainshed.core.queue.shape import Order, Shape, Sites, order, shape_of
from trainshed.core.queue.share import ShareTree

Group: TypeAlias = tuple[str, bool]  # a share, and whether these jobs run as spot


class Turns(Protocol):
    """Says which of the groups the next job comes from: that whose first job has the smallest turn."""

    @property
    def changes(self) -> int:
        """Rises when the turn of a job may be another one than before."""
        ...

    def __call__(self, job: Job) -> Any: ...


class WaitingJobs:
    def __init__(
        self,
        jobs: Iterable[Job] = (),
        sites: Mapping[str, Sites] | None = None,
        tree: ShareTree | None = None,
    ) -> None:
        self.tree = tree
        self._jobs: dict[str, tuple[Job, Shape]] = {}
        self.sites: dict[str, Sites] = {}  # where each may be placed, by its id; not on any node only
        self._shapes: dict[Shape, list[Order]] = {}  # the places of each shape's jobs, in order
        self._same: dict[Shape, Shape] = {}  # jobs of one shape keep one tuple
        # The first job of each shape that is not set aside, in order, by group.
        self._firsts: dict[Group, list[tuple[Order, Shape]]] = {}
        self._aside: set[Shape] = set()
        self._demands = Demands()
        for job in jobs:
            self.put(job, (sites or {}).get(job.id, ()))

    def copy(self) -> "WaitingJobs":
        """The same jobs, in less time than to put each again."""
        twin = copy(self)
        twin.sites, twin._jobs, twin._same = dict(self.sites), dict(self._jobs), dict(self._same)
        twin._shapes = {shape: list(places) for shape, places in self._shapes.items()}
        twin._firsts = {group: list(firsts) for group, firsts in self._firsts.items()}
        twin._aside = set(self._aside)
        return twin

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    def __iter__(self) -> Iterator[Job]:
        return (job for job, _ in self._jobs.values())

    def get(self, job: str) -> Job | None:
        return self._jobs[job][0] if job in self._jobs else None

    def shape(self, job: Job) -> Shape | None:
        """None for a job that does not wait, and for another version of one that does."""
        known = self._jobs.get(job.id)
        return known[1] if known is not None and known[0] is job else None

    def put(self, job: Job, sites: Sites = ()) -> None:
        """Add the job; a newer version of a known job replaces it in its place, with the sites it has."""
        if (known := self._jobs.get(job.id)) is not None:
            self._jobs[job.id] = job, known[1]
            return
        if sites:
            self.sites[job.id] = sites
        shape, place = shape_of(job, sites, self.tree), order(job)
        shape = self._same.setdefault(shape, shape)
        self._jobs[job.id] = job, shape
        places = self._shapes.setdefault(shape, [])
        if places and place > places[0]:
            insort(places, place)
            return
        self._leave_firsts(shape)
        places.insert(0, place)
        self._join_firsts(shape)

    def remove(self, id: str) -> None:
        known = self._jobs.pop(id, None)
        if known is None:
            return
        self._demands.forget(id)
        self.sites.pop(id, None)
        shape, place = known[1], order(known[0])
        places = self._shapes[shape]
        at = bisect_left(places, place)
        if at > 0:
            del places[at]
            return
        self._leave_firsts(shape)
        del places[0]
        self._join_firsts(shape)
        if not places:
            del self._shapes[shape], self._same[shape]
            self._aside.discard(shape)

    def set_aside(self, shape: Shape) -> None:
        """Leave the shape out of every walk until `bring_back`: it fits no machine."""
        if shape in self._shapes and shape not in self._aside:
            self._leave_firsts(shape)
            self._aside.add(shape)

    def aside(self) -> Iterator[Job]:
        """The jobs of these shapes, in order."""
        places = merge(*[self._shapes[shape] for shape in self._aside])
        return (self._jobs[place[-1]][0] for place in places)

    def bring_back(self) -> None:
        aside, self._aside = self._aside, set[Shape]()
        for shape in aside:
            self._join_firsts(shape)

    def demands(self, nodes: tuple[Node, ...], fit: Fit, tree: ShareTree | None) -> Demands:
        """What these jobs come to on these machines, as far as it was worked out before."""
        if not self._demands.is_of(nodes, fit, tree):
            self._demands = Demands(nodes, fit, tree)
        return self._demands

    def groups(self) -> tuple[Group, ...]:
        """Those that have jobs which are not set aside."""
        return tuple(self._firsts)

    def counts(self) -> Counter[str]:
        """How many jobs of each share there are, those that are set aside too."""
        counts: Counter[str] = Counter()
        for shape, places in self._shapes.items():
            counts[shape[3].share] += len(places)
        return counts

    def in_order(self, closed: Container[Shape], turn: Turns | None = None) -> Iterator[Job]:
        """The jobs in order. No more jobs of a shape follow once it is in `closed`.

        Of several groups the one follows whose first job has the smallest `turn` at that moment. Do not add
        or remove jobs during the walk.
        """
        if turn is None or len(self._firsts) < 2:
            for group in self.groups():
                yield from self.of_group(group, closed)
            return
        walks = [self.of_group(group, closed) for group in self.groups()]
        upcoming = [(turn(job), at, job) for at, walk in enumerate(walks) for job in islice(walk, 1)]
        heapify(upcoming)
        changes = turn.changes
        while upcoming:
            if changes != turn.changes:
                changes = turn.changes
                upcoming = [(turn(job), at, job) for _, at, job in upcoming]
                heapify(upcoming)
            _, at, job = upcoming[0]
            yield job
            if (following := next(walks[at], None)) is not None:
                heapreplace(upcoming, (turn(following), at, following))
            else:
                heappop(upcoming)

    def of_group(self, group: Group, closed: Container[Shape]) -> Iterator[Job]:
        """As `in_order`, the jobs of one group."""
        return (job for _, job, _ in self.places_of(group, closed))

    def places_of(self, group: Group, closed: Container[Shape]) -> Iterator[tuple[Order, Job, Shape]]:
        """As `of_group`, with the place and the shape of each."""
        firsts, jobs = self._firsts.get(group, []), self._jobs
        upcoming: list[tuple[Order, Shape, int]] = []  # a heap: the next job of each shape that was begun
        at = 0
        while upcoming or at < len(firsts):
            if upcoming and (at == len(firsts) or upcoming[0][0] < firsts[at][0]):
                place, shape, number = heappop(upcoming)
            else:
                (place, shape), number = firsts[at], 0
                at += 1
            yield place, jobs[place[-1]][0], shape
            places, number = self._shapes[shape], number + 1
            if number < len(places) and shape not in closed:
                heappush(upcoming, (places[number], shape, number))

    def _leave_firsts(self, shape: Shape) -> None:
        places = self._shapes[shape]
        if places and shape not in self._aside:
            firsts = self._firsts[group := shape[3][:2]]
            del firsts[bisect_left(firsts, (places[0],))]
            if not firsts:
                del self._firsts[group]

    def _join_firsts(self, shape: Shape) -> None:
        places = self._shapes[shape]
        if places and shape not in self._aside:
            insort(self._firsts.setdefault(shape[3][:2], []), (places[0], shape))

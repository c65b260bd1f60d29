"""The waiting jobs in the order of the queue, those of one shape together.

The scheduler keeps one of these and changes it job by job. A cycle goes through it without looking at every
job: once a shape is refused, the walk leaves out all others of that shape. Nothing is decided here.

To put a job in or take one out is a binary search and an insertion into a list. The insertion moves the rest
of the list by memmove: microseconds for 10,000 jobs.
"""

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator
from heapq import heappop, heappush

from trainshed.core.admit import Order, Shape, order, shape_of
from trainshed.core.job import Job


class WaitingJobs:
    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._jobs: dict[str, Job] = {}
        self._shapes: dict[Shape, list[Order]] = {}  # where the jobs of a shape stand, in order
        self._firsts: list[
            tuple[Order, Shape]
        ] = []  # the first job of each shape that is not aside, in order
        self._aside: set[Shape] = set()
        for job in jobs:
            self.put(job)

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def get(self, job: str) -> Job | None:
        return self._jobs.get(job)

    def put(self, job: Job) -> None:
        """Take the job in; a newer version of one that is here replaces it at its place."""
        known = job.id in self._jobs
        self._jobs[job.id] = job
        if known:
            return
        shape, place = shape_of(job), order(job)
        places = self._shapes.setdefault(shape, [])
        if places and place > places[0]:
            insort(places, place)
            return
        self._leave_firsts(shape)
        places.insert(0, place)
        self._join_firsts(shape)

    def remove(self, id: str) -> None:
        job = self._jobs.pop(id, None)
        if job is None:
            return
        shape, place = shape_of(job), order(job)
        places = self._shapes[shape]
        at = bisect_left(places, place)
        if at > 0:
            del places[at]
            return
        self._leave_firsts(shape)
        del places[0]
        self._join_firsts(shape)
        if not places:
            del self._shapes[shape]
            self._aside.discard(shape)

    def set_aside(self, shape: Shape) -> None:
        """Leave these out of every walk until `bring_back`: they fit no machine there is."""
        if shape in self._shapes and shape not in self._aside:
            self._leave_firsts(shape)
            self._aside.add(shape)

    def bring_back(self) -> None:
        aside, self._aside = self._aside, set[Shape]()
        for shape in aside:
            self._join_firsts(shape)

    def in_order(self, closed: Container[Shape]) -> Iterator[Job]:
        """Job after job; of a shape that is in `closed` by the time the next one is asked for, no more.

        The jobs may not be changed while this goes on.
        """
        next_ones: list[tuple[Order, Shape, int]] = []  # a heap: of each shape begun, the next job
        at = 0
        while next_ones or at < len(self._firsts):
            if next_ones and (at == len(self._firsts) or next_ones[0][0] < self._firsts[at][0]):
                place, shape, number = heappop(next_ones)
            else:
                (place, shape), number = self._firsts[at], 0
                at += 1
            yield self._jobs[place[-1]]
            places, number = self._shapes[shape], number + 1
            if shape not in closed and number < len(places):
                heappush(next_ones, (places[number], shape, number))

    def _leave_firsts(self, shape: Shape) -> None:
        places = self._shapes[shape]
        if places and shape not in self._aside:
            del self._firsts[bisect_left(self._firsts, (places[0],))]

    def _join_firsts(self, shape: Shape) -> None:
        places = self._shapes[shape]
        if places and shape not in self._aside:
            insort(self._firsts, (places[0], shape))

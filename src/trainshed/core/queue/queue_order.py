"""QueueOrder: all waiting jobs in the order in which the scheduler tries them. Nothing is decided here.

`service/queue.py` keeps one up to date from the store's commits, so that a page of a long queue costs the
same as one of a short queue. The scheduler does not use it: `WaitingJobs` has the ready jobs by shape.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator

from trainshed.core.jobs.job import Job
from trainshed.core.queue.shape import Order, order
from trainshed.core.queue.snapshot import is_waiting


class QueueOrder:
    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._places: list[Order] = []
        self._counts: Counter[tuple[str, str]] = Counter()  # by project and location

    def count(self, project: str, location: str) -> int:
        """How many jobs of the project and location wait ("-": of all)."""
        return sum(
            number
            for (of, at), number in self._counts.items()
            if project in ("-", of) and location in ("-", at)
        )

    def get(self, job: str) -> Job | None:
        return self._jobs.get(job)

    def follow(self, job: Job, is_deleted: bool) -> None:
        """Take in what was just committed. A waiting job keeps its place: its priority never changes."""
        if not is_deleted and is_waiting(job):
            if job.id not in self._jobs:
                insort(self._places, order(job))
                self._counts[job.project, job.location] += 1
            self._jobs[job.id] = job
        elif (known := self._jobs.pop(job.id, None)) is not None:
            del self._places[bisect_left(self._places, order(known))]
            self._counts[known.project, known.location] -= 1

    def behind(self, place: Order | None = None) -> Iterator[tuple[int, Job]]:
        """The jobs behind that place, or all of them, each with how many jobs are before it."""
        start = 0 if place is None else bisect_right(self._places, place)
        for at in range(start, len(self._places)):
            yield at, self._jobs[self._places[at][-1]]

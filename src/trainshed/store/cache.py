"""Decoded jobs, kept by id and version while they fit a budget.

A job of a given version never changes, so an entry can be used whenever the row still has that version;
it is never an answer by itself. The budget is by weight, so that a thousand jobs of one replica and one
job of a thousand replicas cost alike, and memory does not grow with finished jobs. Safe to use from
several threads.
"""

from collections import OrderedDict
from threading import Lock

from trainshed.core.job import Job
from trainshed.store.codec import dump_plain

BUDGET = 4_000_000  # roughly bytes: about a thousand small jobs


def weight(job: Job) -> int:
    """A rough size in bytes; exact would cost more than it is worth."""
    size = 3000 + 400 * len(job.status.replicas)
    for pool in job.spec.pools:
        size += 500 + sum(map(len, pool.args)) + 80 * len(pool.args)
        size += sum(len(name) + len(value) + 160 for name, value in pool.env)
    # Few jobs have any, and those of a pipeline may be as large as a request.
    return size + 4 * len(dump_plain(job.extras)) if job.extras else size


class Decoded:
    """The most recently used jobs, as they were read."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._weight = 0
        self._jobs: OrderedDict[str, tuple[Job, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, job: str, version: int) -> Job | None:
        with self._lock:
            entry = self._jobs.get(job)
            if entry is None or entry[0].version != version:
                return None
            self._jobs.move_to_end(job)
            return entry[0]

    def latest(self, job: str) -> Job | None:
        """The entry of any version: an answer only where the caller puts in every version there is."""
        entry = self._jobs.get(job)
        return None if entry is None else entry[0]

    def put(self, job: Job) -> None:
        size = weight(job)
        with self._lock:
            self._remove(job.id)
            self._jobs[job.id] = (job, size)
            self._weight += size
            while self._weight > self._budget and len(self._jobs) > 1:
                _, (_, oldest) = self._jobs.popitem(last=False)
                self._weight -= oldest

    def drop(self, job: str) -> None:
        with self._lock:
            self._remove(job)

    def __len__(self) -> int:
        return len(self._jobs)

    def _remove(self, job: str) -> None:
        entry = self._jobs.pop(job, None)
        if entry is not None:
            self._weight -= entry[1]

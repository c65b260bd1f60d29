"""A cache of decoded jobs by id and version, limited by a budget.

The store's threads use it. A job of a given version never changes, so an entry is valid while the row has
that version; the caller compares the version. The budget counts weight, so a thousand jobs of one replica
cost as much as one job of a thousand replicas. Memory does not grow with finished jobs. It is thread-safe.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TypeAlias

from trainshed.core.jobs.job import Job
from trainshed.store.codec import dump_plain

BUDGET = 4_000_000  # roughly bytes: about a thousand small jobs


def weight(job: Job) -> int:
    """A rough size in bytes; an exact one would cost too much."""
    size = 3000 + 400 * len(job.status.replicas)
    for pool in job.spec.pools:
        size += 500 + sum(map(len, pool.args)) + 80 * len(pool.args)
        size += sum(len(name) + len(value) + 160 for name, value in pool.env)
    # Few jobs have an origin or extras, but a record may be as large as a request.
    size += 4 * len(dump_plain(job.extras)) if job.extras else 0
    return size + (0 if job.origin is None else 4 * len(dump_plain(job.origin.record)))


# Sets the words of a job's origin, which are not stored. By the kind of the origin.
OriginReaders: TypeAlias = Mapping[str, Callable[[Job], Job]]


class Decoded:
    """The most recently used decoded jobs."""

    def __init__(self, budget: int = BUDGET, origins: OriginReaders | None = None) -> None:
        self.origins = origins or {}
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
        """The entry whatever its version. Valid only if the caller puts every version there is."""
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

    def clear(self) -> None:
        with self._lock:
            self._jobs.clear()
            self._weight = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def _remove(self, job: str) -> None:
        entry = self._jobs.pop(job, None)
        if entry is not None:
            self._weight -= entry[1]

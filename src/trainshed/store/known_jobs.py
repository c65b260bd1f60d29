"""KnownJobs: the jobs that SqlStore has in memory, as last committed, and the followers of commits.

It has every job that is not final, and the few that have just ended: whoever waited for them reads them now.
Only the event loop's thread calls it. It reads and writes nothing else.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from trainshed.core.jobs.job import Job
from trainshed.store.cache import Decoded

log = logging.getLogger(__name__)

JUST_ENDED = 400_000  # roughly bytes


class KnownJobs:
    """`decoded` has the finished jobs that were read lately."""

    def __init__(self, decoded: Decoded) -> None:
        self.active: dict[str, Job] = {}
        self._ended = Decoded(JUST_ENDED)
        self._decoded = decoded
        self._followers: list[Callable[[Job, bool], None]] = []

    def get(self, job: str) -> Job | None:
        return self.active.get(job) or self._ended.latest(job)

    def follow(self, follow: Callable[[Job, bool], None]) -> None:
        """Call follow(job, is_deleted) for every active job now, and at each commit from now on."""
        self._followers.append(follow)
        for job in self.active.values():
            follow(job, False)

    def remember(self, job: Job) -> None:
        """Take in what was just committed."""
        known = self.get(job.id)
        if known is not None and known.version > job.version:
            return  # the writer read it before a shortcut's write, and this is called after that
        self._put(job)

    def forget(self, job: Job) -> None:
        """The job was deleted."""
        self.active.pop(job.id, None)
        self._ended.drop(job.id)
        self._decoded.drop(job.id)
        self._tell(job, is_deleted=True)

    def forget_ended(self) -> None:
        """Have finished jobs read again: a database that lost commits gives their versions a second time."""
        self._ended.clear()
        self._decoded.clear()

    def replace(self, before: Mapping[str, Job], stored: Sequence[Job]) -> None:
        """Take in what the database really has of the jobs in `before`, which were known when it was read.

        A job that was committed since stays as it is.
        """
        for job in stored:
            known = self.get(job.id)
            if known is None or known is not before.get(job.id):
                self.remember(job)
                continue
            if known.version > job.version:
                log.warning(
                    "job %s: the database has lost changes (it has version %d, and %d was committed); "
                    "the job goes on from what the database has",
                    *(job.id, job.version, known.version),
                )
            self._ended.drop(job.id)
            self._put(job)
        for id in before.keys() - {job.id for job in stored}:
            if self.get(id) is before[id]:
                log.warning("job %s: the database no longer has it", id)
                self.forget(before[id])

    def _put(self, job: Job) -> None:
        if job.is_final:
            self.active.pop(job.id, None)
            self._ended.put(job)
            self._decoded.put(job)
        else:
            self.active[job.id] = job
        self._tell(job, is_deleted=False)

    def _tell(self, job: Job, *, is_deleted: bool) -> None:
        for follow in self._followers:
            follow(job, is_deleted)

"""The jobs that are not over, sorted as the scheduler needs them.

The store calls `follow` at each commit (`Store.on_commit`), so nothing is read again, and a change costs the
same however many jobs wait. The scheduler calls `set_ready` and `set_unready` for waiting jobs. The backlog
decides nothing and writes nothing.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from trainshed.core.jobs.job import Job
from trainshed.core.queue.shape import Sites
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import is_waiting
from trainshed.core.queue.waiting_jobs import WaitingJobs


@dataclass(slots=True)
class Backlog:
    admitted: dict[str, Job] = field(default_factory=dict[str, Job])  # or being ended: all that do not wait
    unseen: dict[str, Job] = field(default_factory=dict[str, Job])  # not looked at by any cycle yet
    unready: OrderedDict[str, Job] = field(default_factory=OrderedDict[str, Job])  # least recently seen first
    ready: WaitingJobs = field(default_factory=WaitingJobs)
    claimants: dict[str, Job] = field(default_factory=dict[str, Job])  # those that others are stopped for
    spots: set[str] = field(default_factory=set[str])  # jobs that run as spot, or wait to
    changes: int = 0  # commits so far
    marks: dict[str, int] = field(default_factory=dict[str, int])  # recorded progress of unready jobs

    @property
    def is_empty(self) -> bool:
        """Whether no job waits."""
        return not (self.ready or self.unready or self.unseen)

    def follow(self, job: Job, is_deleted: bool) -> None:
        """Take in what was just committed."""
        self.changes += 1
        if not is_deleted and is_waiting(job) and job.status.claim is not None:
            self.claimants[job.id] = job
        else:
            self.claimants.pop(job.id, None)
        if job.spec.scheduling.is_spot:
            self.spots.add(job.id)
        if is_deleted or job.is_final:
            self.spots.discard(job.id)
            self._forget_waiting(job.id)
            self.admitted.pop(job.id, None)
        elif not is_waiting(job):
            self._forget_waiting(job.id)
            self.admitted[job.id] = job
        elif job.id in self.ready:
            self.ready.put(job)
        elif job.id in self.unready:
            self.unready[job.id] = job
        else:
            self.admitted.pop(job.id, None)
            self.unseen[job.id] = job

    def divide(self, tree: ShareTree | None) -> None:
        """Group the ready jobs by these shares, where they have changed."""
        before = self.ready.tree
        if before is not tree and (before is None or tree is None or not tree.groups_as(before)):
            self.ready = WaitingJobs(self.ready, self.ready.sites, tree)

    def set_ready(self, job: Job, sites: Sites = ()) -> None:
        self._forget_waiting(job.id)
        self.ready.put(job, sites)

    def set_unready(self, job: Job) -> None:
        self.unseen.pop(job.id, None)
        self.ready.remove(job.id)
        self.unready[job.id] = job
        self.unready.move_to_end(job.id)

    def _forget_waiting(self, id: str) -> None:
        self.unseen.pop(id, None)
        self.unready.pop(id, None)
        self.marks.pop(id, None)
        self.ready.remove(id)

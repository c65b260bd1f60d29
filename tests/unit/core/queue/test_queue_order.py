"""All waiting jobs in the order of the queue, from what was committed alone."""

from dataclasses import replace

from tests.builders import a_job, admitted, at
from trainshed.core.jobs.job import Job, Scheduling
from trainshed.core.queue.queue_order import QueueOrder
from trainshed.core.queue.shape import order


def queued(id: str, *, seconds: float = 0, priority: int = 0) -> Job:
    return a_job(id=id, created_at=at(seconds), scheduling=Scheduling(priority=priority))


def followed(*jobs: Job) -> QueueOrder:
    queue = QueueOrder()
    for job in jobs:
        queue.follow(job, False)
    return queue


def ids(queue: QueueOrder) -> list[str]:
    return [job.id for _, job in queue.behind()]


def test_jobs_come_by_priority_then_age_then_id():
    queue = followed(queued("c", seconds=2), queued("b"), queued("a"), queued("d", seconds=9, priority=1))
    assert ids(queue) == ["d", "a", "b", "c"]


def test_a_job_that_is_admitted_or_deleted_leaves_the_queue():
    queue = followed(queued("a"), queued("b"), queued("c"))
    queue.follow(admitted(queued("a")), False)
    queue.follow(queued("c"), True)
    queue.follow(queued("unknown"), True)
    assert ids(queue) == ["b"]
    assert [queue.count(*of) for of in (("-", "-"), ("shed", "here"), ("other", "-"))] == [1, 1, 0]


def test_a_newer_version_of_a_waiting_job_takes_the_place_of_the_older():
    queue = followed(queued("a"), replace(queued("a"), version=2), queued("b"))
    assert [(at, job.version) for at, job in queue.behind()] == [(0, 2), (1, 1)]


def test_a_walk_goes_on_behind_a_place_also_where_its_job_is_gone():
    queue = followed(queued("a"), queued("b"), queued("c"))
    place = order(queued("b"))
    queue.follow(admitted(queued("b")), False)
    assert [(at, job.id) for at, job in queue.behind(place)] == [(1, "c")]

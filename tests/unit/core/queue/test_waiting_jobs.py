"""The waiting jobs in order: a copy of them goes its own way."""

from tests.builders import a_job, at
from trainshed.core.queue.waiting_jobs import WaitingJobs


def test_a_copy_has_the_same_jobs_and_changes_nothing_of_the_first():
    queue = WaitingJobs([a_job(id=f"{n}", created_at=at(n)) for n in range(3)])
    twin = queue.copy()
    twin.remove("0")
    twin.put(a_job(id="new", created_at=at(-1)))
    assert [job.id for job in queue.in_order(())] == ["0", "1", "2"]
    assert [job.id for job in twin.in_order(())] == ["new", "1", "2"]

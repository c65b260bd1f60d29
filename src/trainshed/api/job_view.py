"""A job in answers: with Google's fields, and in our own view with those that Google's API lacks.

`custom_jobs.py` renders one job by it and `job_lists.py` many, so both views have the same fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainshed.api.call import Call, Json
from trainshed.core.jobs.job import Job
from trainshed.core.metrics import Progress
from trainshed.core.queue.guarantee import Standing
from trainshed.service.job_lists import JobLists
from trainshed.wire.custom_job import render_custom_job
from trainshed.wire.job_row import render_job_row
from trainshed.wire.metrics import render_progress

OWN_VIEW = "trainshed"  # requested by our own clients: Google's fail on fields that they do not know


def wants_own_view(call: Call) -> bool:
    return call.query.get("view") == OWN_VIEW


def render_job(call: Call, job: Job) -> Json:
    return render_custom_job(job, enum_ints=call.enum_ints, base_url=call.base_url)


@dataclass(slots=True)
class OwnJobFields:
    lists: JobLists
    progress: Callable[[str], Progress | None]  # of a running job
    standings: Callable[[], Mapping[str, Standing]] = dict[str, Standing]  # of running jobs in their shares

    async def of(self, jobs: Sequence[Job]) -> list[Json]:
        """What our own view adds to each of the jobs, in their order."""
        used = await self.lists.used(jobs)
        standings = self.standings()
        return [
            render_job_row(job, used[job.id], standings.get(job.id)) | self._progress(job) for job in jobs
        ]

    def standing(self, job: Job) -> Json:
        standing = None if job.status.admission is None or job.is_final else self.standings().get(job.id)
        return {} if standing is None else {"standing": standing.value}

    def _progress(self, job: Job) -> Json:
        progress = {} if job.is_final else render_progress(self.progress(job.id))
        return {"progress": progress} if progress else {}

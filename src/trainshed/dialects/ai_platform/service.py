"""Use cases of jobs of AI Platform Training, the older API, which names jobs by the jobId their owners chose.

`http.py` calls it. Such a job is submitted, cancelled and run like any other (`service/jobs.py`).
This module adds the jobId, which is unique in a project because the job is inserted under a key made from it;
labels that can be changed; and the listing of operations.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.ports import JobPage, Operation
from trainshed.core.query import JobQuery
from trainshed.core.view import SCHEME, address
from trainshed.dialects.ai_platform.origin import KIND, TrainingJobRecord, key_of, record_of
from trainshed.service.jobs import TRIES, JobRequest, JobService

PAGE = 1000  # operations read at once


@dataclass(slots=True)
class AiPlatformJobService:
    jobs: JobService
    buckets: Buckets | None = None  # where results may go; None: not checked

    async def create(self, project: str, region: str, request: JobRequest, record: TrainingJobRecord) -> Job:
        """Store a new job. Its jobId must be new, except for a repeat with the same idempotency key.

        Whether a job that tunes has the jobId, the caller has looked.
        """
        if await self.jobs.store.keyed(project, key_of(record.job_id)) is None:
            await self.check_output(project, request.spec.output)
        mine = replace(record, request=record.request or secrets.token_hex(8))
        request = replace(request, origin=mine.origin)
        try:
            stored = await self.jobs.submit(project, region, request, key_of(mine.job_id))
        except AlreadyExists as error:
            taken = await self.jobs.store.keyed(project, key_of(mine.job_id))
            if taken is None:
                raise Unavailable("The job could not be given a number; try again.") from error
            raise _taken(taken) from error
        kept = record_of(stored)
        if kept is None or kept.request != mine.request:
            raise _taken(stored)
        return stored

    async def check_output(self, project: str, output: str) -> None:
        """Raise Invalid where a gs:// output has no usable bucket: the program would fail hours later.

        An s3:// output is not checked: it may be in a store that only the program knows.
        """
        place = address(output) if output.startswith(SCHEME) else None
        if self.buckets is None or place is None:
            return
        try:
            bucket = await self.buckets.get(place[0])
        except (NotFound, Invalid) as error:
            sentence = f"is in a bucket that is not there, gs://{place[0][:100]}; make it first."
            raise Invalid((Violation("training_input.job_dir", sentence),)) from error
        if not bucket.is_open_to(project):
            sentence = f"is in gs://{place[0]}, which belongs to another project than {project}."
            raise Invalid((Violation("training_input.job_dir", sentence),))

    async def get(self, project: str, job_id: str) -> Job:
        # Not every database accepts a lone surrogate or a NUL in a query.
        job = await self.jobs.store.keyed(project, key_of(job_id)) if job_id.isprintable() else None
        if job is None:
            raise NotFound(f"There is no job {job_id[:200]} in project {project}.")
        return job

    async def find(self, query: JobQuery) -> JobPage:
        return await self.jobs.find(replace(query, kind=KIND))

    async def cancel(self, project: str, job_id: str) -> None:
        job = await self.get(project, job_id)
        try:
            await self.jobs.cancel(project, job.location, job.id)
        except Conflict as error:
            latest = await self.get(project, job_id)
            if not latest.is_final:
                raise
            raise Conflict(
                f"Job {job_id} is in state {latest.status.state} and can no longer be cancelled."
            ) from error

    async def relabel(
        self, project: str, job_id: str, labels: Mapping[str, str], check: Callable[[Job], None]
    ) -> Job:
        """Replace all labels of the job. `check` is called with the current job and may raise."""
        for _ in range(TRIES):
            job = await self.get(project, job_id)
            check(job)
            if dict(job.labels) == dict(labels):
                return job
            try:
                changed = await self.jobs.store.relabel(job, labels)
            except Conflict:
                continue  # the job changed meanwhile; its labels may be unchanged
            self.jobs.notifier.ring(changed)
            return changed
        raise Conflict("The job changes too fast to be updated; try again.")

    async def operations(self, project: str, limit: int, after: str = "") -> tuple[Operation, ...]:
        return await self.jobs.store.operations(project, limit, after)

    async def operation(self, project: str, identity: str) -> Operation:
        """The operation of that id. Its full name has a location, which the older API does not know."""
        after = ""
        while page := await self.operations(project, PAGE, after):
            for operation in page:
                if operation.name.rpartition("/")[2] == identity:
                    return operation
            after = page[-1].name
        raise NotFound(f"There is no operation {identity[:200]} in project {project}.")


def _taken(job: Job) -> AlreadyExists:
    name = job.display_name
    return AlreadyExists(
        f"A job named {name} exists already in project {job.project}: it was created at "
        f"{job.created_at:%Y-%m-%d %H:%M:%S} UTC and is {job.status.state}. A job's name is used once; "
        "give this one another."
    )

"""Use cases of Kubernetes manifests: apply one, and find the job of a kind and name.

`http.py` calls it. A name has one job at a time. While that job is not over, the same manifest
returns it and a different one is a Conflict. Once it is over, a different manifest starts the next job; the
same one only with `again`. Two callers that apply at the same moment get the same job, because both insert it
under the same key (`KubernetesManifest.key`).
"""

from dataclasses import dataclass, replace

from trainshed.core.errors import AlreadyExists, Conflict
from trainshed.core.jobs.job import Job
from trainshed.core.ports import JobPage
from trainshed.core.query import Compare, JobQuery, Operator, QueryField
from trainshed.dialects.kubernetes.origin import KIND, KubernetesManifest, manifest_of
from trainshed.service.jobs import JobRequest, JobService

PAGE = 100  # jobs read at once


@dataclass(slots=True)
class ManifestService:
    jobs: JobService

    async def apply(
        self,
        project: str,
        location: str,
        request: JobRequest,
        manifest: KubernetesManifest,
        *,
        again: bool = False,
    ) -> tuple[Job, bool]:
        """The job, and whether it is new."""
        before = await self.there(project, location, manifest, again=again)
        if before is not None and not self._is_next(before, manifest, again):
            return before, False
        request = replace(request, origin=manifest.origin)
        key = manifest.key(location, "" if before is None else before.id)
        try:
            stored = await self.jobs.submit(project, location, request, key)
        except AlreadyExists:  # another caller was first
            taken = await self.jobs.store.keyed(project, key)
            if taken is None:
                raise
            stored = taken
        applied = manifest_of(stored)
        if applied is None or applied.digest != manifest.digest:
            raise _changed(stored, manifest)
        return stored, True

    async def there(
        self, project: str, location: str, manifest: KubernetesManifest, *, again: bool = False
    ) -> Job | None:
        """The latest job of that kind and name. Conflict where it is not over and the manifest differs."""
        job = await self.latest(project, location, manifest.kind, manifest.name)
        applied = None if job is None else manifest_of(job)
        if job is None or applied is None or job.is_final:
            return job
        if applied.digest != manifest.digest:
            raise _changed(job, manifest)
        if again:
            raise Conflict(
                f"{manifest.kind} {manifest.name} is {job.status.state}, as job {job.id}: it can run again "
                "once it is over."
            )
        return job

    async def latest(self, project: str, location: str, kind: str, name: str) -> Job | None:
        query = JobQuery(
            project=project,
            location=location,
            kind=KIND,
            where=Compare(QueryField.DISPLAY_NAME, Operator.EQ, name),
            limit=PAGE,
        )
        while True:
            page = await self.jobs.find(query)
            for job in page.jobs:
                applied = manifest_of(job)
                if applied is not None and (applied.kind, applied.name) == (kind, name):
                    return job
            if page.next_cursor is None:
                return None
            query = replace(query, cursor=page.next_cursor)

    async def find(self, query: JobQuery) -> JobPage:
        return await self.jobs.find(replace(query, kind=KIND))

    @staticmethod
    def _is_next(before: Job, manifest: KubernetesManifest, again: bool) -> bool:
        applied = manifest_of(before)
        return before.is_final and (again or applied is None or applied.digest != manifest.digest)


def _changed(job: Job, manifest: KubernetesManifest) -> Conflict:
    return Conflict(
        f"{manifest.kind} {manifest.name} is {job.status.state}, as job {job.id}, and the manifest asks for "
        "something else now. A job that runs is not changed: wait for its end or cancel it "
        f"(trainshed cancel {job.id}), then apply again; or give the manifest another metadata.name."
    )

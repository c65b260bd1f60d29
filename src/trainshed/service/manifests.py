"""Jobs that are applied: a name means one job at a time, and asking for it again is asking once.

While a job of the name is not over, the same manifest finds it and another one is refused. Once it is over, a
manifest that asks for something else begins the next; the same only where that is asked for. Two who apply at
the same moment get the same job: the store keeps one of them (`KubernetesManifest.key`).
"""

from dataclasses import dataclass, replace

from trainshed.core.errors import AlreadyExists, Conflict
from trainshed.core.job import MANIFEST, Job
from trainshed.core.manifest import KubernetesManifest, manifest_of
from trainshed.core.ports import JobPage
from trainshed.core.query import Compare, JobQuery, Operator, QueryField
from trainshed.service.jobs import JobRequest, JobService

PAGE = 100  # jobs looked at in one go


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
        request = replace(request, extras={**request.extras, **manifest.extra()})
        key = manifest.key(location, "" if before is None else before.id)
        try:
            kept = await self.jobs.submit(project, location, request, key)
        except AlreadyExists:  # somebody else was first
            taken = await self.jobs.store.keyed(project, key)
            if taken is None:
                raise
            kept = taken
        found = manifest_of(kept)
        if found is None or found.digest != manifest.digest:
            raise _changed(kept, manifest)
        return kept, True

    async def there(
        self, project: str, location: str, manifest: KubernetesManifest, *, again: bool = False
    ) -> Job | None:
        """The latest job of the name. Conflict where it is not over and the manifest asks for another."""
        job = await self.latest(project, location, manifest.kind, manifest.name)
        found = None if job is None else manifest_of(job)
        if job is None or found is None or job.is_final:
            return job
        if found.digest != manifest.digest:
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
            kind=MANIFEST,
            where=Compare(QueryField.DISPLAY_NAME, Operator.EQ, name),
            limit=PAGE,
        )
        while True:
            page = await self.jobs.find(query)
            for job in page.jobs:
                found = manifest_of(job)
                if found is not None and (found.kind, found.name) == (kind, name):
                    return job
            if page.next_cursor is None:
                return None
            query = replace(query, cursor=page.next_cursor)

    async def find(self, query: JobQuery) -> JobPage:
        return await self.jobs.find(replace(query, kind=MANIFEST))

    @staticmethod
    def _is_next(before: Job, manifest: KubernetesManifest, again: bool) -> bool:
        found = manifest_of(before)
        return before.is_final and (again or found is None or found.digest != manifest.digest)


def _changed(job: Job, manifest: KubernetesManifest) -> Conflict:
    return Conflict(
        f"{manifest.kind} {manifest.name} is {job.status.state}, as job {job.id}, and the manifest asks for "
        "something else now. A job that runs is not changed: wait for its end or cancel it "
        f"(trainshed cancel {job.id}), then apply again; or give the manifest another metadata.name."
    )

"""Use cases of Katib's Experiments: apply one, and find the study of a name. `http.py` calls it.

A name has one study at a time, by the same rules as a job's manifest (`service.py`).
"""

from dataclasses import dataclass, replace

from trainshed.core.errors import AlreadyExists, Conflict
from trainshed.core.query import Compare, Operator, QueryField
from trainshed.core.tuning.study import Study, StudyKind
from trainshed.core.tuning.study_port import StudyPage, StudyQuery
from trainshed.dialects.kubernetes.origin import KubernetesManifest
from trainshed.service.studies import StudyRequest, StudyService


@dataclass(slots=True)
class ExperimentService:
    studies: StudyService

    async def apply(
        self,
        project: str,
        location: str,
        request: StudyRequest,
        manifest: KubernetesManifest,
        *,
        again: bool = False,
    ) -> tuple[Study, bool]:
        """The study, and whether it is new."""
        before = await self.there(project, location, manifest, again=again)
        if before is not None and not (before.is_final and (again or not _is_same(before, manifest))):
            return before, False
        record = {**request.record, **manifest.as_json()}
        request = replace(request, kind=StudyKind.KATIB, record=record)
        key = manifest.key(location, "" if before is None else before.id)
        try:
            stored = await self.studies.create(project, location, request, key)
        except AlreadyExists:  # another caller was first
            taken = await self.studies.store.keyed_study(project, key)
            if taken is None:
                raise
            stored = taken
        if not _is_same(stored, manifest):
            raise _changed(stored, manifest)
        return stored, True

    async def there(
        self, project: str, location: str, manifest: KubernetesManifest, *, again: bool = False
    ) -> Study | None:
        """The latest study of that name. Conflict where it is not over and the manifest differs."""
        study = next(iter((await self.find(project, location, manifest.name, limit=1)).studies), None)
        if study is None or study.is_final:
            return study
        if not _is_same(study, manifest):
            raise _changed(study, manifest)
        if again:
            raise Conflict(
                f"{manifest.kind} {manifest.name} is {study.job_state}, as study {study.id}: it can run "
                "again once it is over."
            )
        return study

    async def find(
        self,
        project: str,
        location: str,
        name: str = "",
        *,
        limit: int,
        cursor: tuple[str, str] | None = None,
    ) -> StudyPage:
        """The applied experiments, newest first."""
        return await self.studies.find(
            StudyQuery(
                project=project,
                location=location,
                kinds=(StudyKind.KATIB,),
                where=Compare(QueryField.DISPLAY_NAME, Operator.EQ, name) if name else None,
                limit=limit,
                cursor=cursor,
            )
        )


def _is_same(study: Study, manifest: KubernetesManifest) -> bool:
    return study.record.get("digest") == manifest.digest


def _changed(study: Study, manifest: KubernetesManifest) -> Conflict:
    return Conflict(
        f"{manifest.kind} {manifest.name} is {study.job_state}, as study {study.id}, and the manifest asks "
        "for something else now. A study that runs is not changed: wait for its end or cancel it, then apply "
        "again; or give the manifest another metadata.name."
    )

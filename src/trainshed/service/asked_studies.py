"""Use cases of studies whose trials clients run: create, find by name, list, delete, and the best trials.

The API calls it. A display name stands for one study of a project and location.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trainshed.core.errors import AlreadyExists, NotFound
from trainshed.core.query import Compare, Operator, QueryField
from trainshed.core.tuning.pareto import optimal_indexes
from trainshed.core.tuning.study import Study, StudyKind, Trial
from trainshed.core.tuning.study_end import best_trial
from trainshed.core.tuning.study_port import StudyPage, StudyQuery
from trainshed.core.tuning.suggestion_request import trial_result
from trainshed.service.studies import StudyRequest, StudyService

KINDS = (StudyKind.ASKED,)


@dataclass(slots=True)
class AskedStudies:
    studies: StudyService
    _creating: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def create(self, project: str, location: str, request: StudyRequest, key: str = "") -> Study:
        """Store a new study. AlreadyExists where another one has its name."""
        async with self._creating:
            named = await self._named(project, location, request.display_name)
            if named is not None:
                # Who sends a key may not have heard that the study is made.
                if key and named.spec == request.spec:
                    return named
                name = request.display_name
                raise AlreadyExists(f"A study with the display name {name!r} exists already: {named.name}.")
            return await self.studies.create(project, location, request, key)

    async def get(self, project: str, location: str, study: str) -> Study:
        stored = await self.studies.get(project, location, study)
        if stored.kind is not StudyKind.ASKED:
            raise NotFound(f"There is no study projects/{project}/locations/{location}/studies/{study}.")
        return stored

    async def lookup(self, project: str, location: str, display_name: str) -> Study:
        study = await self._named(project, location, display_name)
        if study is None:
            place = f"projects/{project}/locations/{location}"
            raise NotFound(f"There is no study with the display name {display_name!r} in {place}.")
        return study

    async def find(self, query: StudyQuery) -> StudyPage:
        return await self.studies.find(replace(query, kinds=KINDS))

    async def delete(self, project: str, location: str, study: str) -> None:
        """With its trials, also those that clients run."""
        await self.get(project, location, study)
        await self.studies.delete(project, location, study)

    async def optimal(self, study: Study) -> Sequence[Trial]:
        """The best trial; with several objectives all that no other trial beats."""
        trials = await self.studies.trials(study)
        if len(study.spec.objectives) == 1:
            best = best_trial(study, trials)
            return () if best is None else (best,)
        values = [trial_result(trial, study.spec.objectives).values for trial in trials]
        return [trials[index] for index in optimal_indexes(values, study.spec.objectives)]

    async def _named(self, project: str, location: str, display_name: str) -> Study | None:
        page = await self.studies.find(
            StudyQuery(
                project=project,
                location=location,
                kinds=KINDS,
                where=Compare(QueryField.DISPLAY_NAME, Operator.EQ, display_name),
                limit=1,
            )
        )
        return page.studies[0] if page.studies else None

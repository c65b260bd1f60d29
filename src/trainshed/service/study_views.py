"""What people see of studies beyond the studies themselves: figures, pages of trials, analyses and curves.

The API calls it. It changes nothing. Nothing here reads all measurements of a study.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainshed.core.errors import Conflict, NotFound
from trainshed.core.job import Job
from trainshed.core.ports import Clock, Store
from trainshed.core.study import Study, Trial, TrialState
from trainshed.core.study_analysis import StudyAnalysis, analyse
from trainshed.core.study_port import StudyStore
from trainshed.core.trial_outline import StudyFigures, TrialOrder, TrialOutline, TrialPage, TrialQuery


@dataclass(frozen=True, slots=True)
class StudyViews:
    studies: StudyStore
    jobs: Store
    clock: Clock

    async def figures(self, studies: Sequence[Study]) -> Mapping[str, StudyFigures]:
        return await self.studies.figures(studies)

    async def page(self, query: TrialQuery) -> TrialPage:
        return await self.studies.trial_page(query)

    async def jobs_of(self, trials: Sequence[Trial]) -> Mapping[str, Job]:
        """The jobs of the trials, by id, without those that are deleted."""
        jobs = await asyncio.gather(*(self.jobs.load(trial.job) for trial in trials if trial.job))
        return {job.id: job for job in jobs if job is not None}

    async def analysis(self, study: Study) -> StudyAnalysis:
        outlines = await self.studies.outlines(study.id)
        return await asyncio.to_thread(analyse, study, outlines, self.clock.now())

    async def best(self, study: Study) -> TrialOutline:
        """The best trial by the first objective; Conflict while none has succeeded."""
        best = (await self.studies.figures([study]))[study.id].best
        if best is None:
            raise Conflict(f"No trial of {study.name} has succeeded yet.")
        return best

    async def of_numbers(self, study: Study, numbers: Sequence[int]) -> tuple[Trial, ...]:
        trials = [await self.studies.trial(study.id, number) for number in numbers]
        for number, trial in zip(numbers, trials, strict=True):
            if trial is None:
                raise NotFound(f"There is no trial {number} of {study.name}.")
        return tuple(trial for trial in trials if trial is not None)

    async def best_first(self, study: Study, most: int) -> tuple[Trial, ...]:
        """The best that succeeded, then those that run, at most so many."""
        query = TrialQuery(
            study=study.id,
            states=(TrialState.SUCCEEDED,),
            order=TrialOrder.VALUE,
            is_descending=study.spec.objectives[0].maximize,
            limit=most,
        )
        best = (await self.studies.trial_page(query)).trials
        if len(best) >= most:
            return best
        states = (TrialState.ACTIVE, TrialState.STOPPING)
        running = TrialQuery(study=study.id, states=states, is_descending=True, limit=most - len(best))
        return (*best, *(await self.studies.trial_page(running)).trials)

"""What people see of studies beyond the studies themselves: figures, pages of trials, analyses and curves.

The API calls it. It changes nothing. Nothing here reads all measurements of a study.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.errors import Conflict, NotFound
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Clock, Store
from trainshed.core.tuning.pareto import optimal_indexes
from trainshed.core.tuning.study import Study, Trial, TrialState
from trainshed.core.tuning.study_analysis import StudyAnalysis, analyse
from trainshed.core.tuning.study_port import StudyStore
from trainshed.core.tuning.trial_outline import StudyFigures, TrialOrder, TrialOutline, TrialPage, TrialQuery

LARGE = 2000  # trials: from here on an analysis may be a little old
PATIENCE = timedelta(seconds=10)
MOST_KNOWN = 50  # studies whose last analysis is kept


@dataclass(frozen=True, slots=True)
class StudyViews:
    studies: StudyStore
    jobs: Store
    clock: Clock
    # Of each study its last analysis, with the version that it is of and when it was made.
    _known: dict[str, tuple[int, datetime, StudyAnalysis]] = field(
        default_factory=dict[str, tuple[int, datetime, StudyAnalysis]]
    )

    async def figures(self, studies: Sequence[Study]) -> Mapping[str, StudyFigures]:
        return await self.studies.figures(studies)

    async def page(self, query: TrialQuery) -> TrialPage:
        return await self.studies.trial_page(query)

    async def jobs_of(self, trials: Sequence[Trial]) -> Mapping[str, Job]:
        """The jobs of the trials, by id, without those that are deleted."""
        jobs = await asyncio.gather(*(self.jobs.load(trial.job) for trial in trials if trial.job))
        return {job.id: job for job in jobs if job is not None}

    async def analysis(self, study: Study) -> StudyAnalysis:
        """That of a large study may be some seconds old: it takes a second or two."""
        now = self.clock.now()
        if (known := self._known.get(study.id)) is not None:
            version, at, analysis = known
            is_new_enough = len(analysis.history) >= LARGE and now - at < PATIENCE
            # Of one that has ended the last: nothing tells a page to ask again.
            if version == study.version if study.is_final else is_new_enough:
                return analysis
        outlines = await self.studies.outlines(study.id)
        analysis = await asyncio.to_thread(analyse, study, outlines, now)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[study.id] = (study.version, now, analysis)
        return analysis

    async def best(self, study: Study) -> TrialOutline:
        """The best trial by the first objective; Conflict while none has succeeded."""
        best = (await self.studies.figures([study]))[study.id].best
        if best is None:
            raise Conflict(f"No trial of {study.name} has succeeded yet.")
        return best

    async def points(self, study: Study, most: int) -> tuple[TrialOutline, ...]:
        """What succeeded, by number: all, or the best so many by the first objective and the Pareto front."""
        done = [trial for trial in await self.studies.outlines(study.id) if trial.values is not None]
        if len(done) <= most:
            return tuple(done)
        return await asyncio.to_thread(_best_of, study, done, most)

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


def _best_of(study: Study, done: Sequence[TrialOutline], most: int) -> tuple[TrialOutline, ...]:
    sign = -1.0 if study.spec.objectives[0].maximize else 1.0
    best = sorted(range(len(done)), key=lambda at: sign * (done[at].value or 0.0))[:most]
    front = optimal_indexes([trial.values for trial in done], study.spec.objectives)[:most]
    return tuple(done[at] for at in sorted({*best, *front}))

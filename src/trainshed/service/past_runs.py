"""Looks up earlier runs of jobs: from them `core/explain/foresee.py` knows how long such jobs take.

`service/why.py` and `service/queue.py` call it. It reads the store a bounded number of times.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trainshed.core.explain.history import History, history_of
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.ports import Store
from trainshed.core.query import AllOf, AnyOf, Compare, Condition, JobQuery, Operator, QueryField

MOST_NAMES = 200  # display names whose earlier runs are looked up
RUNS_OF_ONE = 20
LATEST = 200  # ended jobs of a project that are searched for one of the same program
MOST_PROJECTS = 20

_ENDED: Condition = AnyOf(
    tuple(
        Compare(QueryField.STATE, Operator.EQ, state.value) for state in (JobState.SUCCEEDED, JobState.FAILED)
    )
)


@dataclass(frozen=True, slots=True)
class PastRuns:
    store: Store

    async def of(self, jobs: Iterable[Job]) -> History:
        """Of ended jobs of the same names; where a name has none, of the latest of its project."""
        names = list(dict.fromkeys((job.project, job.display_name) for job in jobs))[:MOST_NAMES]
        ended: dict[str, Job] = {}
        unmatched: dict[str, None] = {}  # projects with a name that no ended job has
        for project, name in names:
            where = AllOf((Compare(QueryField.DISPLAY_NAME, Operator.EQ, name), _ENDED))
            page = await self.store.find(JobQuery(project=project, where=where, limit=RUNS_OF_ONE))
            ended.update((job.id, job) for job in page.jobs)
            if not page.jobs:
                unmatched[project] = None
        for project in list(unmatched)[:MOST_PROJECTS]:
            page = await self.store.find(JobQuery(project=project, where=_ENDED, limit=LATEST))
            ended.update((job.id, job) for job in page.jobs)
        return history_of(ended.values())

"""Looks up earlier runs of jobs, and who came lately: from them `core/explain/foresee.py` forecasts.

`service/why.py` and `service/queue.py` call it. It reads the store a bounded number of times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.explain.arrivals import NOBODY, Arrivals
from trainshed.core.explain.history import History, history_of
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.ports import Store
from trainshed.core.query import AllOf, AnyOf, Compare, Condition, JobQuery, Operator, QueryField

MOST_NAMES = 200  # display names whose earlier runs are looked up
RUNS_OF_ONE = 20
LATEST = 200  # ended jobs of a project that are searched for one of the same program
MOST_PROJECTS = 20
LATELY = timedelta(days=1)
MOST_LATELY = 500  # jobs: where more came lately, the time in which these came

ENDED = JobState.SUCCEEDED, JobState.FAILED
_ENDED: Condition = AnyOf(tuple(Compare(QueryField.STATE, Operator.EQ, state.value) for state in ENDED))


@dataclass(frozen=True, slots=True)
class PastRuns:
    store: Store

    async def lately(self, now: datetime) -> Arrivals:
        """The jobs of all projects that were submitted lately."""
        where = Compare(QueryField.CREATED, Operator.GT, now - LATELY)
        page = await self.store.find(JobQuery(project="-", where=where, limit=MOST_LATELY))
        since = page.jobs[-1].created_at if page.next_cursor else now - LATELY
        return Arrivals(tuple([job for job in reversed(page.jobs) if _wants_room(job)]), since)

    async def of(
        self, running: Sequence[Job], waiting: Sequence[Job], now: datetime, arrivals: Arrivals = NOBODY
    ) -> History:
        """Of ended jobs of the same names; where a name has none, of the latest of its project.

        Those that came lately and have ended count too.
        """
        jobs = (*running, *waiting)
        names = list(dict.fromkeys((job.project, job.display_name) for job in jobs))[:MOST_NAMES]
        ended = {job.id: job for job in arrivals.jobs if job.status.state in ENDED}
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
        return history_of(ended.values(), running, now)


def _wants_room(job: Job) -> bool:
    """False for a job that was cancelled while it waited, say."""
    return not job.is_final or job.status.started_at is not None

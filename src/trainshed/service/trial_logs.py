"""TrialLogs: the jobs whose lines are the log of a study. `LogService` asks it for ids that are no job's."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainshed.core.jobs.job import FINAL, Job, Owner, OwnerKind
from trainshed.core.ports import Store
from trainshed.core.query import OLDEST_FIRST, AllOf, AnyOf, Compare, JobQuery, Operator, QueryField
from trainshed.core.tuning.study import Study
from trainshed.core.tuning.study_port import StudyStore

MOST = 1000  # jobs of one page
LATE = timedelta(seconds=60)  # after its end a job may still have lines


@dataclass(frozen=True, slots=True)
class TrialLogs:
    studies: StudyStore
    jobs: Store
    name_keys: tuple[Callable[[str], str], ...] = ()  # each gives the key of a study from a name of its own

    async def study(self, project: str, identity: str) -> Study | None:
        study = await self.studies.load_study(identity)
        for key_of in self.name_keys:
            study = study or await self.studies.keyed_study(project, key_of(identity))
        return study if study is not None and study.project == project else None

    async def jobs_of(self, study: Study, since_ns: int | None) -> tuple[Job, ...]:
        """The jobs of its trials that may have lines since that time."""
        query = JobQuery(
            project=study.project,
            owner=Owner(OwnerKind.STUDY, study.id),
            where=None if since_ns is None else _ended_after(since_ns),
            order=OLDEST_FIRST,
            limit=MOST,
        )
        jobs: list[Job] = []
        while True:
            page = await self.jobs.find(query)
            jobs += page.jobs
            if page.next_cursor is None:
                return tuple(jobs)
            query = replace(query, cursor=page.next_cursor)


def _ended_after(since_ns: int) -> AnyOf:
    since = datetime.fromtimestamp(max(0, since_ns) / 1e9, UTC)
    at = since - LATE if since.timestamp() > LATE.total_seconds() else since
    runs = AllOf(tuple(Compare(QueryField.STATE, Operator.NE, state.value) for state in sorted(FINAL)))
    return AnyOf((Compare(QueryField.ENDED, Operator.GE, at), runs))

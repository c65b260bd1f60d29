"""Use cases of lists of jobs: pages with what each job used so far, counts, projects, and values to complete.

`api/job_lists.py` and `api/job_view.py` call it. It changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainshed.core.jobs.job import Job, JobState
from trainshed.core.ledger import ResourceTime, uncounted_time
from trainshed.core.query import JobQuery, QueryField
from trainshed.service.jobs import JobService

LOOKED_AT = 2000  # the newest jobs, whose values are completed: more would take longer than a keystroke


@dataclass(frozen=True, slots=True)
class JobCount:
    by_state: Mapping[JobState, int]
    elsewhere: int  # in other locations


@dataclass(slots=True)
class JobLists:
    jobs: JobService

    async def used(self, jobs: Sequence[Job]) -> Mapping[str, ResourceTime]:
        """What each of the jobs has used so far, by its id. One query for all of them."""
        counted = await self.jobs.store.resource_times([job.id for job in jobs])
        now, nothing = self.jobs.clock.now(), ResourceTime()
        return {job.id: counted.get(job.id, nothing) + uncounted_time(job, now) for job in jobs}

    async def count(self, query: JobQuery) -> JobCount:
        """How many jobs match the query in its location, and how many in other locations."""
        by_state = await self.jobs.store.count(query)
        if query.location == "-":
            return JobCount(by_state, 0)
        everywhere = await self.jobs.store.count(replace(query, location="-"))
        return JobCount(by_state, max(0, sum(everywhere.values()) - sum(by_state.values())))

    async def projects(self) -> Mapping[str, Mapping[JobState, int]]:
        return await self.jobs.store.projects()

    async def complete(
        self, query: JobQuery, field: QueryField, prefix: str, most: int
    ) -> list[tuple[str, int]]:
        """Values of the newest jobs that begin with the prefix, in any case, and how many jobs have each.

        Of labels: keys, or `key=value` where the prefix has a `=`. The most frequent are first.
        """
        values = await self.jobs.store.recent_values(query, field, LOOKED_AT)
        begins, is_pair = prefix.lower(), "=" in prefix
        fitting = [pair for pair in values.items() if pair[0].lower().startswith(begins)]
        if field is QueryField.LABEL:
            fitting = [pair for pair in fitting if ("=" in pair[0]) == is_pair]
        return sorted(fitting, key=lambda pair: (-pair[1], pair[0]))[:most]

"""The part of a store's port that answers about many jobs in figures: counts, values, what they used."""

from collections.abc import Collection, Mapping
from typing import Protocol

from trainshed.core.day_use import DayUse, JobUses, UseQuery
from trainshed.core.jobs.job import JobState
from trainshed.core.ledger import Interval, ResourceTime
from trainshed.core.query import JobQuery, QueryField


class JobFigures(Protocol):
    """`core.ports.Store` is one. Its promises are numbered there."""

    async def count(self, query: JobQuery) -> Mapping[JobState, int]:
        """How many jobs of each state match the query, on all pages; every state is named."""
        ...

    async def projects(self) -> Mapping[str, Mapping[JobState, int]]:
        """Every project that has jobs, by name, and how many of each state; every state is named."""
        ...

    async def recent_values(self, query: JobQuery, field: QueryField, most: int) -> Mapping[str, int]:
        """The values of a field in the newest `most` jobs of the query, and how many have each.

        Of labels: `key` for each key and `key=value` for each label.
        """
        ...

    async def resource_times(self, jobs: Collection[str]) -> Mapping[str, ResourceTime]:
        """What the intervals of each of these jobs add up to. Jobs without intervals are left out."""
        ...

    async def intervals(self, project: str, location: str, job: str) -> tuple[Interval, ...]:
        """What the job's runs spent their time on, run by run, in order of time; also for a deleted job."""
        ...

    async def uses(self, query: UseQuery) -> tuple[DayUse, ...]:
        """What jobs had, added up by day and more (core.day_use), also of deleted jobs.

        A sum may come in parts. What an answer costs depends on the days that it is about, not on all days.
        """
        ...

    async def job_uses(self, query: UseQuery) -> JobUses:
        """The same, kept apart by job and project, in a form for very many jobs. A kind may be told twice."""
        ...

    async def display_names(self, jobs: Collection[str]) -> Mapping[str, str]:
        """The display names of these jobs, also of deleted ones. Jobs that are not known are left out."""
        ...

    async def counts(self) -> Mapping[JobState, int]: ...

    async def codes(self) -> frozenset[str]:
        """Every folder a job refers to, by id."""
        ...

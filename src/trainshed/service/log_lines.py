"""Use cases of logs by line number: a page of lines, a search, and when there is more to read.

`api/log_lines.py` and `api/watch.py` call it. A task may be named as any of the job's grammars names it.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from trainshed.core.jobs.job import Job
from trainshed.core.jobs.task_names import task_meant
from trainshed.core.log_lines import FindQuery, FindStep, LineChoice, LinePage, LineQuery
from trainshed.core.log_port import NumberedLogs


@dataclass(frozen=True, slots=True)
class LogLineService:
    logs: NumberedLogs

    async def page(self, job: Job, query: LineQuery) -> LinePage:
        return await self.logs.lines(job.id, replace(query, choice=_meant(job, query.choice)))

    def find(self, job: Job, query: FindQuery) -> AsyncGenerator[FindStep]:
        return self.logs.find(job.id, replace(query, choice=_meant(job, query.choice)))

    def growth(self, job: Job) -> AsyncGenerator[None]:
        return self.logs.growth(job.id)


def _meant(job: Job, choice: LineChoice) -> LineChoice:
    return choice if choice.task is None else replace(choice, task=task_meant(job, choice.task))

"""MeasurementHints: says when the program of a trial may have reported, so that nobody has to look in vain.

It implements core.tuning.measurement_port.MeasurementWatch; the loop of studies calls it. Output is followed
by the log store, files of reports by the metric store. Of event files nobody would tell: for a job that has a
place for them `watch` says so, and the caller has to look by itself.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from trainshed.background_tasks import BackgroundTasks
from trainshed.control.event_files import log_folder
from trainshed.core.jobs.job import Job
from trainshed.core.log_port import NumberedLogs
from trainshed.core.tuning.measurement_port import ReportedHistory

PAUSE = 0.1  # seconds between hints for output that pours


@dataclass(slots=True, kw_only=True)
class MeasurementHints:
    logs: NumberedLogs
    reports: ReportedHistory
    _tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    _told: dict[str, bool] = field(default_factory=dict[str, bool])  # by job: whether its files are watched

    def watch(self, job: Job, hint: Callable[[], None]) -> bool:
        if job.id not in self._told:
            self._told[job.id] = self.reports.watch(job.id, hint)
            self._tasks.run(self._follow(job.id, hint))
        return self._told[job.id] and not log_folder(job)

    @property
    def watched(self) -> frozenset[str]:
        """The jobs that are followed."""
        return frozenset(self._told)

    async def close(self) -> None:
        await self._tasks.close()

    async def _follow(self, job: str, hint: Callable[[], None]) -> None:
        """Until the output of the job is over: then its end tells the rest."""
        try:
            async with contextlib.aclosing(self.logs.growth(job)) as growth:
                async for _ in growth:
                    hint()
                    await asyncio.sleep(PAUSE)
        finally:
            self.reports.unwatch(job)
            del self._told[job]

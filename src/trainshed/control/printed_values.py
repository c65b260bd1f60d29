"""Follows the metrics that a job prints, for `control/measurements.py`.

Each line is read once: a read goes on behind the last line of the one before. A value without a step is
numbered by how many of its name came before it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainshed.core.errors import TrainshedError
from trainshed.core.jobs.job import Job
from trainshed.core.log_port import LogStore
from trainshed.core.logs import Line, LogQuery, OutputStream
from trainshed.core.tuning.measurement import MOST_NAMES, MetricPoint, thin
from trainshed.core.tuning.measurement_port import PrintedMetrics

MOST_LINES = 100_000  # in one call for a job that runs
MOST_POINTS = 4000  # of one curve
NAMED_LINES = 20_000  # lines in which names are looked for that nobody wants: to say what was there
_PAGE = 5000  # lines


@dataclass(slots=True)
class _Output:
    """How far the output of one replica is read."""

    after: tuple[int, str] | None = None
    counts: dict[str, int] = field(default_factory=dict[str, int])  # values without a step, by metric
    points: dict[str, list[MetricPoint]] = field(default_factory=dict[str, list[MetricPoint]])


@dataclass(slots=True)
class PrintedValues:
    """The printed metrics of one job. Not for two calls at once."""

    logs: LogStore
    lines: PrintedMetrics
    names: dict[str, None] = field(default_factory=dict[str, None])
    problem: str = ""
    _named: int = 0  # lines
    _outputs: dict[str, _Output] = field(default_factory=dict[str, _Output])  # by task

    async def look(self, job: Job, task: str) -> dict[str, list[MetricPoint]]:
        """The metrics of one replica, in all attempts. Lines of a job that is over are read to the end."""
        output = self._outputs.setdefault(task, _Output())
        try:
            await self._read(job, task, output)
            self.problem = ""
        except TrainshedError as error:
            self.problem = error.message.rstrip(".")
        return output.points

    async def _read(self, job: Job, task: str, output: _Output) -> None:
        count = 0
        while job.is_final or count < MOST_LINES:
            query = LogQuery(after=output.after, task=task, stream=OutputStream.STDOUT, limit=_PAGE)
            page = await self.logs.read(job.id, query)
            if not page:
                return
            output.after = (page[-1].at_ns, page[-1].insert_id)
            count += len(page)
            if len(page) > 100:
                await asyncio.to_thread(self._take, page, output)
            else:
                self._take(page, output)

    def _take(self, page: Sequence[Line], output: _Output) -> None:
        for line in page:
            if self._named < NAMED_LINES and len(self.names) < MOST_NAMES:
                self._named += 1
                self.names |= dict.fromkeys(self.lines.names(line.text))
            for item in self.lines.values(line.text):
                step = item.step
                if step is None:
                    step = output.counts.get(item.name, 0) + 1
                    output.counts[item.name] = step
                points = output.points.setdefault(item.name, [])
                points.append(MetricPoint(step, line.at_ns / 1e9, item.value))
                if len(points) > MOST_POINTS:
                    points[:] = thin(points, MOST_POINTS // 2)

"""Resource use and progress: of one job, of all running jobs, and as Prometheus' text."""

import resource
import time
from dataclasses import dataclass
from datetime import timedelta

from trainshed.api.call import Call, Json, Reply, TextAnswer
from trainshed.core.errors import Invalid, Violation
from trainshed.service.costs import CostService
from trainshed.service.jobs import JobService
from trainshed.service.metrics import MetricService
from trainshed.wire import prometheus
from trainshed.wire.metrics import render_progress, render_series
from trainshed.wire.prometheus import Family
from trainshed.wire.scalars import read_duration

MOST_WINDOW = timedelta(days=3660)


@dataclass(slots=True)
class MetricHandlers:
    jobs: JobService
    metrics: MetricService
    costs: CostService
    version: str
    started_at: float  # seconds since 1970

    async def window(self, call: Call) -> Json:
        """The series of a job over the last `window`, a point every `step`."""
        path = call.path
        job = await self.jobs.get(path["project"], path["location"], path["job"])
        window, step = _duration(call, "window", "600s"), _duration(call, "step", "0s")
        if not window:
            raise Invalid((Violation("window", "window must be longer than 0s."),))
        series, progress = await self.metrics.window(job, min(window, MOST_WINDOW), step)
        return {"series": render_series(series), "progress": render_progress(progress)}

    async def usage(self, call: Call) -> Json:
        """Every running job, with the last minute of each series."""
        running = await self.metrics.running(call.path["project"], call.path["location"])
        return {
            "jobs": [
                {
                    "name": item.job.name,
                    "displayName": item.job.display_name,
                    "state": f"JOB_STATE_{item.job.status.state.value}",
                    "series": render_series(item.series),
                    "progress": render_progress(item.progress),
                }
                for item in running
            ]
        }

    async def prometheus(self, call: Call) -> Reply:
        running, counts = await self.metrics.everything()
        families = [
            *self._of_server(),
            *prometheus.of_jobs(counts),
            *prometheus.of_uses(await self.costs.this_month()),
            *prometheus.of_replicas(running),
        ]
        return TextAnswer(prometheus.text(families), media_type=prometheus.MEDIA_TYPE)

    def _of_server(self) -> list[Family]:
        info = Family("trainshed_info", "gauge", "The server's version.")
        info.add(1, version=self.version)
        cpu = Family("process_cpu_seconds_total", "counter", "CPU time of the server.")
        cpu.add(time.process_time())
        memory = Family("process_max_resident_memory_bytes", "gauge", "The most memory the server has held.")
        memory.add(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        started = Family("process_start_time_seconds", "gauge", "When the server was started.")
        started.add(self.started_at)
        return [info, cpu, memory, started]


def _duration(call: Call, name: str, default: str) -> timedelta:
    try:
        return max(read_duration(call.query.get(name, default)), timedelta())
    except ValueError as error:
        raise Invalid((Violation(name, f"{name} {error}"),)) from error

"""A metric store in memory that keeps the promises of core.ports.MetricStore, but for what needs a disk.

It keeps every point as recorded and forgets it with the process. A test sets what replicas report: `said`.
"""

from collections.abc import Mapping, Sequence

from trainshed.core.columns import ColumnQuery, Columns
from trainshed.core.metrics import MetricQuery, Point, Report, Sample, Series, thinned
from trainshed.core.names import ReplicaName
from trainshed.core.ports import ReportSource


class MemoryMetricStore:
    def __init__(self) -> None:
        self.said: dict[ReplicaName, Report] = {}
        self._kept: dict[str, dict[tuple[str, str], list[Point]]] = {}

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sink(self, name: ReplicaName) -> str:
        return f"/nowhere/{name}"

    async def reports(self, sources: Sequence[ReportSource]) -> Mapping[ReplicaName, Report]:
        return {source.name: self.said[source.name] for source in sources if source.name in self.said}

    async def record(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        for job, some in samples.items():
            kept = self._kept.setdefault(job, {})
            for sample in some:
                points = kept.setdefault((sample.task, sample.name), [])
                if not points or points[-1].at < sample.at:
                    points.append(Point(sample.at, sample.value))

    async def query(self, job: str, query: MetricQuery) -> tuple[Series, ...]:
        series: list[Series] = []
        for (task, name), points in sorted(self._kept.get(job, {}).items()):
            inside = tuple(point for point in points if query.since <= point.at <= query.until)
            if inside:
                series.append(thinned(Series(task, name, inside), query.step))
        return tuple(series)

    async def columns(self, queries: Mapping[str, ColumnQuery]) -> Mapping[str, Columns]:
        return {job: self._columns(self._kept.get(job, {}), asked) for job, asked in queries.items()}

    def _columns(self, kept: Mapping[tuple[str, str], Sequence[Point]], asked: ColumnQuery) -> Columns:
        chosen = {
            name: {at: p.value for p in points if asked.since <= (at := p.at.timestamp()) <= asked.until}
            for name, points in kept.items()
            if asked.names is None or asked.names(name[1])
        }
        times = sorted({at for points in chosen.values() for at in points})
        return Columns(times, {name: [ps.get(at) for at in times] for name, ps in chosen.items() if ps}, 2.0)

    async def remove(self, job: str) -> None:
        self._kept.pop(job, None)

"""The metric store: everything under HOME/<job>/, but for what replicas report: HOME/.reports/<replica>.

Reading and writing are done in threads; writing one at a time. A restarted server needs nothing but the
folder, and opens a job when it is written to or asked for. A disk that takes nothing costs the points of
that moment and one line in the server's log, never a job.
"""

import asyncio
import logging
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from trainshed.core.columns import ColumnQuery, Columns
from trainshed.core.errors import Unavailable
from trainshed.core.metrics import MetricQuery, Report, Sample, Series, hypertune_file
from trainshed.core.names import ReplicaName
from trainshed.core.ports import ReportSource
from trainshed.core.tuning.measurement import ReportedEntry
from trainshed.metrics.columns import read_columns
from trainshed.metrics.history import ReplicaHistory
from trainshed.metrics.job import JobMetrics, read_job
from trainshed.metrics.report_watch import ReportFileWatch
from trainshed.metrics.spoken import ReportedLines

_log = logging.getLogger(__name__)
MOST_HISTORIES = 256  # replicas whose reports are kept in memory; others are read again when asked for
MOST_LIVE = 64  # jobs kept open; one that is written to again after that is opened again
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")


class FileMetricStore:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._reports_home = home / ".reports"
        self._live: dict[str, JobMetrics] = {}
        self._spoken: dict[ReplicaName, ReportedLines] = {}
        self._histories: dict[ReplicaName, ReplicaHistory] = {}  # of those that a study asked for
        self._watch: ReportFileWatch | None = None
        self._writing = threading.Lock()
        self._complained = False

    async def start(self) -> None:
        self._reports_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._watch = ReportFileWatch(str(self._reports_home))

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        self._live.clear()
        self._spoken.clear()
        self._histories.clear()

    def sink(self, name: ReplicaName) -> str:
        if not _SAFE.fullmatch(name.job):
            return ""
        return self._report_file(name)

    async def reports(self, sources: Sequence[ReportSource]) -> Mapping[ReplicaName, Report]:
        return await asyncio.to_thread(self._reports, sources, datetime.now(UTC))

    async def reported(self, names: Sequence[ReplicaName]) -> tuple[ReportedEntry, ...]:
        """Keeps the promise of core.tuning.measurement_port.ReportedHistory."""
        safe = [name for name in names if _SAFE.fullmatch(name.job)]
        if self._watch is not None and safe:
            report = self._report_file(safe[-1])  # of the latest attempt: nobody writes into others
            self._watch.ask(safe[-1].job, (report, hypertune_file(report)))
        return await asyncio.to_thread(self._reported, safe)

    def watch(self, job: str, hint: Callable[[], None]) -> bool:
        if self._watch is None or not self._watch.works:
            return False
        self._watch.add(job, hint)
        return True

    def unwatch(self, job: str) -> None:
        if self._watch is not None:
            self._watch.discard(job)

    async def record(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        if samples:
            await asyncio.to_thread(self._record, samples)

    async def query(self, job: str, query: MetricQuery) -> tuple[Series, ...]:
        if not _SAFE.fullmatch(job):
            return ()
        return await asyncio.to_thread(read_job, self._home / job, query)

    async def columns(self, queries: Mapping[str, ColumnQuery]) -> Mapping[str, Columns]:
        return await asyncio.to_thread(self._columns, queries)

    async def remove(self, job: str) -> None:
        if not _SAFE.fullmatch(job):
            return
        try:
            await asyncio.to_thread(self._remove, job)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Unavailable(f"The metrics of job {job} cannot be removed: {error.strerror}.") from error

    def _columns(self, queries: Mapping[str, ColumnQuery]) -> dict[str, Columns]:
        safe = {job: asked for job, asked in queries.items() if _SAFE.fullmatch(job)}
        return {job: read_columns(self._home / job, asked) for job, asked in safe.items()}

    def _report_file(self, name: ReplicaName) -> str:
        # All in one folder: most programs never report, and a folder for each would be made for nothing.
        return f"{self._reports_home}/{name.job}.{name.attempt}.{name.pool}.{name.index}"

    def _reports(self, sources: Sequence[ReportSource], now: datetime) -> dict[ReplicaName, Report]:
        spoken: dict[ReplicaName, ReportedLines] = {}
        result: dict[ReplicaName, Report] = {}
        with self._writing:
            for source in sources:
                known = self._spoken.get(source.name)
                lines = known or ReportedLines(Path(self._report_file(source.name)), source.stdout)
                spoken[source.name] = lines
                if (report := lines.look(now)) is not None:
                    result[source.name] = report
                if known is None and self._journal(source.name).exists():
                    self._history(source.name)  # a server before this one was asked for it
                if (history := self._histories.get(source.name)) is not None:
                    self._look_at(source.name, history)
            self._spoken = spoken
            while len(self._histories) > max(MOST_HISTORIES, len(sources)):
                del self._histories[next(iter(self._histories))]
        return result

    def _reported(self, names: Sequence[ReplicaName]) -> tuple[ReportedEntry, ...]:
        entries: list[ReportedEntry] = []
        with self._writing:
            for name in names:
                history = self._history(name)
                self._look_at(name, history)
                entries += history.entries
        return tuple(entries)

    def _history(self, name: ReplicaName) -> ReplicaHistory:
        # Taken out and put in again: the first is always the one not asked for for longest.
        history = self._histories.pop(name, None)
        self._histories[name] = history or ReplicaHistory(self._report_file(name), self._journal(name))
        return self._histories[name]

    def _look_at(self, name: ReplicaName, history: ReplicaHistory) -> None:
        try:
            history.look()
        except OSError as error:
            self._complain(name.job, error)

    def _journal(self, name: ReplicaName) -> Path:
        return self._home / name.job / f"reported.{name.attempt}.{name.pool}-{name.index}"

    def _record(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        with self._writing:
            for job, some in samples.items():
                if not _SAFE.fullmatch(job):
                    continue
                try:
                    # Taken out and put in again: the first is always the one not heard of for longest.
                    live = self._live.pop(job, None) or JobMetrics(self._home / job)
                    live.record(some)
                    self._live[job] = live
                except OSError as error:
                    self._complain(job, error)
                else:
                    self._complained = False
            while len(self._live) > max(MOST_LIVE, len(samples)):
                del self._live[next(iter(self._live))]

    def _remove(self, job: str) -> None:
        with self._writing:
            self._live.pop(job, None)
            self._histories = {name: some for name, some in self._histories.items() if name.job != job}
            for report in self._reports_home.glob(f"{job}.*"):
                if report.is_dir() and not report.is_symlink():
                    shutil.rmtree(report)  # of the job's own making
                else:
                    report.unlink(missing_ok=True)
            shutil.rmtree(self._home / job)

    def _complain(self, job: str, error: OSError) -> None:
        if not self._complained:
            _log.warning("the metrics of job %s cannot be kept: %s", job, error)
        self._complained = True

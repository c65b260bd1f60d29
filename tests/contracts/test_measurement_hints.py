"""Hints of what trials report, over the real stores: from output and files, until the output is over."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.builders import a_job
from tests.contracts.log_store import append, until
from trainshed.control.measurement_hints import MeasurementHints
from trainshed.core.jobs.job import Job
from trainshed.core.names import ReplicaName
from trainshed.logs.store import FileLogStore
from trainshed.metrics.store import FileMetricStore

NAME = ReplicaName("j1", 0, 0, 0)


@dataclass(slots=True)
class Watched:
    hints: MeasurementHints
    logs: FileLogStore
    metrics: FileMetricStore
    count: int = 0

    def hint(self) -> None:
        self.count += 1

    def watch(self, job: Job) -> bool:
        return self.hints.watch(job, self.hint)


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    logs, metrics = FileLogStore(tmp_path / "logs", 1 << 30), FileMetricStore(tmp_path / "metrics")
    await logs.start()
    await metrics.start()
    hints = MeasurementHints(logs=logs, reports=metrics)
    yield Watched(hints, logs, metrics)
    await hints.close()
    await metrics.close()
    await logs.close()


async def test_output_and_reports_are_hinted_until_the_output_is_over(watched: Watched) -> None:
    job = a_job(id="j1")
    stdout = watched.logs.sink(NAME).stdout
    assert watched.watch(job)
    await until(lambda: watched.count > 0)
    for _ in range(3):
        seen = watched.count
        append(stdout, b"accuracy=0.5\n")
        await until(lambda seen=seen: watched.count > seen)
    await watched.metrics.reported([NAME])
    seen = watched.count
    Path(watched.metrics.sink(NAME)).write_text("")
    await until(lambda: watched.count > seen)
    await watched.logs.finish("j1")
    await until(lambda: watched.hints.watched == frozenset())


async def test_a_job_is_followed_once_however_often_it_is_asked_for(watched: Watched) -> None:
    job = a_job(id="j1")
    watched.logs.sink(NAME)
    for _ in range(5):
        assert watched.watch(job)
    await until(lambda: watched.count > 0)
    assert watched.count == 1


async def test_a_job_with_a_place_for_event_files_has_to_be_looked_at_too(watched: Watched) -> None:
    job = a_job(id="j1")
    spec = replace(job.spec, output="gs://bucket/trial")
    assert not watched.watch(replace(job, spec=spec))

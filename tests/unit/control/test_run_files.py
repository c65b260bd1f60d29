"""The files that backends are given for what a replica writes."""

import logging
from pathlib import Path

import pytest

from trainshed.control.run_files import StoredRunFiles
from trainshed.core.errors import Unavailable
from trainshed.core.names import ReplicaName
from trainshed.logs.store import FileLogStore
from trainshed.metrics.store import FileMetricStore
from trainshed.testing.metrics import MemoryMetricStore

NAME = ReplicaName("j1", 1, 0, 2)


class FullMetricStore(MemoryMetricStore):
    def sink(self, name: ReplicaName) -> str:
        raise Unavailable("The disk is full.")


async def test_output_goes_to_the_log_and_reports_to_the_metrics(tmp_path: Path):
    logs, metrics = FileLogStore(tmp_path / "logs"), FileMetricStore(tmp_path / "metrics")
    await logs.start()
    files = StoredRunFiles(logs, metrics)
    output = files.output(NAME)
    assert files.output(NAME) == output == logs.sink(NAME)
    assert Path(output.stdout).is_file() and Path(output.stderr).is_file()
    assert files.report(NAME) == metrics.sink(NAME)
    assert Path(files.report(NAME)).parent.parent == tmp_path / "metrics"
    await logs.close()


def test_a_replica_starts_without_a_file_for_reports_where_none_can_be_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING):
        assert StoredRunFiles(FileLogStore(tmp_path), FullMetricStore()).report(NAME) == ""
    assert caplog.messages == ["The disk is full."]

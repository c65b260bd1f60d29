"""Every report counts, though the program's file keeps only the latest ones."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainshed import report
from trainshed.core.tuning.measurement import MetricChannel, ReportedEntry
from trainshed.metrics.history import MOST_JOURNAL, ReplicaHistory


class Tuner:
    """Writes hypertune's file as the package does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, object]] = []
        self.at = 1_700_000_000.0

    def tell(self, tag: str, value: float, step: int = 0) -> None:
        self.at += 1
        row = {"timestamp": self.at, "trial": "1", tag: str(value), "global_step": str(step)}
        self.rows = [*self.rows, row][-100:]
        self.path.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in self.rows))


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module of reports as a program just started finds it."""
    for name in ("_state", "_values", "_open"):
        monkeypatch.setattr(report, name, {})
    monkeypatch.setattr(report, "_place", 0)
    monkeypatch.setenv(report.VARIABLE, str(tmp_path / "report"))
    yield
    for handle in report._open.values():  # pyright: ignore[reportPrivateUsage]
        os.close(handle)


@pytest.fixture
def tuner(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "report.hypertune")


def history(folder: Path) -> ReplicaHistory:
    result = ReplicaHistory(str(folder / "report"), folder / "job" / "reported.0.0-0")
    result.look()
    return result


def told(entries: tuple[ReportedEntry, ...], name: str = "acc") -> list[tuple[int, float]]:
    return [(entry.step, entry.values[name]) for entry in entries if name in entry.values]


def test_reports_that_the_program_no_longer_keeps_are_still_known(tmp_path: Path, tuner: Tuner):
    known = history(tmp_path)
    for step in range(1, 351):
        tuner.tell("acc", step / 10, step)
        if step % 50 == 0:
            known.look()
    assert told(known.entries) == [(step, step / 10) for step in range(1, 351)]
    assert told(history(tmp_path).entries) == told(known.entries)  # the next server


def test_a_file_that_is_caught_empty_or_half_written_costs_nothing(tmp_path: Path, tuner: Tuner):
    known = history(tmp_path)
    for step in (1, 2, 3):
        tuner.tell("acc", step, step)
    known.look()
    whole = tuner.path.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        tuner.path.write_bytes(whole[:size])
        known.look()
    tuner.path.write_bytes(whole)
    known.look()
    assert told(known.entries) == [(1, 1), (2, 2), (3, 3)]


def test_reports_without_a_step_are_numbered_also_by_the_next_server(tmp_path: Path, tuner: Tuner):
    for value in (5, 6, 7):
        tuner.tell("acc", value)
    assert told(history(tmp_path).entries) == [(0, 5), (1, 6), (2, 7)]
    tuner.tell("acc", 8)
    assert told(history(tmp_path).entries)[-1] == (3, 8)


def test_a_torn_line_of_the_journal_costs_itself(tmp_path: Path, tuner: Tuner):
    tuner.tell("acc", 1, 1)
    history(tmp_path)
    journal = tmp_path / "job" / "reported.0.0-0"
    with journal.open("ab") as file:
        file.write(b'["hypertune", 17')
    tuner.path.unlink()
    tuner.rows.clear()
    tuner.tell("acc", 2, 2)
    history(tmp_path)
    assert told(history(tmp_path).entries) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("name", ["acc", "a/rather/long/name/" * 9])
def test_a_full_journal_is_thinned_and_keeps_the_best(tmp_path: Path, tuner: Tuner, name: str):
    known = history(tmp_path)
    for step in range(1, 8001):
        value = "99" if step == 1234 else "1"
        tuner.rows.append({"timestamp": 1794923811.123456 + step, name: value, "global_step": str(step)})
        if step % 100 == 0:
            tuner.path.write_text("".join(json.dumps(row) + "\n" for row in tuner.rows))
            tuner.rows.clear()
            known.look()
    assert (tmp_path / "job" / "reported.0.0-0").stat().st_size <= MOST_JOURNAL
    assert told(history(tmp_path).entries, name) == told(known.entries, name)
    steps = dict(told(known.entries, name))
    assert {1, 1234, 8000} <= steps.keys() and steps[1234] == 99
    assert 300 < len(steps) < 4000


def test_every_report_of_the_module_counts(tmp_path: Path):
    known = history(tmp_path)
    for step in range(1, 3001):
        report.step(step, total=3000, acc=step / 10)
        if step % 500 == 0:
            known.look()
    assert told(known.entries) == [(step, step / 10) for step in range(1, 3001)]
    assert {entry.channel for entry in known.entries} == {MetricChannel.REPORT}


def test_values_without_a_step_of_their_own_belong_to_the_last_one(tmp_path: Path):
    report.values(first=1)
    report.values(first=2)
    report.step(9, loss=1)
    report.values(acc=0.5)
    entries = history(tmp_path).entries
    assert (told(entries, "first"), told(entries, "acc")) == ([(0, 1), (1, 2)], [(9, 0.5)])
    assert told(entries, "loss") == [(9, 1)]  # not again with the others


def test_a_program_with_an_older_module_is_read_too(tmp_path: Path):
    line = b'1700000000500000000 {"step": 3.0, "values": {"acc": 0.5}} 1700000000500000000  \n'
    (tmp_path / "report").write_bytes(line)
    assert told(history(tmp_path).entries) == [(3, 0.5)]


def test_links_fifos_and_huge_files_are_harmless(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text('{"timestamp": 1.0, "acc": "1"}\n')
    (tmp_path / "report").symlink_to(secret)
    os.mkfifo(tmp_path / "report.hypertune")
    known = history(tmp_path)
    (tmp_path / "report.hypertune").unlink()
    (tmp_path / "report.hypertune").symlink_to(secret)
    known.look()
    assert known.entries == ()
    (tmp_path / "report.hypertune").unlink()
    with (tmp_path / "report.hypertune").open("wb") as file:
        file.truncate(10**9)
        file.seek(0, os.SEEK_END)
        file.write(b'\n{"timestamp": 1.0, "acc": "1", "global_step": "4"}\n')
    known.look()
    assert told(known.entries) == [(4, 1)]


def test_nothing_is_made_for_a_replica_that_reports_nothing(tmp_path: Path):
    assert history(tmp_path).entries == ()
    assert not (tmp_path / "job").exists()

"""The metric store of files: the promises, and those that only a disk can break."""

import json
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.contracts.log_store import until
from tests.contracts.metric_store import BEGAN, MetricStoreContract, at, sample, told, window
from trainshed import report
from trainshed.core.columns import ColumnQuery
from trainshed.core.metrics import hypertune_file
from trainshed.core.names import ReplicaName
from trainshed.core.ports import MetricStore, ReportSource
from trainshed.disk import inotify
from trainshed.metrics import job as job_files
from trainshed.metrics import segment
from trainshed.metrics.columns import read_columns
from trainshed.metrics.job import JobMetrics, read_job
from trainshed.metrics.segment import Resolution
from trainshed.metrics.store import FileMetricStore

HOUR = 3600
NAME = ReplicaName("j1", 0, 0, 0)


class TestFileMetricStore(MetricStoreContract):
    survives = True

    def make(self, home: Path) -> MetricStore:
        return FileMetricStore(home)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "metrics" / "j1"


def fill(metrics: JobMetrics, since: int, until: int, every: int = 2) -> None:
    for second in range(since, until, every):
        metrics.record([sample("cpu", second, float(second % 60)), sample("memory", second, second)])


def gaps(points: list[tuple[float, float]]) -> list[float]:
    return [after[0] - before[0] for before, after in pairwise(points)]


def test_the_last_half_hour_is_kept_whole_and_what_is_older_thinner_and_thinner(folder: Path) -> None:
    fill(JobMetrics(folder), 0, 14 * HOUR)
    points = told(read_job(folder, window()))
    ages = [14 * HOUR - second for second, _ in points]
    steps = dict(zip(ages, gaps(points), strict=False))
    assert {step for age, step in steps.items() if age <= HOUR / 2} == {2}
    assert max(step for age, step in steps.items() if age <= 6 * HOUR) <= 12
    assert max(steps.values()) <= 120
    assert points[0][0] == 0
    oldest = [value for second, value in points if second < HOUR]
    assert set(oldest) == {29.0}  # the mean of 0, 2, … 58


def test_a_young_job_is_answered_as_recorded_and_nothing_else(folder: Path) -> None:
    fill(JobMetrics(folder), 7, 207)
    assert [second for second, _ in told(read_job(folder, window(-1000)))] == list(range(7, 207, 2))


@pytest.mark.parametrize("hours", [0.4, 1, 5, 13])
def test_columns_have_enough_points_of_every_range_and_no_stretch_twice(folder: Path, hours: float) -> None:
    fill(JobMetrics(folder), 0, 14 * HOUR)
    until = BEGAN.timestamp() + 14 * HOUR
    asked = ColumnQuery(since=until - hours * HOUR, until=until, points=400)
    columns = read_columns(folder, asked)
    assert list(columns.times) == sorted(set(columns.times))
    assert 190 <= len(columns.times) <= 1600
    assert max(after - before for before, after in pairwise(columns.times)) <= 120
    assert columns.times[0] - asked.since <= 60
    assert until - columns.times[-1] <= 2  # also what is not gathered yet
    assert {len(column) for column in columns.values.values()} == {len(columns.times)}


def test_the_room_a_job_takes_has_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tuple(replace(one, span=one.span / 100) for one in segment.RESOLUTIONS)
    monkeypatch.setattr(job_files, "RESOLUTIONS", small)
    metrics = JobMetrics(folder)
    sizes: list[int] = []
    for day in range(40):
        # Busy for longer than the two finest spans, then quiet. Few renames: each waits for the disk.
        fill(metrics, day * 86400, day * 86400 + 300, every=2)
        fill(metrics, day * 86400 + 300, (day + 1) * 86400, every=7200)
        sizes.append(sum(file.stat().st_size for file in folder.iterdir()))
    assert max(sizes[20:]) <= max(sizes[:20])


def test_a_killed_server_loses_nothing_of_a_stretch_that_was_not_over(folder: Path) -> None:
    for begin in range(0, 2 * HOUR, 97):  # another server every 97 seconds, none of them closed
        fill(JobMetrics(folder), begin, min(begin + 97, 2 * HOUR), every=1)
    for label, step in (("10s", 10), ("60s", 60)):
        resolution = Resolution(step, 1e9)
        _, rows = segment.read(folder, resolution, 0, 1e12)
        memory = [(row[0] - BEGAN.timestamp(), row[2]) for row in rows if row[1] == 1]
        assert memory == [(second, second + step - 1) for second, _ in memory], label
        assert len(memory) == 2 * HOUR // step - 1, label


@pytest.mark.parametrize("torn", range(1, 20))
def test_half_a_point_at_the_end_costs_that_point_only(folder: Path, torn: int) -> None:
    fill(JobMetrics(folder), 0, 10)
    os.truncate(folder / "all.new", (folder / "all.new").stat().st_size - torn)
    assert [second for second, _ in told(read_job(folder, window()), "memory")] == [0, 2, 4, 6]
    fill(JobMetrics(folder), 10, 14)
    assert [second for second, _ in told(read_job(folder, window()), "memory")] == [0, 2, 4, 6, 10, 12]


def test_a_link_in_the_place_of_points_is_not_followed(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"a file of somebody else")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "all.new").symlink_to(other)
    JobMetrics(folder)
    assert other.read_bytes() == b"a file of somebody else"


@pytest.mark.parametrize("damage", [b"\0" * 4096, random.Random(7).randbytes(999), b""])
def test_damaged_files_cost_points_never_an_answer(folder: Path, damage: bytes) -> None:
    fill(JobMetrics(folder), 0, 100)
    for file in folder.iterdir():
        file.write_bytes(damage)
        read_job(folder, window(step=10))
        read_columns(folder, ColumnQuery(since=0, until=1e12, points=100))
    metrics = JobMetrics(folder)
    metrics.record([sample("cpu", 1e9, 1)])
    assert told(read_job(folder, window(1e8, 2e9))) == [(1e9, 1)]


def test_a_half_written_name_of_a_series_shifts_no_other(folder: Path) -> None:
    fill(JobMetrics(folder), 0, 10)
    with (folder / "series").open("ab") as file:
        file.write(b'["workerpool0-0", "hal')
    metrics = JobMetrics(folder)
    metrics.record([sample("disk_read", 10, 5)])
    assert told(read_job(folder, window()), "disk_read") == [(10, 5)]


async def test_a_disk_that_takes_nothing_costs_the_points_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FileMetricStore(tmp_path / "metrics")
    await store.start()
    (tmp_path / "metrics" / "j1").write_text("in the way")
    for second in range(3):
        await store.record({"j1": [sample("cpu", second, 1)], "j2": [sample("cpu", second, 1)]})
    assert len(told(await store.query("j2", window()))) == 3
    assert len([row for row in caplog.records if "j1" in row.getMessage()]) >= 1


@pytest.mark.parametrize("name", ["../other", "", ".", "a/b", "a\0b"])
async def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    store = FileMetricStore(tmp_path / "metrics")
    await store.start()
    (tmp_path / "other").mkdir()
    await store.record({name: [sample("cpu", 0, 1)]})
    await store.remove(name)
    assert store.sink(ReplicaName(name, 0, 0, 0)) == ""
    assert await store.query(name, window()) == ()
    assert (tmp_path / "other").exists()
    assert [path for path in (tmp_path / "metrics").rglob("*") if path.name != ".reports"] == []


# What programs say


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module as a program just started finds it."""
    for name in ("_state", "_values", "_open"):
        monkeypatch.setattr(report, name, {})
    monkeypatch.setattr(report, "_width", 0)
    monkeypatch.setattr(report, "_place", 0)
    monkeypatch.delenv(report.VARIABLE, raising=False)
    yield
    for handle in report._open.values():
        os.close(handle)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FileMetricStore]:
    store = FileMetricStore(tmp_path / "metrics")
    await store.start()
    yield store
    await store.close()


async def said(store: FileMetricStore, stdout: str = "") -> tuple[object, ...]:
    found = (await store.reports([ReportSource(NAME, stdout)])).get(NAME)
    return (found.step, found.total, dict(found.values)) if found else ()


@pytest.mark.usefixtures("fresh")
async def test_what_a_program_reports_is_read_and_the_last_word_counts(
    store: FileMetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await said(store) == ()
    monkeypatch.setenv(report.VARIABLE, store.sink(NAME))
    report.step(3, total=100, loss=0.123456789, name="no number")
    assert await said(store) == (3, 100, {"loss": 0.123456789})
    report.step(4, loss=2)
    report.values(accuracy=0.5)
    assert await said(store) == (4, 100, {"loss": 2, "accuracy": 0.5})


@pytest.mark.usefixtures("fresh")
async def test_a_report_takes_no_more_room_however_often_it_is_made(
    store: FileMetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(report.VARIABLE, store.sink(NAME))
    for number in range(5000):
        report.step(number, total=5000, **{f"v{number % 100}": 1.0})
    path = Path(store.sink(NAME))
    assert path.stat().st_size <= report.HISTORY + report.HISTORY_SIZE
    assert path.stat().st_blocks * 512 <= report.HISTORY_SIZE + 8192  # nothing between its two parts
    assert len(path.read_bytes().split(b"\n", 1)[0]) < 4096
    found = await said(store)
    assert found[0] == 4999


@pytest.mark.usefixtures("fresh")
def test_outside_trainshed_or_without_room_a_report_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report.step(1, total=2, loss=object())
    monkeypatch.setenv(report.VARIABLE, str(tmp_path / "missing" / "file"))
    report.step(1, total=2)
    assert list(tmp_path.iterdir()) == []


async def test_lines_of_output_tell_steps_and_only_whole_ones_count(
    store: FileMetricStore, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert await said(store, str(out)) == ()
    out.write_text("hello\nTRAINSHED_STEP 1/10 loss=5\nnoise\nTRAINSHED_STEP 2/10 loss=")
    assert await said(store, str(out)) == (1, 10, {"loss": 5})
    with out.open("a") as file:
        file.write("4\n")
    assert await said(store, str(out)) == (2, 10, {"loss": 4})
    with out.open("a") as file:
        file.write("x" * 500_000 + "\nTRAINSHED_STEP step=3 accuracy=0.5\n")
    assert await said(store, str(out)) == (3, 10, {"loss": 4, "accuracy": 0.5})
    with out.open("a") as file:
        file.write("y" * 500_000)
    assert await said(store, str(out)) == (3, 10, {"loss": 4, "accuracy": 0.5})
    with out.open("a") as file:
        file.write("\nTRAINSHED_STEP 4/10\n")
    assert (await said(store, str(out)))[0] == 4


def test_times_are_those_recorded(folder: Path) -> None:
    JobMetrics(folder).record([sample("cpu", 0.125, 1)])
    [series] = read_job(folder, window())
    assert series.points[0].at == at(0.125)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
async def test_a_report_that_is_no_file_is_left_alone_and_others_are_read(
    store: FileMetricStore, make: Callable[[str], None]
) -> None:
    other = ReplicaName("j2", 0, 0, 0)
    make(store.sink(NAME))
    Path(store.sink(other)).write_text('1 {"step": 3} 1\n')
    reports = await store.reports([ReportSource(NAME, ""), ReportSource(other, "")])
    assert [(name, report.step) for name, report in reports.items()] == [(other, 3)]
    await store.record({"j1": [sample("cpu", 1, 1.0)]})
    await store.remove("j1")
    assert not os.path.lexists(store.sink(NAME))


async def test_output_that_became_a_fifo_ends_no_reports(store: FileMetricStore, tmp_path: Path) -> None:
    Path(store.sink(NAME)).write_text('1 {"step": 3} 1\n')
    output = tmp_path / "output"
    os.mkfifo(output)
    writer = os.open(output, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(writer, b"TRAINSHED_STEP 4\n")
        reports = await store.reports([ReportSource(NAME, str(output))])
    finally:
        os.close(writer)
    assert reports[NAME].step == 3


async def test_a_huge_report_is_read_in_part(store: FileMetricStore) -> None:
    Path(store.sink(NAME)).write_text('1 {"step": 3} 1\n')
    os.truncate(store.sink(NAME), 1 << 42)
    assert (await store.reports([ReportSource(NAME, "")]))[NAME].step == 3


def tune(store: FileMetricStore, *steps: int) -> None:
    """Leave hypertune's file with only these reports."""
    rows = ({"timestamp": float(step), "acc": str(step), "global_step": str(step)} for step in steps)
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    Path(hypertune_file(store.sink(NAME))).write_text(text)


async def reported(store: FileMetricStore) -> list[int]:
    return [entry.step for entry in await store.reported([NAME])]


async def test_a_replica_that_was_asked_for_is_looked_at_with_the_others(tmp_path: Path) -> None:
    store = FileMetricStore(tmp_path / "metrics")
    await store.start()
    tune(store, 1, 2)
    assert await reported(store) == [1, 2]
    tune(store, 3)
    await store.reports([ReportSource(NAME, "")])
    tune(store, 4)
    assert await reported(store) == [1, 2, 3, 4]
    await store.close()
    later = FileMetricStore(tmp_path / "metrics")
    tune(later, 5)
    await later.reports([ReportSource(NAME, "")])  # nobody has asked this one yet
    tune(later, 6)
    assert await reported(later) == [1, 2, 3, 4, 5, 6]
    await later.remove("j1")
    assert await reported(later) == []
    assert [path for path in (tmp_path / "metrics").rglob("*") if path.name != ".reports"] == []


async def test_a_replica_that_nobody_asked_for_has_no_journal(store: FileMetricStore, tmp_path: Path) -> None:
    tune(store, 1)
    report = (await store.reports([ReportSource(NAME, "")]))[NAME]
    assert (report.step, report.values) == (1, {"acc": 1.0})
    assert not list(tmp_path.rglob("reported.*"))


async def test_no_name_of_a_job_leads_out_of_the_folder_of_reports(store: FileMetricStore) -> None:
    assert await store.reported([ReplicaName("../up", 0, 0, 0)]) == ()


# When programs say something


class Hints:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


async def test_a_report_is_hinted_once_after_each_look_at_the_reports(store: FileMetricStore) -> None:
    hints = Hints()
    tune(store, 1)
    assert store.watch("j1", hints)
    await reported(store)
    for step in (2, 3, 4):
        tune(store, step)
    await until(lambda: hints.count == 1)
    assert await reported(store) == [1, 4]
    tune(store, 5)
    await until(lambda: hints.count == 2)


@pytest.mark.usefixtures("fresh")
async def test_the_first_report_is_hinted_though_its_file_was_not_there(
    store: FileMetricStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints = Hints()
    store.watch("j1", hints)
    await reported(store)
    monkeypatch.setenv(report.VARIABLE, store.sink(NAME))
    report.step(1, acc=1.0)
    await until(lambda: hints.count > 0)
    assert await reported(store) == [1]
    seen = hints.count
    report.step(2, acc=2.0)
    await until(lambda: hints.count > seen)


async def test_a_job_that_is_watched_no_more_gives_no_hints_and_others_do(store: FileMetricStore) -> None:
    gone, stays = Hints(), Hints()
    other = ReplicaName("j2", 0, 0, 0)
    store.watch("j1", gone)
    store.watch("j2", stays)
    await store.reported([NAME])
    await store.reported([other])
    store.unwatch("j1")
    tune(store, 1)
    Path(store.sink(other)).write_text("")
    await until(lambda: stays.count > 0)
    assert gone.count == 0


async def test_where_the_kernel_tells_nothing_the_store_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "_libc", object())
    store = FileMetricStore(tmp_path / "metrics")
    await store.start()
    assert not store.watch("j1", Hints())
    tune(store, 1)
    assert await reported(store) == [1]
    await store.close()

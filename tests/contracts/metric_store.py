"""What every metric store keeps to: the numbered promises of `core.ports.MetricStore`, as tests.

Inherit, and give `make`. `survives` says whether another store over the same folder finds what one took.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from trainshed.core.columns import ColumnQuery
from trainshed.core.metrics import MetricQuery, Sample, Series
from trainshed.core.ports import MetricStore

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
TASK = "workerpool0-0"


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def sample(name: str, seconds: float, value: float, task: str = TASK) -> Sample:
    return Sample(task, name, at(seconds), value)


def window(since: float = 0, until: float = 1e8, step: float = 0) -> MetricQuery:
    return MetricQuery(since=at(since), until=at(until), step=timedelta(seconds=step))


def told(series: Sequence[Series], name: str = "cpu", task: str = TASK) -> list[tuple[float, float]]:
    """The points of one series: seconds since the beginning, value."""
    for one in series:
        if (one.task, one.name) == (task, name):
            return [((point.at - BEGAN).total_seconds(), point.value) for point in one.points]
    return []


class MetricStoreContract:
    survives = False

    def make(self, home: Path) -> MetricStore:
        raise NotImplementedError

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[MetricStore]:
        store = self.make(tmp_path / "metrics")
        await store.start()
        yield store
        await store.close()

    async def test_a_job_nobody_knows_has_no_series(self, store: MetricStore) -> None:
        assert await store.query("nobody", window()) == ()
        asked = ColumnQuery(since=0, until=1e10, points=100)
        assert not (await store.columns({"nobody": asked}))["nobody"].times

    async def test_what_is_recorded_is_answered_in_order_of_time(self, store: MetricStore) -> None:
        for second in (0, 2, 4):
            await store.record({"j1": [sample("cpu", second, second / 2), sample("memory", second, 1e9)]})
        series = await store.query("j1", window())
        assert told(series) == [(0, 0), (2, 1), (4, 2)]
        assert told(series, "memory") == [(0, 1e9), (2, 1e9), (4, 1e9)]
        assert [one.unit for one in series] == ["cores", "bytes"]

    async def test_jobs_and_replicas_do_not_mix(self, store: MetricStore) -> None:
        await store.record({"j1": [sample("cpu", 0, 1), sample("cpu", 0, 2, "workerpool1-0")]})
        await store.record({"j2": [sample("cpu", 0, 3)]})
        series = await store.query("j1", window())
        assert (told(series), told(series, task="workerpool1-0")) == ([(0, 1)], [(0, 2)])
        assert told(await store.query("j2", window())) == [(0, 3)]

    async def test_a_window_has_both_its_ends(self, store: MetricStore) -> None:
        for second in range(0, 20, 2):
            await store.record({"j1": [sample("cpu", second, second)]})
        assert [second for second, _ in told(await store.query("j1", window(4, 8)))] == [4, 6, 8]

    async def test_no_moment_comes_twice(self, store: MetricStore) -> None:
        for second in (0, 2, 2, 1, 4):
            await store.record({"j1": [sample("cpu", second, second)]})
        assert [second for second, _ in told(await store.query("j1", window()))] == [0, 2, 4]

    async def test_a_step_folds_cpu_by_its_mean_memory_by_its_peak_and_reports_by_the_last(
        self, store: MetricStore
    ) -> None:
        for second, value in enumerate((1, 5, 3)):
            names = ("cpu", "memory", "step", "value.loss")
            await store.record({"j1": [sample(name, second, value) for name in names]})
        series = await store.query("j1", window(step=10))
        assert told(series) == [(0, 3)]
        assert told(series, "memory") == [(0, 5)]
        assert told(series, "step") == told(series, "value.loss") == [(0, 3)]

    async def test_columns_share_their_moments_and_have_none_where_nothing_was_recorded(
        self, store: MetricStore
    ) -> None:
        for second in (0, 2, 4):
            samples = [sample("cpu", second, second), sample("cpu", second, 7, "workerpool1-0")]
            await store.record({"j1": samples[: 1 if second == 2 else 2]})
        begin = BEGAN.timestamp()
        asked = ColumnQuery(since=begin, until=begin + 100, points=1000)
        columns = (await store.columns({"j1": asked, "nobody": asked}))["j1"]
        assert [moment - begin for moment in columns.times] == [0, 2, 4]
        assert {name: list(column) for name, column in columns.values.items()} == {
            (TASK, "cpu"): [0, 2, 4],
            ("workerpool1-0", "cpu"): [7, None, 7],
        }
        part = replace(asked, since=begin + 1, until=begin + 3, names=lambda name: name == "cpu")
        assert (await store.columns({"j1": part}))["j1"].times == [begin + 2]
        none = replace(asked, names=lambda name: name == "step")
        assert (await store.columns({"j1": none}))["j1"].values == {}

    async def test_columns_of_replicas_that_come_and_go_have_each_value_at_its_moment(
        self, store: MetricStore
    ) -> None:
        begin = BEGAN.timestamp()
        wanted: dict[tuple[str, str], list[float | None]] = {}
        for number in range(60):
            there = (0, 1, 2) if number < 20 else (0, 2) if number < 41 else (number % 3,)
            samples = [sample("cpu", number, number + task, f"workerpool0-{task}") for task in there]
            await store.record({"j1": samples})
            for task in range(3):
                column = wanted.setdefault((f"workerpool0-{task}", "cpu"), [])
                column.append(number + task if task in there else None)
        asked = ColumnQuery(since=begin, until=begin + 100, points=1000)
        columns = (await store.columns({"j1": asked}))["j1"]
        assert [moment - begin for moment in columns.times] == [*range(60)]
        assert {name: list(column) for name, column in columns.values.items()} == wanted

    async def test_a_removed_job_leaves_nothing_and_may_be_removed_again(
        self, store: MetricStore, tmp_path: Path
    ) -> None:
        await store.record({"j1": [sample("cpu", 0, 1)], "j2": [sample("cpu", 0, 1)]})
        await store.remove("j1")
        await store.remove("j1")
        await store.remove("nobody")
        assert await store.query("j1", window()) == ()
        assert told(await store.query("j2", window())) == [(0, 1)]
        assert not list(tmp_path.rglob("*j1*"))
        await store.record({"j1": [sample("cpu", 10, 2)]})
        assert told(await store.query("j1", window())) == [(10, 2)]

    async def test_another_store_finds_what_the_first_took(self, store: MetricStore, tmp_path: Path) -> None:
        if not self.survives:
            pytest.skip("keeps nothing beyond its process")
        await store.record({"j1": [sample("cpu", 0, 1)]})
        # Never closed: as after kill -9.
        successor = self.make(tmp_path / "metrics")
        await successor.start()
        await successor.record({"j1": [sample("cpu", 2, 2), sample("memory", 2, 7)]})
        series = await successor.query("j1", window())
        assert told(series) == [(0, 1), (2, 2)]
        assert told(series, "memory") == [(2, 7)]
        await successor.close()

"""Rates, folding, progress: the arithmetic of metrics."""

import math
from datetime import timedelta

import pytest

from tests.builders import at
from trainshed.core.metrics import (
    Fold,
    GpuUse,
    Point,
    Report,
    Series,
    Usage,
    fold_of,
    last_progress,
    progress,
    rates,
    report_samples,
    thinned,
    unit_of,
)


def test_counters_become_rates_and_levels_stay():
    before = Usage(taken=10, cpu_seconds=1, read_bytes=0, written_bytes=100)
    now = Usage(taken=12, cpu_seconds=4, memory=500, read_bytes=2000, written_bytes=100, processes=3)
    assert rates(before, now) == {
        "cpu": 1.5,
        "memory": 500,
        "disk_read": 1000,
        "disk_write": 0,
        "processes": 3,
    }


def test_without_a_look_before_there_are_only_levels():
    now = Usage(taken=12, cpu_seconds=4, memory=500)
    assert rates(None, now) == {"memory": 500}
    assert rates(now, now) == {"memory": 500}


def test_a_rate_is_never_negative():
    assert rates(Usage(taken=1, cpu_seconds=9), Usage(taken=2, cpu_seconds=1)) == {"cpu": 0}


def test_each_gpu_has_its_own_series():
    now = Usage(
        taken=1, gpus=(GpuUse(device="0", share=0.5, memory=7), GpuUse(device="3", share=1, memory=8))
    )
    assert rates(None, now) == {"gpu0": 0.5, "gpu_memory0": 7, "gpu3": 1, "gpu_memory3": 8}


@pytest.mark.parametrize(
    ("name", "unit", "fold"),
    [
        ("cpu", "cores", Fold.MEAN),
        ("memory", "bytes", Fold.MOST),
        ("gpu0", "share", Fold.MEAN),
        ("gpu_memory0", "bytes", Fold.MOST),
        ("disk_read", "bytes/s", Fold.MEAN),
        ("step", "steps", Fold.LAST),
        ("value.memory", "", Fold.LAST),
    ],
)
def test_a_series_has_its_unit_and_its_way_of_folding(name: str, unit: str, fold: Fold):
    assert (unit_of(name), fold_of(name)) == (unit, fold)


def test_thinning_keeps_the_order_and_every_stretch():
    points = tuple(Point(at(second), float(second)) for second in range(25))
    thin = thinned(Series("t", "cpu", points), timedelta(seconds=10))
    assert [(p.at, p.value) for p in thin.points] == [(at(0), 4.5), (at(10), 14.5), (at(20), 22)]
    assert thinned(thin, timedelta()) is thin


def test_the_time_left_follows_from_the_pace_so_far():
    first = Report(at=at(0), step=10, total=100)
    now = Report(at=at(30), step=40, total=100, values={"loss": 0.5})
    told = progress("t", now, first, at(30))
    assert (told.share, told.left) == (0.4, timedelta(seconds=60))
    assert progress("t", now, first, at(50)).left == timedelta(seconds=40)
    assert progress("t", now, first, at(500)).left == timedelta()


@pytest.mark.parametrize(
    ("first", "now"),
    [
        (None, Report(at=at(9), step=4, total=10)),
        (Report(at=at(0), step=4, total=10), Report(at=at(9), step=4, total=10)),
        (Report(at=at(9), step=1, total=10), Report(at=at(9), step=4, total=10)),
        (Report(at=at(0), step=1), Report(at=at(9), step=4)),
        (Report(at=at(0), step=1), Report(at=at(9), values={"loss": 1.0})),
    ],
)
def test_without_a_pace_there_is_no_time_left(first: Report | None, now: Report):
    assert progress("t", now, first, at(9)).left is None


def test_a_share_stays_within_its_bounds():
    assert progress("t", Report(at=at(0), step=30, total=20), None, at(0)).share == 1
    assert progress("t", Report(at=at(0), step=3, total=0), None, at(0)).share is None


def test_a_loss_that_is_no_number_is_no_sample():
    report = Report(at=at(0), step=1, values={"loss": math.nan, "rate": math.inf, "fine": 2.0})
    assert [(s.name, s.value) for s in report_samples("t", report)] == [("step", 1), ("value.fine", 2)]


def test_the_last_progress_is_that_of_the_first_replica_that_counts_steps():
    def one(task: str, name: str, value: float) -> Series:
        return Series(task, name, (Point(at(0), 0), Point(at(2), value)))

    series = [one("a", "cpu", 1), one("a", "value.loss", 3), one("b", "step", 7), one("b", "total", 9)]
    told = last_progress(series)
    assert told is not None
    assert (told.task, told.step, told.total, dict(told.values)) == ("b", 7, 9, {})
    assert last_progress(series[:1]) is None

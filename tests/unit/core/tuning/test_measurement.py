"""Points of several channels become measurements, and a metric that is missing is explained."""

import itertools
import math
import random

import pytest

from trainshed.core.tuning.measurement import (
    ChannelLook,
    MetricChannel,
    MetricPoint,
    evenly,
    merge,
    missing_sentence,
    settled,
    thin,
    valid_step,
)

HYPERTUNE, TENSORBOARD, STDOUT, REPORT = MetricChannel


def points(*values: float, step: int = 1, at: float = 100) -> list[MetricPoint]:
    return [MetricPoint(step + n, at + n, value) for n, value in enumerate(values)]


def test_the_first_channel_that_has_a_metric_counts_for_all_of_it():
    channels = {STDOUT: {"loss": points(9, 8), "acc": points(0.1, 0.2)}, HYPERTUNE: {"loss": points(3)}}
    first, second = merge(channels, ["loss", "acc"], 100, 200)
    assert first.values == {"loss": 3, "acc": 0.1}
    assert second.values == {"acc": 0.2}
    assert (first.elapsed, second.elapsed) == (0, 1)


def test_metrics_that_nobody_wants_are_left_out():
    assert merge({REPORT: {"loss": points(1)}}, ["acc"], 0, 10) == ()


def test_a_program_that_starts_over_replaces_what_it_said_of_later_steps():
    before, after = points(1, 2, 3, 4, at=0), points(20, 30, step=2, at=50)
    assert [(p.step, p.value) for p in settled([*after, *before])] == [(1, 1), (2, 20), (3, 30)]


def test_nan_and_infinite_values_stay():
    channels = {REPORT: {"loss": points(math.nan, math.inf, -math.inf)}}
    values = [item.values["loss"] for item in merge(channels, ["loss"], 0, 1000)]
    assert math.isnan(values[0]) and values[1:] == [math.inf, -math.inf]


def test_a_long_curve_keeps_its_first_last_lowest_and_highest_value():
    numbers = random.Random(1)
    values = [numbers.random() for _ in range(50_000)]
    values[777], values[40_001] = -5, 5
    measurements = merge({STDOUT: {"loss": points(*values)}}, ["loss"], 0, 1e9)
    assert len(measurements) == 1000
    steps = [item.step for item in measurements]
    assert steps == sorted(steps)
    assert {1, 778, 40_002, 50_000} <= set(steps)
    assert max(b - a for a, b in itertools.pairwise(steps)) < 100


def test_a_curve_of_nan_only_can_be_thinned():
    assert len(thin(points(*[math.nan] * 100), 10)) == 10


@pytest.mark.parametrize(
    ("count", "kept", "most"), [(10, range(10), 3), (5, [2], 5), (100, [50, 99], 7), (0, [], 3)]
)
def test_never_more_places_are_chosen_than_allowed(count: int, kept: list[int], most: int):
    chosen = evenly(count, kept, most)
    assert len(chosen) == min(count, most)
    assert chosen == sorted(set(chosen))


def test_times_before_the_start_and_after_the_end_are_drawn_in():
    wrong = [MetricPoint(1, -1e300, 1), MetricPoint(2, 1e300, 2)]
    assert [item.elapsed for item in merge({REPORT: {"a": wrong}}, ["a"], 1000, 1060)] == [0, 60]


@pytest.mark.parametrize("number", [None, math.nan, math.inf, -1, 1e300])
def test_what_cannot_be_a_step_is_none(number: float | None):
    assert valid_step(number) is None


def test_a_missing_metric_is_explained_with_what_was_there():
    looks = (
        ChannelLook(HYPERTUNE),
        ChannelLook(TENSORBOARD, (), "no AIP_TENSORBOARD_LOG_DIR"),
        ChannelLook(STDOUT, ("loss", "val_acc")),
        ChannelLook(REPORT, tuple(f"layer{n}" for n in range(20))),
    )
    sentence = missing_sentence("val-acc", looks)
    assert sentence.startswith("The program reported no value of 'val-acc'.")
    assert "cloudml-hypertune (nothing there)" in sentence
    assert "TensorBoard (no AIP_TENSORBOARD_LOG_DIR)" in sentence
    assert "the output ('loss', 'val_acc')" in sentence
    assert "and 12 more" in sentence
    assert sentence.endswith("Did you mean 'val_acc'?")


@pytest.mark.parametrize(
    ("wanted", "there", "meant"),
    [
        ("accuracy", "validation/epoch_accuracy", "validation/epoch_accuracy"),
        ("val_accuracy", "accuracy", "accuracy"),
        ("Loss", "loss", "loss"),
        ("f1", "loss", ""),
        ("accuracy", "lr", ""),
    ],
)
def test_the_name_that_was_probably_meant_is_close_to_the_wanted_one(wanted: str, there: str, meant: str):
    sentence = missing_sentence([wanted], [ChannelLook(REPORT, (there,))])
    assert sentence.endswith(f"Did you mean '{meant}'?") if meant else "Did you mean" not in sentence

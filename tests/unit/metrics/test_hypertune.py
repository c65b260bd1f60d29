"""The file of cloudml-hypertune, in whatever state a reader finds it."""

import json
import math

import pytest

from trainshed.metrics.hypertune import parse_tuned
from trainshed.metrics.spoken import last_tuned


def entry(tag: str = "acc", value: object = "0.5", step: object = "3", at: object = 1700.5) -> bytes:
    row = {"timestamp": at, "trial": "1", tag: value, "global_step": step, "checkpoint_path": ""}
    return json.dumps(row, sort_keys=True).encode() + b"\n"


def test_an_entry_is_read_with_numbers_that_are_texts():
    [value] = parse_tuned(entry())
    assert (value.tag, value.value, value.step, value.at) == ("acc", 0.5, 3, 1700.5)


def test_a_tag_that_is_empty_is_that_of_google():
    assert parse_tuned(entry(tag=""))[0].tag == "training/hptuning/metric"


def test_nan_and_infinity_are_values():
    values = [item.value for item in parse_tuned(entry(value="nan") + entry(value="-inf"))]
    assert math.isnan(values[0]) and values[1] == -math.inf


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        entry()[:-10],
        entry()[5:],
        entry(value="many"),
        entry(value=None),
        entry(value=True),
        entry(value="9" * 5000),
        entry(at="soon"),
        entry(at="inf"),
        b"{" * 10_000 + b"}",
        b'{"a":' * 10_000 + b"}",
        b"[1, 2]\n",
        bytes(range(256)),
    ],
)
def test_what_is_no_entry_is_passed_over(data: bytes):
    assert parse_tuned(data) == []
    assert [item.tag for item in parse_tuned(data + b"\n" + entry(tag="good"))] == ["good"]


@pytest.mark.parametrize("step", ["-1", "1e300", "nan", None, [], "x"])
def test_a_step_that_is_none_counts_as_not_given(step: object):
    assert parse_tuned(entry(step=step))[0].step == 0


def test_graphs_show_the_last_value_of_each_tag():
    report = last_tuned(entry("a", "1", "1") + entry("b", "2", "1") + entry("a", "3", "2", 1800.0))
    assert report is not None
    assert (report.step, report.values, report.at.timestamp()) == (2, {"a": 3, "b": 2}, 1800)
    assert last_tuned(entry(at=1e300)) is None

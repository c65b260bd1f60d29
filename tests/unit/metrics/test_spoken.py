"""What programs say, read without trusting a byte of it."""

import math

import pytest

from tests.builders import at
from trainshed.core.metrics import Report
from trainshed.metrics.spoken import last_line, parse_file

NOW = at(0)


def test_a_report_is_read_with_its_time():
    report = parse_file(b'1700000000500000000 {"step": 3.0, "values": {"loss": 0.5}} 1700000000500000000  \n')
    assert report is not None
    assert (report.step, report.total, report.values) == (3, None, {"loss": 0.5})
    assert report.at.timestamp() == 1700000000.5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"1 {} 2\n",  # caught while it was being written
        b"1 [] 1\n",
        b"1 {nonsense} 1\n",
        b"x {} x\n",
        b"9" * 400 + b" {} " + b"9" * 400,
        b"1 " + b"[" * 60_000 + b" 1",
        bytes(range(256)),
    ],
)
def test_what_is_no_report_says_nothing(data: bytes):
    assert parse_file(data) is None


def test_values_that_are_no_numbers_are_left_out_and_their_count_is_bounded():
    values = ", ".join(f'"v{n}": {n}' for n in range(1000))
    report = parse_file(b'1 {"step": "x", "values": {"a": null, "b": [1], "n": NaN, %s}} 1' % values.encode())
    assert report is not None and report.step is None
    assert len(report.values) == 64
    assert math.isnan(report.values["n"]) and "a" not in report.values


@pytest.mark.parametrize(
    ("line", "step", "total", "values"),
    [
        (b"TRAINSHED_STEP 3/100 loss=0.5\n", 3, 100, {"loss": 0.5}),
        (b"TRAINSHED_STEP 3\n", 3, None, {}),
        (b"TRAINSHED_STEP step=3 total=100\n", 3, 100, {}),
        (b"TRAINSHED_STEP loss=1e-3 what=ever\n", None, None, {"loss": 0.001}),
        (b"bar 50%\rTRAINSHED_STEP 4/5\n", 4, 5, {}),
        (b"TRAINSHED_STEP 1/9\nTRAINSHED_STEP 2/9\nlast\n", 2, 9, {}),
    ],
)
def test_a_line_is_understood(line: bytes, step: float, total: float, values: dict[str, float]):
    report = last_line(line, NOW, None)
    assert report is not None
    assert (report.step, report.total, report.values) == (step, total, values)


@pytest.mark.parametrize(
    "line", [b"", b"say TRAINSHED_STEP 3\n", b"TRAINSHED_STEPS 3\n", b"TRAINSHED_STEP \n"]
)
def test_a_line_about_something_else_is_left_alone(line: bytes):
    assert last_line(line, NOW, None) is None


def test_what_was_said_before_stays_until_it_is_said_anew():
    before = Report(at=NOW, step=1, total=9, values={"loss": 3.0, "rate": 1.0})
    report = last_line(b"TRAINSHED_STEP 2 loss=2\n", NOW, before)
    assert report is not None
    assert (report.step, report.total, report.values) == (2, 9, {"loss": 2, "rate": 1})

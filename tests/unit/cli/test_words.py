from datetime import UTC, datetime, timedelta

import pytest

from trainshed.cli import words
from trainshed.cli.follow import encoded, exit_code
from trainshed.cli.ls import condition
from trainshed.cli.paint import harmless
from trainshed.cli.table import cut, table, width
from trainshed.cli.wait import seconds


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (2.52, "2.5s"),
        (9.97, "10s"),
        (59.6, "1m"),
        (310, "5m 10s"),
        (7500, "2h 5m"),
        (86400, "1d"),
        (360_000, "4d 4h"),
        (-5, "0s"),
    ],
)
def test_lengths_of_time_are_short(length: float, text: str) -> None:
    assert words.span(timedelta(seconds=length)) == text


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [(12, 17, "in 12m to 17m"), (-3, 17, "within 17m"), (None, 17, None)],
)
def test_a_range_of_times_is_two_lengths_from_now(first: int | None, last: int, text: str | None) -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    times = {"likelyFrom": first, "likelyTo": last}
    eta = {key: (now + timedelta(minutes=n)).isoformat() for key, n in times.items() if n is not None}
    assert words.range_of(eta, now) == text


def test_googles_nanosecond_times_are_read() -> None:
    at = words.moment("2026-01-31T12:00:00.123456789Z")
    assert at == datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
    assert words.moment("") is words.moment(None) is words.moment("soon") is None


@pytest.mark.parametrize(
    ("count", "text"), [(512, "512 B"), (4 << 30, "4 GiB"), ("1073741824", "1 GiB"), (1023 << 20, "1023 MiB")]
)
def test_sizes_have_the_unit_that_fits(count: object, text: str) -> None:
    assert words.size(count) == text


def test_replicas_are_counted_over_all_pools_and_an_empty_one_has_none() -> None:
    pools = [{"replicaCount": "1"}, {}, {"machineSpec": {}}, {"replicaCount": 3}]
    assert words.replica_count({"jobSpec": {"workerPoolSpecs": pools}}) == 5
    assert words.replica_count({}) == 0


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"state": "SUCCEEDED"}, 0),
        ({"state": "JOB_STATE_SUCCEEDED"}, 0),
        ({"state": "CANCELLED"}, 1),
        ({"state": "FAILED"}, 1),
        ({"state": "FAILED", "failure": {"task": "b"}, "replicas": [{"task": "b", "exit": {"code": 3}}]}, 3),
        ({"state": "FAILED", "failure": {"task": "b"}, "replicas": [{"task": "a", "exit": {"code": 3}}]}, 1),
        (
            {"state": "FAILED", "failure": {"task": "b"}, "replicas": [{"task": "b", "exit": {"signal": 9}}]},
            137,
        ),
        ({"state": "FAILED", "failure": {"task": "b"}, "replicas": [{"task": "b", "exit": {"code": 0}}]}, 1),
        ({"state": "FAILED", "failure": {"task": "b"}, "replicas": [{"task": "b", "exit": None}]}, 1),
    ],
)
def test_a_jobs_outcome_is_an_exit_code(status: dict[str, object], code: int) -> None:
    assert exit_code(status) == code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü", "plain ü"),
        ("a\tb", "a\tb"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m\x1b[0m"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("bell\x07 nul\x00 c1\x9b", "bell^G nul^@ c1\\x9b"),
        ("10%\r50%\r100%", "100%"),
        ("100%\r", "100%"),
        ("bad \udcff", "bad \ufffd"),
        ("\x1b", "^["),
    ],
)
def test_a_terminal_gets_colours_and_nothing_that_could_harm_it(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_bytes_that_were_no_utf8_come_out_as_they_went_in() -> None:
    assert encoded(b"\xff\xfe ok".decode("utf-8", "surrogateescape")) == b"\xff\xfe ok"
    assert encoded("\ud800") == b"?"


def test_columns_are_aligned_by_what_letters_take_and_empty_ones_left_out() -> None:
    drawn = table(["ID", "NONE", "NAME", "WHY"], [["1", "", "漢字", "x"], ["22", "", "ab", ""]])
    assert drawn.splitlines() == ["ID  NAME  WHY", "1   漢字  x", "22  ab"]


def test_a_cut_text_fits_and_says_that_it_is_cut() -> None:
    assert cut("hello world", 8) == "hello w…"
    assert cut("漢字漢字", 5) == "漢字…"
    assert width(cut("漢字漢字", 4)) <= 4
    assert cut("short", 5) == "short"


def test_states_and_a_filter_are_both_asked_for() -> None:
    assert condition("", ()) == ""
    assert condition("a=1", ()) == "a=1"
    assert condition("", ("running",)) == 'state="JOB_STATE_RUNNING"'
    both = condition("a=1 OR b=2", ("queued", "failed"))
    assert both == '(a=1 OR b=2) AND (state="JOB_STATE_QUEUED" OR state="JOB_STATE_FAILED")'


def test_timeouts_have_units() -> None:
    assert [seconds(text) for text in ("90s", "15m", "2h", "1d", "7", "0.5s")] == [
        90,
        900,
        7200,
        86400,
        7,
        0.5,
    ]

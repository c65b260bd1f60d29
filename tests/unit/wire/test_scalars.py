from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.wire import scalars
from trainshed.wire.enums import ACCELERATORS, STRATEGIES


@pytest.mark.parametrize("value", [7, "7", 7.0, "07"])
def test_one_number_may_be_written_in_several_ways(value: object) -> None:
    assert scalars.read_int(value, scalars.INT64_MOST) == 7


@pytest.mark.parametrize("value", [1.5, True, "abc", "1.0", "", [], {}, float("nan"), float("inf"), "1" * 30])
def test_what_is_not_a_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        scalars.read_int(value, scalars.INT64_MOST)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, str(2**31)])
def test_a_number_too_large_for_its_field_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="32 bits"):
        scalars.read_int(value, scalars.INT32_MOST)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_program_could_be_given_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        scalars.read_text(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_a_duration_survives_being_written_and_read(length: timedelta) -> None:
    assert scalars.read_duration(scalars.duration_text(length)) == length


@pytest.mark.parametrize("value", [3600, "3600", "1h", "1.s", ".5s", " 1s", "1s\n", {"seconds": 1}, "٣s"])
def test_a_duration_is_text_in_seconds(value: object) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        scalars.read_duration(value)


def test_a_negative_duration_is_read_as_such() -> None:
    assert scalars.read_duration("-1.5s") == timedelta(seconds=-1.5)


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda at: at.year >= 1000))
def test_a_time_survives_being_written_and_read(at: datetime) -> None:
    text = scalars.time_text(at)
    assert scalars.read_time(text) == at
    assert len(text) == len("2026-01-31T12:00:00.000000Z")


@pytest.mark.parametrize(
    "value", ["2026-01-31", "2026-01-31T01:00:00+01:00", "2026-01-31t00:00:00.000000000z"]
)
def test_a_time_is_taken_in_all_forms_of_rfc_3339(value: str) -> None:
    assert scalars.read_time(value) == datetime(2026, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize("value", ["2026-01-31T12:00:00", "yesterday", "2026-02-30T00:00:00Z", 5, "2026-W01"])
def test_what_is_not_a_time_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        scalars.read_time(value)


def test_a_logs_time_has_nine_digits_always() -> None:
    assert scalars.nanos_text(1_000_000_000) == "1970-01-01T00:00:01.000000000Z"
    assert scalars.nanos_text(1_000_000_001) == "1970-01-01T00:00:01.000000001Z"


@pytest.mark.parametrize("value", ["SPOT", 4, 4.0])
def test_an_enumeration_is_taken_by_name_or_number(value: object) -> None:
    assert scalars.read_name(value, STRATEGIES) == "SPOT"


@pytest.mark.parametrize("value", ["spot", 5, True, "4", None, []])
def test_a_value_an_enumeration_does_not_have_is_refused_with_those_it_has(value: object) -> None:
    with pytest.raises(ValueError, match="must be one of ON_DEMAND, LOW_COST"):
        scalars.read_name(value, STRATEGIES)


def test_a_second_name_of_a_number_becomes_the_first() -> None:
    assert scalars.read_name("TPU_V4", ACCELERATORS) == "TPU_V4_POD"

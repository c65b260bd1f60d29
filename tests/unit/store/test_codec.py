from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.event import Reason
from trainshed.core.jobs.job import Failure, JobSpec, Pool, Scheduling, Status
from trainshed.core.jobs.replica import Exit, Phase, Replica
from trainshed.core.jobs.verdict import Cause, Verdict
from trainshed.store.codec import dumps, loads, read_time, write_time

T0 = datetime(2026, 3, 1, tzinfo=UTC)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner:
    number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    name: str
    when: datetime | None = None
    spans: tuple[timedelta, ...] = ()
    pair: tuple[int, datetime] | None = None
    colours: tuple[Colour, ...] = (Colour.RED,)
    inner: Inner = Inner()
    inners: tuple[Inner, ...] = ()


moments = st.datetimes(timezones=st.just(UTC))
spans = st.timedeltas(min_value=timedelta(days=-9999), max_value=timedelta(days=9999))
inners = st.builds(Inner, st.none() | st.integers())


@given(
    st.builds(
        Everything,
        name=st.text(),
        when=st.none() | moments,
        spans=st.lists(spans).map(tuple),
        pair=st.none() | st.tuples(st.integers(), moments),
        colours=st.lists(st.sampled_from(Colour)).map(tuple),
        inner=inners,
        inners=st.lists(inners).map(tuple),
    )
)
def test_what_is_read_is_what_was_written(value: Everything) -> None:
    assert loads(Everything, dumps(value)) == value


def test_an_exit_code_of_zero_is_not_the_absent_one() -> None:
    replica = Replica(pool=0, index=0, phase=Phase.ENDED, exit=Exit(code=0))
    assert loads(Replica, dumps(replica)) == replica


def test_a_wait_of_zero_is_not_an_endless_one() -> None:
    scheduling = Scheduling(max_wait=timedelta(0))
    assert loads(Scheduling, dumps(scheduling)).max_wait == timedelta(0)


def test_empty_defaults_are_left_out_and_meaningful_ones_are_written_down() -> None:
    assert dumps(Pool(replicas=2)) == '{"replicas":2}'
    assert '"timeout":604800.0' in dumps(JobSpec(pools=()))


def test_a_field_added_later_takes_its_default_and_one_dropped_later_is_ignored() -> None:
    assert loads(Status, '{"attempt":3,"no_longer_there":{"x":1}}') == Status(attempt=3)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "3", '{"name":"x","colours":["green"]}', '{"name":"x","when":3}']
)
def test_text_that_cannot_be_the_value_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        loads(Everything, text)


def test_a_type_nobody_can_store_is_refused_before_anything_is_written() -> None:
    @dataclass
    class Odd:
        values: set[int]

    with pytest.raises(TypeError, match="set"):
        dumps(Odd(set()))


def test_times_have_one_width_and_sort_as_text() -> None:
    east = timezone(timedelta(hours=2))
    times = [
        T0,
        T0 + timedelta(microseconds=1),
        T0 + timedelta(seconds=1),
        (T0 + timedelta(hours=1)).astimezone(east),
    ]
    texts = [write_time(at) for at in times]
    assert texts == sorted(texts)
    assert {len(text) for text in texts} == {27}
    assert [read_time(text) for text in texts] == times
    assert texts[0] == "2026-03-01T00:00:00.000000Z"


def test_a_failure_is_kept_with_its_verdict_and_one_of_earlier_days_is_read_without() -> None:
    verdict = Verdict(cause=Cause.KILLED, lines=("a", "b"), retry_may_help=True)
    status = Status(failure=Failure(reason=Reason.REPLICA_KILLED, message="x", verdict=verdict))
    assert loads(Status, dumps(status)) == status
    old = '{"failure":{"reason":"REPLICA_KILLED","message":"x"}}'
    assert loads(Status, old) == Status(failure=Failure(reason=Reason.REPLICA_KILLED, message="x"))

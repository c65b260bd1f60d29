"""The work queue in stepped time: who flies when, and never twice at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from tests.builders import at
from tests.unit.control.stepped import SteppedClock, in_stepped_time, simulate
from trainshed.control.queue import MOST_BACKOFF, MOST_FLIGHTS, WorkQueue
from trainshed.core.errors import Unavailable


class Flights:
    """Work that takes a while, and what was seen of it."""

    def __init__(self, takes: float = 0.0) -> None:
        self.queue = WorkQueue(SteppedClock())
        self.queue.serve(self)
        self.takes = takes
        self.log: list[tuple[str, float]] = []  # key and time of each take-off
        self.flying: list[str] = []
        self.most = 0
        self.answer: Callable[[str], Awaitable[datetime | None]] | None = None

    async def __call__(self, key: str) -> datetime | None:
        assert key not in self.flying, f"{key} flies twice at once"
        self.log.append((key, round(asyncio.get_running_loop().time(), 6)))
        self.flying.append(key)
        self.most = max(self.most, len(self.flying))
        try:
            await asyncio.sleep(self.takes)
            return await self.answer(key) if self.answer else None
        finally:
            self.flying.remove(key)

    def times(self, key: str = "a") -> list[float]:
        return [time for flown, time in self.log if flown == key]


@in_stepped_time
async def test_a_hint_makes_a_key_fly_once():
    flights = Flights()
    flights.queue.hint("a")
    await asyncio.sleep(10)
    assert flights.log == [("a", 0)]


def test_a_hint_that_comes_before_the_work_is_known_is_not_lost(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()
        early = WorkQueue(SteppedClock())
        early.hint("a")
        await asyncio.sleep(0)
        early.serve(flights)
        await asyncio.sleep(10)
        assert len(flights.log) == 1

    with caplog.at_level(logging.CRITICAL):
        simulate(play)


@in_stepped_time
async def test_hints_for_a_key_in_flight_make_it_fly_once_more_and_only_after_it_landed():
    flights = Flights(takes=1)
    flights.queue.hint("a")
    for _ in range(5):
        await asyncio.sleep(0.1)
        flights.queue.hint("a")
    await asyncio.sleep(10)
    assert flights.times() == [0, 1]


@in_stepped_time
async def test_different_keys_fly_at_the_same_time():
    flights = Flights(takes=1)
    for key in "abc":
        flights.queue.hint(key)
    await asyncio.sleep(0.5)
    assert sorted(flights.flying) == ["a", "b", "c"]


@in_stepped_time
async def test_no_more_than_so_many_fly_at_once_and_all_get_their_turn_oldest_first():
    flights = Flights(takes=1)
    keys = [f"{n:03d}" for n in range(MOST_FLIGHTS + 5)]
    for key in keys:
        flights.queue.hint(key)
    await asyncio.sleep(10)
    assert flights.most == MOST_FLIGHTS
    assert [key for key, _ in flights.log] == keys


@in_stepped_time
async def test_work_that_asks_to_be_looked_at_again_is_then():
    flights = Flights()

    async def once_more(_: str) -> datetime | None:
        return at(5) if len(flights.log) == 1 else None

    flights.answer = once_more
    flights.queue.hint("a")
    await asyncio.sleep(100)
    assert flights.times() == [0, 5]


@in_stepped_time
async def test_a_time_asked_for_replaces_the_one_before():
    flights = Flights()
    flights.queue.at("a", at(5))
    flights.queue.at("a", at(7))
    await asyncio.sleep(100)
    assert flights.times() == [7]


@in_stepped_time
async def test_many_who_ask_for_a_look_within_a_time_get_one():
    flights = Flights()
    for _ in range(5):
        flights.queue.within("a", 2)
        await asyncio.sleep(0.1)
    await asyncio.sleep(10)
    assert flights.times() == [2]


@in_stepped_time
async def test_a_look_within_a_time_comes_before_a_later_one_and_after_an_earlier():
    flights = Flights()
    flights.queue.at("a", at(5))
    flights.queue.within("a", 2)
    flights.queue.at("b", at(1))
    flights.queue.within("b", 2)
    await asyncio.sleep(10)
    assert (flights.times("a"), flights.times("b")) == ([2], [1])


@in_stepped_time
async def test_a_look_asked_for_while_one_goes_on_is_not_lost():
    flights = Flights(takes=1)
    flights.queue.hint("a")
    await asyncio.sleep(0.5)
    flights.queue.within("a", 2)
    await asyncio.sleep(10)
    assert flights.times() == [0, 1]


@in_stepped_time
async def test_a_time_in_the_past_is_now():
    flights = Flights()
    flights.queue.at("a", at(-5))
    await asyncio.sleep(1)
    assert flights.times() == [0]


@in_stepped_time
async def test_what_is_far_away_is_looked_at_every_hour():
    flights = Flights()

    async def far(_: str) -> datetime | None:
        return at(9000)

    flights.answer = far
    flights.queue.hint("a")
    await asyncio.sleep(8999)
    assert flights.times() == [0, 3600, 7200]


def test_a_failing_key_backs_off_twice_as_long_each_time_and_others_fly_on(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()

        async def fail(key: str) -> datetime | None:
            if key == "bad":
                raise RuntimeError("broken")
            return None

        flights.answer = fail
        flights.queue.hint("bad")
        await asyncio.sleep(1.5)
        flights.queue.hint("good")
        await asyncio.sleep(1.5)
        assert flights.times("bad") == [0, 0.2, 0.6, 1.4, 3.0]
        assert flights.times("good") == [1.5]

    with caplog.at_level(logging.CRITICAL):
        simulate(play)


def test_the_back_off_has_an_upper_end(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()

        async def fail(_: str) -> datetime | None:
            raise RuntimeError("broken")

        flights.answer = fail
        flights.queue.hint("a")
        await asyncio.sleep(1000)
        times = flights.times()
        assert times[-1] - times[-2] == pytest.approx(MOST_BACKOFF)

    with caplog.at_level(logging.CRITICAL):
        simulate(play)


def test_a_success_makes_the_next_back_off_short_again(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()

        async def fail_but_the_third(_: str) -> datetime | None:
            if len(flights.log) != 3:
                raise RuntimeError("broken")
            return at(10)

        flights.answer = fail_but_the_third
        flights.queue.hint("a")
        await asyncio.sleep(10.5)
        assert flights.times() == [0, 0.2, 0.6, 10, 10.2]

    with caplog.at_level(logging.CRITICAL):
        simulate(play)


def test_a_failure_forgets_the_time_asked_for_before(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()

        async def fail_the_second(_: str) -> datetime | None:
            if len(flights.log) == 2:
                raise RuntimeError("broken")
            return at(10) if len(flights.log) == 1 else None

        flights.answer = fail_the_second
        flights.queue.hint("a")
        await asyncio.sleep(1)
        flights.queue.hint("a")
        await asyncio.sleep(100)
        assert flights.times() == [0, 1, 1.2]

    with caplog.at_level(logging.CRITICAL):
        simulate(play)


def test_a_failure_is_told_with_its_key_and_count(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()

        async def fail(_: str) -> datetime | None:
            raise RuntimeError("broken")

        flights.answer = fail
        flights.queue.hint("job-7")
        await asyncio.sleep(0.3)

    simulate(play)
    assert [r.getMessage() for r in caplog.records if r.name == "trainshed.control.queue"] == [
        "work on job-7 failed (1 times in a row); again in 0.2 s",
        "work on job-7 failed (2 times in a row); again in 0.4 s",
    ]


def test_what_is_not_there_is_told_in_one_line_without_a_traceback(caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        flights = Flights()

        async def wait(_: str) -> datetime | None:
            raise Unavailable("There is no engine.")

        flights.answer = wait
        flights.queue.hint("job-7")
        await asyncio.sleep(0.1)

    simulate(play)
    [record] = [record for record in caplog.records if record.name == "trainshed.control.queue"]
    assert record.getMessage() == "work on job-7 has to wait; again in 0.2 s: There is no engine."
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


@in_stepped_time
async def test_closing_waits_for_what_flies_and_takes_no_more():
    flights = Flights(takes=1)

    async def again(_: str) -> datetime | None:
        return at(2)

    flights.answer = again
    flights.queue.hint("a")
    flights.queue.at("b", at(0.5))
    flights.queue.at("c", at(5))
    await asyncio.sleep(0.6)
    flights.queue.hint("a")
    await flights.queue.close()
    assert flights.flying == []
    flights.queue.hint("d")
    await asyncio.sleep(100)
    assert flights.log == [("a", 0), ("b", 0.5)]


async def test_hints_that_come_before_the_work_is_known_are_served_then():
    done: list[str] = []
    queue = WorkQueue(SteppedClock())

    async def work(key: str) -> None:
        done.append(key)

    queue.hint("1")
    await asyncio.sleep(0)
    assert done == []
    queue.serve(work)
    await asyncio.sleep(0)
    await queue.close()
    assert done == ["1"]

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshed.clock import SECOND, Sources, SteadyClock

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class World:
    """A wall clock somebody may set, and a counter nobody can."""

    def __init__(self) -> None:
        self.wall = int(START.timestamp()) * SECOND
        self.steady = 1000 * SECOND
        self.boot = "boot 1"

    def clock(self, path: Path) -> SteadyClock:
        return SteadyClock(path, Sources(lambda: self.wall, lambda: self.steady, lambda: self.boot))

    def passes(self, seconds: float) -> None:
        self.wall += int(seconds * SECOND)
        self.steady += int(seconds * SECOND)

    def is_set(self, seconds: float) -> None:
        self.wall += int(seconds * SECOND)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def anchor(tmp_path: Path) -> Path:
    return tmp_path / "clock.json"


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_it_starts_at_the_wall_and_counts_on(world: World, anchor: Path) -> None:
    clock = world.clock(anchor)
    assert clock.now() == START
    world.passes(1.5)
    assert clock.now() == after(1.5)
    assert clock.now().tzinfo is UTC


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 365 * 86400.0, 5.5, -5.5])
def test_a_jump_of_the_wall_is_not_followed_and_reported_once(
    world: World, anchor: Path, caplog: pytest.LogCaptureFixture, jump: float
) -> None:
    clock = world.clock(anchor)
    world.is_set(jump)
    for second in range(1, 200):
        world.passes(1)
        assert clock.now() == after(second)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{abs(jump):.1f} s" in record.getMessage()
    assert ("forwards" if jump > 0 else "backwards") in record.getMessage()


def test_a_second_jump_is_reported_again(
    world: World, anchor: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = world.clock(anchor)
    for jump in (100, 300, -400):
        world.is_set(jump)
        clock.now()
    assert [record.getMessage().split(" by ")[1][:7] for record in caplog.records] == ["100.0 s", "400.0 s"]


@pytest.mark.parametrize("drift", [4.0, -4.0])
def test_a_small_difference_is_made_up_for_gently(
    world: World, anchor: Path, caplog: pytest.LogCaptureFixture, drift: float
) -> None:
    clock = world.clock(anchor)
    world.is_set(drift)
    last = clock.now()
    assert abs((last - START).total_seconds()) < 0.001
    for _ in range(100):
        world.passes(1)
        step = (clock.now() - last).total_seconds()
        assert 0.9 <= step <= 1.1
        last = clock.now()
    assert last == after(100 + drift)
    assert not caplog.records


def test_a_restarted_server_counts_on_and_does_not_follow_what_happened_meanwhile(
    world: World, anchor: Path
) -> None:
    world.clock(anchor).now()
    world.passes(10)
    world.is_set(3600)
    again = world.clock(anchor)
    assert again.now() == after(10)


def test_a_restart_in_the_middle_of_a_correction_never_turns_time_back(world: World, anchor: Path) -> None:
    clock = world.clock(anchor)
    world.is_set(5)
    last = clock.now()
    for _ in range(100):
        world.passes(1)
        last = clock.now()
        world.passes(0.06)  # the time a server needs to start
        clock = world.clock(anchor)
        assert clock.now() >= last
    # Reached but for less than is worth writing down.
    assert timedelta(0) <= after(100 * 1.06 + 5) - clock.now() < timedelta(seconds=0.1)


@pytest.mark.parametrize("counter", [5 * SECOND, 5000 * SECOND])
def test_after_a_reboot_it_starts_at_the_wall_again(world: World, anchor: Path, counter: int) -> None:
    world.clock(anchor).now()
    world.boot, world.steady = "boot 2", counter
    world.is_set(86400)
    assert world.clock(anchor).now() == after(86400)
    assert json.loads(anchor.read_text())["boot_id"] == "boot 2"


def test_where_boots_cannot_be_told_apart_it_starts_at_the_wall(world: World, anchor: Path) -> None:
    world.boot = ""
    world.clock(anchor)
    world.is_set(100)
    assert world.clock(anchor).now() == after(100)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"boot_id": "boot 1"}', '{"boot_id":"b","wall_ns":"x"}'])
def test_a_damaged_anchor_is_made_anew(
    world: World, anchor: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    anchor.write_text(content)
    assert world.clock(anchor).now() == START
    assert len(caplog.records) == 1
    world.is_set(100)
    assert world.clock(anchor).now() == START


def test_without_a_place_for_the_anchor_time_goes_on(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = world.clock(tmp_path / "missing" / "clock.json")
    world.passes(1)
    assert clock.now() == after(1)
    assert "cannot be written" in caplog.text


@given(steps=st.lists(st.tuples(st.floats(0, 100), st.floats(-20, 20), st.booleans()), max_size=30))
def test_it_never_runs_backwards_whatever_happens_to_the_wall(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[float, float, bool]]
) -> None:
    world = World()
    anchor = tmp_path_factory.mktemp("clock") / "clock.json"
    clock = world.clock(anchor)
    last = clock.now()
    for passing, jump, restart in steps:
        world.passes(passing)
        world.is_set(jump)
        now = clock.now()
        assert now >= last
        last = now
        if restart:
            world.passes(0.06)
            clock = world.clock(anchor)


def test_the_real_sources_work(anchor: Path) -> None:
    clock = SteadyClock(anchor)
    first = clock.now()
    assert clock.now() >= first
    assert SteadyClock(anchor).now() >= first

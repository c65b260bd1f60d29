"""The rule and the judge of hangs, case by case."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import T0, at, seconds
from trainshed.core.jobs.hang import (
    HangRule,
    Pulse,
    ReplicaLife,
    RunActivity,
    Stall,
    StallKind,
    Suspicion,
    felt,
    is_over,
    judge,
)

RULE = HangRule(after=seconds(60), exit_after=seconds(20), asked=True)
PACE = RULE.pace()


def a_pulse(
    *, spoke: float = 0, worked: float = 0, begun: float = 0, sign: RunActivity | None = None
) -> Pulse:
    return Pulse(
        sign=sign or RunActivity(),
        begun_at=at(begun),
        seen_at=at(0),
        spoke_at=at(spoke),
        worked_at=at(worked),
    )


def alive(task: str = "workerpool0-0", **fields: float) -> ReplicaLife:
    return ReplicaLife(task=task, pulse=a_pulse(**fields))  # pyright: ignore


def test_a_job_of_one_replica_is_watched_only_when_asked_for() -> None:
    assert not HangRule().watches(1)
    assert HangRule().watches(2)
    assert HangRule(asked=True).watches(1)
    assert not HangRule(after=timedelta(), asked=True).watches(2)
    assert not HangRule().watches_exits(1)
    assert not HangRule(exit_after=timedelta()).watches_exits(2)


@pytest.mark.parametrize(
    ("after", "exit_after", "expected"),
    [(1200, 600, 30), (4, 600, 2), (0, 600, 30), (1200, 0, 60), (864000, 864000, 60), (864000, 40, 2)],
)
def test_looks_are_as_slow_as_the_rule_allows(after: float, exit_after: float, expected: float) -> None:
    rule = HangRule(after=seconds(after), exit_after=seconds(exit_after))
    assert rule.pace() == seconds(expected)


def test_what_was_never_looked_at_before_begins_now() -> None:
    pulse = felt(None, RunActivity(printed=5, cpu_seconds=100), at(7), PACE)
    assert pulse == Pulse(
        sign=RunActivity(printed=5, cpu_seconds=100),
        begun_at=at(7),
        seen_at=at(7),
        spoke_at=at(7),
        worked_at=at(7),
    )


@pytest.mark.parametrize(
    ("change", "spoke", "worked"),
    [
        ({}, False, False),
        ({"printed": 11}, True, False),
        ({"printed": 9}, True, False),  # over quota, something was dropped
        ({"said": "2"}, True, False),
        ({"cpu_seconds": 1.05}, False, False),
        ({"cpu_seconds": 1.2}, False, True),
        ({"disk_bytes": 4096}, False, False),
        ({"disk_bytes": 1 << 20}, False, True),
        ({"gpu": 0.01}, False, False),
        ({"gpu": 0.5}, False, True),
        ({"cpu_seconds": None, "disk_bytes": None}, False, False),
    ],
)
def test_movement_is_more_than_a_watchdog_makes(change: dict[str, object], spoke: bool, worked: bool) -> None:
    sign = RunActivity(printed=10, said="1", cpu_seconds=1.0, disk_bytes=0)
    pulse = felt(None, sign, at(0), PACE)
    pulse = felt(pulse, replace(sign, **change), at(3), PACE)  # type: ignore[arg-type]
    assert (pulse.spoke_at == at(3), pulse.worked_at == at(3)) == (spoke, worked)


def test_a_clock_that_steps_back_begins_anew() -> None:
    pulse = felt(None, RunActivity(), at(10), PACE)
    assert felt(pulse, RunActivity(), at(9), PACE).begun_at == at(9)


def test_one_replica_that_moves_moves_the_job() -> None:
    lives = (alive(), alive("workerpool1-0", worked=50))
    assert judge(RULE, lives, at(100)) is None
    assert judge(RULE, lives, at(110)) == Stall(kind=StallKind.STILL, since=at(50))


def test_a_replica_that_is_done_makes_the_silent_others_suspect_though_they_compute() -> None:
    done = ReplicaLife(task="workerpool1-0", done_at=at(5))
    lives = (alive(worked=1000), done)
    assert judge(RULE, lives, at(24)) is None
    assert judge(RULE, lives, at(25)) == Stall(kind=StallKind.EXIT, since=at(5), done=("workerpool1-0",))


def test_a_replica_that_is_done_says_nothing_about_others_that_still_speak() -> None:
    done = ReplicaLife(task="workerpool1-0", done_at=at(5))
    assert judge(RULE, (alive(spoke=1000), done), at(1010)) is None


def test_servers_that_outlive_the_workers_do_not_hang() -> None:
    server = ReplicaLife(task="workerpool2-0", pulse=a_pulse(), waited_for=False)
    done = ReplicaLife(task="workerpool1-0", done_at=at(5))
    assert judge(replace(RULE, after=seconds(1000)), (server, done), at(500)) is None


def test_a_job_that_computes_is_suspect_only_where_its_steps_have_stopped() -> None:
    silent = ReplicaLife(task="a", pulse=a_pulse(worked=500))
    stepped = ReplicaLife(task="b", pulse=a_pulse(worked=500, spoke=10, sign=RunActivity(said="9")))
    assert judge(RULE, (silent,), at(510)) is None
    assert judge(RULE, (silent, stepped), at(510)) == Stall(kind=StallKind.BUSY, since=at(10))


def test_nothing_alive_is_no_hang() -> None:
    assert judge(RULE, (), at(1000)) is None
    assert judge(RULE, (ReplicaLife(task="a", done_at=T0),), at(1000)) is None


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (StallKind.STILL, {"spoke": 110}, True),
        (StallKind.STILL, {"worked": 110}, True),
        (StallKind.STILL, {"spoke": 90, "worked": 90}, False),
        (StallKind.STILL, {"begun": 120, "spoke": 120, "worked": 120}, False),  # a new server knows nothing
        (StallKind.BUSY, {"worked": 110}, False),
        (StallKind.BUSY, {"spoke": 110}, True),
        (StallKind.EXIT, {"worked": 110}, False),
    ],
)
def test_a_hang_is_over_once_it_was_seen_to_move(
    kind: StallKind, fields: dict[str, float], expected: bool
) -> None:
    suspicion = Suspicion(kind=kind, since=at(30), message="", noticed_at=at(100))
    assert is_over(suspicion, (alive(), alive("b", **fields), ReplicaLife(task="c", done_at=T0))) is expected

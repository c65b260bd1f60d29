"""How soon a study has its next turn after a report: at once after a rest, else after a gap."""

import asyncio

import pytest

from trainshed.control.study_pace import GAP, MOST_GAP, StudyPace


class Turns:
    """The turns that were asked for: in how many seconds each."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.pace = StudyPace(self.delays.append)

    def take(self, *, hints: int = 0) -> float | None:
        self.pace.begin()
        with self.pace.look():
            pass
        for _ in range(hints):
            self.pace.hint()
        return self.pace.end()


async def test_the_first_report_after_a_rest_is_acted_upon_at_once() -> None:
    turns = Turns()
    turns.pace.hint()
    assert turns.delays == [0.0]


async def test_a_report_just_after_a_turn_waits_for_the_gap() -> None:
    turns = Turns()
    assert turns.take() is None
    turns.pace.hint()
    assert 0 < turns.delays[0] <= GAP


async def test_reports_during_a_turn_make_one_more_after_the_gap() -> None:
    turns = Turns()
    within = turns.take(hints=3)
    assert within is not None and GAP <= within <= MOST_GAP
    assert turns.delays == []
    assert turns.take() is None


async def test_a_study_whose_looks_take_long_has_them_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, loop = Turns(), asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr("trainshed.control.study_pace._now", lambda: now)
    gaps: list[float | None] = []
    for took in (0.001, 0.05, 60.0):
        turns.pace.begin()
        with turns.pace.look():
            now += took
        turns.pace.hint()
        gaps.append(turns.pace.end())
    assert gaps == [GAP, pytest.approx(0.5), MOST_GAP]

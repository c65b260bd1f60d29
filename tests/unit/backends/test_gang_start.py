"""When the programs of a gang begin: together, with names, and not for ever waiting for some."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from trainshed.backends.cluster import gang_start
from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.gang_start import GangStart
from trainshed.backends.cluster.pod_state import state_of
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.cluster.surroundings import Surroundings
from trainshed.backends.machine.init_record import parse_record
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.names import ReplicaName, RunKey

ALL = ["names", "workerpool0-0", "workerpool0-1", "workerpool0-2"]


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleepers: list[tuple[float, asyncio.Event]] = []

    async def sleep(self, seconds: float) -> None:
        wakes = asyncio.Event()
        self.sleepers.append((self.now + seconds, wakes))
        await wakes.wait()

    async def forward(self, seconds: float) -> None:
        end = self.now + seconds
        await settle()
        while due := [sleeper for sleeper in self.sleepers if sleeper[0] <= end]:
            sleeper = min(due, key=lambda row: row[0])
            self.sleepers.remove(sleeper)
            self.now = sleeper[0]
            sleeper[1].set()
            await settle()
        self.now = end


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Gang:
    """Three replicas, of which some are launched and some have answered."""

    def __init__(self, background: BackgroundTasks) -> None:
        self.runs: list[PodRun] = []
        self.there: set[PodRun] = set()
        self.said: list[str] = []
        self.faults = 0
        around = Surroundings(
            peers=lambda _: self.runs,
            is_node_silent=lambda _: False,
            is_drained=lambda _: False,
            read_state=state_of,
            give_names=self.give_names,
        )
        self.start = GangStart(around, lambda run: run in self.there, self.begin, background)

    def launch(self, *, answers: bool = True) -> PodRun:
        run = PodRun(RunKey(ReplicaName("1", 0, 0, len(self.runs)), 0), "/none", "pod", gang=3)
        self.runs.append(run)
        if answers:
            self.answer(run)
        return run

    def answer(self, run: PodRun) -> None:
        self.there.add(run)
        self.start.look(run)

    async def give_names(self, _: PodRun) -> None:
        if self.faults:
            self.faults -= 1
            raise ApiFault(503, "", "away")
        self.said.append("names")

    def begin(self, run: PodRun) -> None:
        run.record = parse_record(b"init boot 1\n")
        self.said.append(run.key.name.task)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(gang_start, "asyncio", clock)
    return clock


@pytest.fixture
async def gang(clock: Clock) -> AsyncIterator[Gang]:
    background = BackgroundTasks()
    yield Gang(background)
    await background.close()


async def test_all_begin_together_once_the_last_has_answered_and_they_have_names(gang: Gang, clock: Clock):
    first, *others = [gang.launch(answers=False) for _ in range(3)]
    for run in others:
        gang.answer(run)
    await clock.forward(100)
    assert gang.said == []
    gang.answer(first)
    await clock.forward(1)
    assert gang.said == ALL


async def test_a_gang_is_not_begun_while_its_replicas_are_still_being_launched(gang: Gang, clock: Clock):
    for _ in range(2):
        gang.launch()
        await clock.forward(7)
    assert gang.said == []
    gang.launch()
    await clock.forward(1)
    assert gang.said == ALL


async def test_replicas_that_nobody_launches_are_not_waited_for_for_ever(gang: Gang, clock: Clock):
    gang.launch()
    await clock.forward(7)
    gang.launch()
    await clock.forward(30)
    assert gang.said == ALL[:3]


async def test_names_that_cannot_be_made_now_are_made_later(gang: Gang, clock: Clock):
    gang.faults = 2
    for _ in range(3):
        gang.launch()
    await clock.forward(1)
    assert gang.said == []
    await clock.forward(3)
    assert gang.said == ALL


async def test_a_gang_that_has_begun_gets_no_names_again(gang: Gang, clock: Clock):
    for _ in range(3):
        gang.launch()
    await clock.forward(1)
    gang.start.look(gang.runs[0])
    await clock.forward(30)
    assert gang.said == ALL

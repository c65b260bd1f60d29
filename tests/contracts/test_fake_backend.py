"""The fake backend keeps the promises, and breaks them exactly where a test asks it to."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.contracts.backend import BackendContract, WritesHere
from tests.contracts.backend_bench import Words
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit, Sight
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Backend
from trainshed.core.queue.fleet import Placement
from trainshed.testing import FakeBackend, FakeMachine
from trainshed.testing.run_files import FolderRunFiles


class FakePrograms:
    def exits(self, code: int) -> Words:
        return ("exit", str(code))

    def dies(self, number: int) -> Words:
        return ("die", str(number))

    def prints(self, text: str) -> Words:
        return ("print", text)

    def finds(self, host: str) -> Words:
        return ("find", host)

    def sleeps(self) -> Words:
        return ("sleep",)

    def stubborn(self) -> Words:
        return ("stubborn",)

    def counts(self) -> Words:
        return ("count",)

    def escapes(self, job: str) -> Words:
        return ("escape",)

    def abandons(self, job: str, code: int) -> Words:
        return ("abandon", str(code))

    def missing(self) -> Words:
        return ("missing",)

    def forbidden(self) -> Words:
        return ("forbidden",)


class FakeWorld:
    files: FolderRunFiles

    def __init__(self) -> None:
        self.programs = FakePrograms()
        self.image, self.refused = "trainshed/python:3", "example/train:1"
        self.machine = FakeMachine()

    async def backend(self) -> Backend:
        backend = FakeBackend(self.machine, files=self.files)
        await backend.start()
        return backend

    def unmake(self) -> str:
        self.machine.runtimes.unmade.add("trainshed/made")
        return "trainshed/made"

    async def make(self, image: str, *, well: bool) -> None:
        self.machine.runtimes.make(image, well=well)

    async def lose(self, key: RunKey) -> None:
        self.machine.lose(key)

    def leftovers(self, job: str) -> list[str]:
        return [str(key) for key in self.machine.alive() if key.name.job == job]

    def private_files(self, job: str) -> list[str]:
        return [str(key) for key in self.machine.runs if key.name.job == job]

    async def close(self) -> None:
        return


class TestFakeBackend(WritesHere, BackendContract):
    @pytest.fixture
    async def world(self, tmp_path: Path):
        yield FakeWorld()


class SetClock:
    def __init__(self) -> None:
        self.time = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


KEY = RunKey(ReplicaName("job", 1, 0, 0), 0)


def launch(*words: str) -> Launch:
    placement = Placement(pool=0, index=0, node="fake", host="127.0.0.1", cpus=1, memory=1)
    return Launch(key=KEY, image="", command=(), args=words, placement=placement)


async def test_a_program_ends_when_the_clock_says_so():
    clock = SetClock()
    backend = FakeBackend(FakeMachine(clock=clock))
    await backend.launch(launch("exit", "3", "60"))
    assert (await backend.observe("job"))[0].alive
    clock.time += timedelta(minutes=5)
    (seen,) = await backend.observe("job")
    assert seen.exit == Exit(code=3)
    assert seen.ended_at == datetime(2030, 1, 1, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("after", [False, True])
async def test_an_action_told_to_fail_fails_once_before_or_after_it_is_done(after: bool):
    backend = FakeBackend()
    backend.fail("launch", after=after)
    with pytest.raises(Unavailable):
        await backend.launch(launch("sleep"))
    assert backend.machine.starts[KEY] == int(after)
    await backend.launch(launch("sleep"))
    assert backend.machine.starts[KEY] == 1


async def test_a_frozen_backend_shows_what_was_and_a_thawed_one_what_is():
    backend = FakeBackend()
    await backend.launch(launch("sleep"))
    backend.freeze()
    backend.machine.end(KEY, Exit(code=0))
    assert (await backend.observe("job"))[0].alive
    backend.thaw()
    assert (await backend.observe("job"))[0].sight is Sight.ENDED


async def test_a_vanished_run_is_not_shown_and_a_muted_backend_gives_no_hint():
    backend = FakeBackend()
    await backend.start()
    hints: list[str] = []
    backend.on_change(hints.append)
    await backend.launch(launch("sleep"))
    backend.mute = True
    backend.machine.lose(KEY)
    assert hints == []
    backend.machine.vanish(KEY)
    assert await backend.observe("job") == ()

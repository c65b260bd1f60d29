"""A fleet keeps the promises of a backend with either of two members; and what it alone promises."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.builders import a_job, an_admission
from tests.contracts.backend import BackendContract, WritesHere, spec_of
from tests.contracts.backend_bench import until
from tests.contracts.stats import StatsContract
from tests.contracts.test_fake_backend import FakeWorld
from tests.contracts.test_process_backend import ProcessWorld
from trainshed.backends import fleet_member
from trainshed.backends.fleet import Fleet
from trainshed.backends.fleet_member import LateMember, PresentMember
from trainshed.backends.machine.run_storage import RunStorage
from trainshed.backends.process import ProcessBackend
from trainshed.backends.process.interpreters import Interpreters
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.jobs.replica import Exit, Sight
from trainshed.core.metrics import Measure
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.queue.fleet import Node, Placement
from trainshed.core.shell_port import Screen, Terminal
from trainshed.testing import FakeBackend, FakeMachine, FakeRuntimes
from trainshed.testing.backend import FakeRun
from trainshed.testing.program import read_program
from trainshed.testing.run_files import FolderRunFiles

OURS, THEIRS = "trainshed/python:3", "box/train:1"
NODES = (Node(name="n", host="127.0.0.1", cpus=96.0, memory=1 << 40),)


class BoxRuntimes(FakeRuntimes):
    """Those of the second: it runs what begins with box/."""

    def refuse(self, image: str) -> str | None:
        return None if image.startswith("box/") else f"Image '{image}' cannot run in a box."


class BoxFinder:
    """Finds a second backend that is there, or not yet."""

    def __init__(
        self, machine: FakeMachine, *, there: bool = True, files: FolderRunFiles | None = None
    ) -> None:
        self.capabilities = Capabilities(
            name="box", survives_server=True, kills_escapees=True, measures=frozenset({Measure.CPU})
        )
        self.machine, self.there, self.looks, self.known = machine, there, 0, False
        self.files = files
        self.backend: FakeBackend | None = None

    async def nodes(self) -> tuple[Node, ...]:
        return self.machine.nodes

    def left(self) -> frozenset[str]:
        return frozenset(key.name.job for key in self.machine.runs)

    def was_there(self) -> bool:
        return self.known

    def refuse(self, image: str, sentence: str) -> str | None:
        return None if self.there else f"{sentence} And there is no box."

    def absence(self) -> Readiness:
        return Readiness(standing=ReadinessState.PREPARING, message="There is no box.", remedy="Bring one.")

    async def find(self) -> Backend:
        self.looks += 1
        if not self.there:
            raise Unavailable("There is no box.")
        self.backend = FakeBackend(self.machine, files=self.files)
        self.backend.capabilities, self.backend.stacks = self.capabilities, None
        await self.backend.start()
        return self.backend


async def started(first: Backend, second: BoxFinder) -> Fleet:
    """A fleet of two whose second has been found."""
    boxes = LateMember(second, runs_as="in a box")
    fleet = Fleet((PresentMember(first, runs_as="as a fake"), boxes))
    await fleet.start()
    await boxes.get()
    return fleet


class FirstOfTwo(FakeWorld):
    """Two fakes in a fleet; the job runs on the first."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes = FakeMachine(runtimes=BoxRuntimes())
        self.refused = "refused/by:both"

    async def backend(self) -> Fleet:
        return await started(FakeBackend(self.machine, files=self.files), BoxFinder(self.boxes))


class SecondOfTwo(FirstOfTwo):
    """The same world from the other side: the machine that the contract looks at is the second's."""

    def __init__(self) -> None:
        super().__init__()
        self.image = THEIRS
        self.machine, self.boxes = self.boxes, self.machine

    async def backend(self) -> Fleet:
        return await started(FakeBackend(self.boxes), BoxFinder(self.machine, files=self.files))

    def unmake(self) -> str:
        self.machine.runtimes.unmade.add("box/made")
        return "box/made"


class ProcessesOfTwo(ProcessWorld):
    def __init__(self, home: Path, tools: Path) -> None:
        super().__init__(home, tools, "shell")
        here = (Node(name="local", host="127.0.0.1", cpus=1.0, memory=1 << 30),)
        self.boxes = FakeMachine(nodes=here, runtimes=BoxRuntimes())
        self.refused = "refused/by:both"

    async def backend(self) -> Backend:
        interpreters = Interpreters(runtimes=self.runtimes)
        process = ProcessBackend(
            self.home, storage=RunStorage(files=self.files), keeper=self.keeper, interpreters=interpreters
        )
        return await started(process, BoxFinder(self.boxes))


class TestTheFirstOfTwo(BackendContract, StatsContract):
    @pytest.fixture
    async def world(self, tmp_path: Path):
        yield FirstOfTwo()


class TestTheSecondOfTwo(BackendContract, StatsContract):
    @pytest.fixture
    async def world(self, tmp_path: Path):
        yield SecondOfTwo()


class TestProcessesOfTwo(WritesHere, BackendContract):
    @pytest.fixture
    async def world(self, tmp_path: Path):
        yield ProcessesOfTwo(tmp_path / "home", tmp_path)


class Two:
    """A fleet of two machines, the second not there unless a test says so."""

    def __init__(self, *, there: bool = False) -> None:
        self.first = FakeMachine(nodes=NODES)
        self.boxes = FakeMachine(nodes=NODES, runtimes=BoxRuntimes())
        self.second = BoxFinder(self.boxes, there=there)
        self.member = LateMember(self.second, runs_as="in a box")
        first = PresentMember(FakeBackend(self.first), runs_as="as a fake")
        self.fleet = Fleet((first, self.member))
        self.hints: list[str] = []
        self.fleet.on_change(self.hints.append)

    def launch(self, image: str, *words: str, job: str = "job", run: int = 0) -> Launch:
        return Launch(
            key=key_of(job, run),
            image=image,
            command=words,
            args=(),
            placement=Placement(pool=0, index=0, node="n", host="127.0.0.1", cpus=1, memory=1),
        )


def key_of(job: str, run: int = 0) -> RunKey:
    return RunKey(ReplicaName(job, 1, 0, 0), run)


@pytest.fixture
async def two(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet_member, "AGAIN", 0.01)
    two = Two()
    await two.fleet.start()
    yield two
    await two.fleet.close()


async def test_the_second_is_not_looked_for_while_nobody_needs_it(two: Two):
    assert two.fleet.prepare(spec_of(OURS), "a") == READY
    await two.fleet.launch(two.launch(OURS, "exit", "0"))
    await two.fleet.remove("job")
    assert await two.fleet.jobs() == frozenset()
    assert two.fleet.refuse_image(OURS) is None
    assert two.second.looks == 0


async def test_a_job_waits_for_a_second_that_is_not_there_and_is_hinted_when_it_comes(two: Two):
    waits = two.fleet.prepare(spec_of(THEIRS), "a")
    assert waits.standing is ReadinessState.PREPARING
    assert (waits.message, waits.remedy) == ("There is no box.", "Bring one.")
    await until(lambda: two.second.looks >= 3)
    assert two.hints == []
    two.second.there = True
    await until(lambda: two.hints == ["a"])
    assert two.fleet.prepare(spec_of(THEIRS), "a") == READY
    await two.fleet.launch(two.launch(THEIRS, "sleep", job="a"))
    assert two.boxes.alive() == {key_of("a")}


async def test_one_that_an_earlier_server_had_is_looked_for_though_nobody_needs_it(two: Two):
    two.second.known = two.second.there = True
    await two.fleet.start()
    await until(lambda: two.second.looks == 1)


async def test_asking_without_a_job_does_not_look(two: Two):
    assert two.fleet.prepare(spec_of(THEIRS)).standing is ReadinessState.PREPARING
    await asyncio.sleep(0.05)
    assert two.second.looks == 0


async def test_nobody_is_looked_for_once_nobody_waits(two: Two, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fleet_member, "FORGOTTEN", 0.05)
    two.fleet.prepare(spec_of(THEIRS), "a")
    await until(lambda: two.second.looks >= 2)
    await asyncio.sleep(0.2)
    looks = two.second.looks
    await asyncio.sleep(0.1)
    assert two.second.looks == looks
    two.fleet.prepare(spec_of(THEIRS), "a")
    await until(lambda: two.second.looks > looks)


async def test_a_launch_looks_for_the_second_and_says_where_it_is_not(two: Two):
    with pytest.raises(Unavailable, match="no box"):
        await two.fleet.launch(two.launch(THEIRS, "sleep"))
    two.second.there = True
    await two.fleet.launch(two.launch(THEIRS, "sleep"))
    assert len(await two.fleet.observe("job")) == 1


async def test_what_is_left_with_an_absent_second_is_neither_shown_as_gone_nor_started_again(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fleet_member, "AGAIN", 0.01)
    before = Two(there=True)
    await before.fleet.start()
    await before.fleet.launch(before.launch(THEIRS, "sleep"))
    await before.fleet.close()

    two = Two()
    two.boxes.runs = before.boxes.runs
    await two.fleet.start()
    assert await two.fleet.jobs() == {"job"}
    for ask in (
        two.fleet.observe("job"),
        two.fleet.stop(key_of("job"), force=True),
        two.fleet.remove("job"),
        two.fleet.launch(two.launch(OURS, "sleep", run=1)),
    ):
        with pytest.raises(Unavailable, match="no box"):
            await ask
    assert await two.fleet.observe("another") == ()
    two.second.there = True

    async def found() -> bool:
        try:
            return [seen.sight for seen in await two.fleet.observe("job")] == [Sight.RUNNING]
        except Unavailable:
            return False

    await until(found)
    await two.fleet.close()


async def test_a_second_with_something_left_is_found_before_the_fleet_is_ready():
    before = Two(there=True)
    await before.fleet.start()
    await before.fleet.launch(before.launch(THEIRS, "sleep"))
    await before.fleet.close()
    two = Two(there=True)
    two.boxes.runs = before.boxes.runs
    await two.fleet.start()
    assert two.second.looks == 1
    (seen,) = await two.fleet.observe("job")
    assert seen.alive
    await two.fleet.close()


async def test_a_server_does_not_wait_long_for_a_second_that_stands_still(
    monkeypatch: pytest.MonkeyPatch,
):
    async def stand_still() -> Backend:
        await asyncio.sleep(1000)
        raise AssertionError

    monkeypatch.setattr(fleet_member, "START", 0.05)
    two = Two(there=True)
    two.boxes.runs[key_of("job")] = FakeRun(
        two.launch(THEIRS, "sleep"), read_program(("sleep",)), datetime.now(UTC)
    )
    monkeypatch.setattr(two.second, "find", stand_still)
    await two.fleet.start()
    with pytest.raises(Unavailable):
        await two.fleet.observe("job")
    await two.fleet.close()


async def test_a_name_is_one_run_whichever_of_the_two_has_it(two: Two):
    two.second.there = True
    first = await two.fleet.launch(two.launch(THEIRS, "stubborn"))
    # What runs an image may be another after a restart: the same run is found, the next ends it first.
    assert await two.fleet.launch(two.launch(OURS, "stubborn")) == first
    await two.fleet.launch(two.launch(OURS, "stubborn", run=1))
    seen = {one.key.run: one for one in await two.fleet.observe("job")}
    assert seen[0].exit == Exit(signal=9) and seen[1].alive
    assert two.first.alive() == {key_of("job", 1)} and not two.boxes.alive()
    with pytest.raises(Conflict):
        await two.fleet.launch(two.launch(THEIRS, "stubborn"))
    assert not two.boxes.alive()


async def test_samples_and_stacks_come_from_whichever_has_the_run(two: Two):
    two.second.there = True
    await two.fleet.launch(two.launch(OURS, "sleep", job="ours"))
    await two.fleet.launch(two.launch(THEIRS, "sleep", job="theirs"))
    keys = [key_of("ours"), key_of("theirs")]
    assert set(await two.fleet.stats.sample()) == set(keys)
    assert set(await two.fleet.stacks.stacks(keys)) == {keys[0]}  # the second has none


class CountedShells:
    def __init__(self) -> None:
        self.opened: list[RunKey] = []

    async def open_shell(self, key: RunKey, command: Sequence[str], screen: Screen | None) -> Terminal:
        self.opened.append(key)
        raise NotImplementedError


async def test_a_shell_is_opened_where_the_run_is(two: Two):
    two.second.there = True
    await two.fleet.launch(two.launch(THEIRS, "sleep", job="theirs"))
    with pytest.raises(Unavailable, match="There are no shells in what runs as box"):
        await two.fleet.shells.open_shell(key_of("theirs"), (), Screen())
    backend, shells = two.second.backend, CountedShells()
    assert backend is not None
    backend.shells = shells
    with pytest.raises(NotImplementedError):
        await two.fleet.shells.open_shell(key_of("theirs"), (), Screen())
    assert shells.opened == [key_of("theirs")]


async def test_addresses_come_from_whoever_runs_the_job(two: Two):
    two.second.there = True
    job = a_job()
    ours = await two.fleet.address(an_admission(job), spec_of(OURS), frozenset())
    theirs = await two.fleet.address(an_admission(job), spec_of(THEIRS), frozenset())
    backend = two.second.backend
    assert backend is not None
    # Each fake counts its own ports from the same number on.
    assert ours.ports == theirs.ports


def test_a_job_of_both_kinds_is_refused_with_what_to_do():
    two = Two()
    assert two.fleet.refuse_together([OURS, OURS]) is None
    assert two.fleet.refuse_together([THEIRS]) is None
    sentence = two.fleet.refuse_together([OURS, THEIRS])
    assert sentence is not None
    assert OURS in sentence and THEIRS in sentence and "Give every worker pool" in sentence


async def test_an_image_that_neither_runs_is_refused_by_who_would_have_to(two: Two):
    assert two.fleet.refuse_image("refused/x") == (
        "Image 'refused/x' cannot run here: the fake runs trainshed/python:3 and nothing else. "
        "And there is no box."
    )
    two.second.there = True
    await two.member.get()
    assert two.fleet.refuse_image("refused/x") == "Image 'refused/x' cannot run in a box."


async def test_capabilities_are_what_either_can_do(two: Two):
    can = two.fleet.capabilities
    assert can.name == "fake, box"
    assert can.survives_server and can.measures == {Measure.CPU} and not can.private_network


async def test_images_of_a_member_that_is_not_there_are_unavailable_with_the_reason(two: Two):
    assert two.fleet.image_inventories == ()
    with pytest.raises(Unavailable, match="There is no box"):
        await two.fleet.images.all()
    two.second.there = True
    with pytest.raises(Unavailable, match="No backend of this server has container images"):
        await two.fleet.images.all()

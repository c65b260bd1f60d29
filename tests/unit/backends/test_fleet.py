"""A fleet of three: two members share a node, the third has nodes of its own."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.builders import a_job, a_pool, an_admission
from trainshed.backends.fleet import Fleet
from trainshed.backends.fleet_member import LateMember, PresentMember
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.metrics import Measure
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Backend, Capabilities
from trainshed.core.queue.fleet import Node, Placement
from trainshed.core.supplies.image import Image
from trainshed.testing import FakeBackend, FakeMachine, FakeRuntimes

PLAIN, BOX, POD = "trainshed/python:3", "box/train:1", "pod/train:1"
HERE, EAST, WEST = "local", "east", "west"


class Runs(FakeRuntimes):
    """Runs images whose names begin with one of these words."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.words = words

    def refuse(self, image: str) -> str | None:
        return None if image.startswith(self.words) else f"'{image}' does not run as {self.words[0]}."


class CountingBackend(FakeBackend):
    """Counts how often it was asked for a job."""

    def __init__(self, name: str, machine: FakeMachine) -> None:
        super().__init__(machine)
        self.capabilities = Capabilities(name=name, survives_server=True, kills_escapees=True)
        self.asked: list[str] = []

    async def observe(self, job: str):
        self.asked.append(job)
        return await super().observe(job)


class BoxFinder:
    """Finds the backend of boxes, once it is there."""

    capabilities = Capabilities(
        name="box", survives_server=True, kills_escapees=True, measures=frozenset({Measure.CPU})
    )

    def __init__(self, machine: FakeMachine) -> None:
        self.machine, self.is_there, self.looks = machine, False, 0
        self.backend = CountingBackend("box", machine)

    async def nodes(self) -> tuple[Node, ...]:
        return self.machine.nodes

    def left(self) -> frozenset[str]:
        return frozenset(key.name.job for key in self.machine.runs)

    def was_there(self) -> bool:
        return False

    def refuse(self, image: str, sentence: str) -> str | None:
        return self.machine.runtimes.refuse(image)

    def absence(self) -> Readiness:
        return Readiness(standing=ReadinessState.PREPARING, message="There is no box.", remedy="Bring one.")

    async def find(self) -> Backend:
        self.looks += 1
        if not self.is_there:
            raise Unavailable("There is no box.")
        await self.backend.start()
        return self.backend


def nodes(*names: str) -> tuple[Node, ...]:
    return tuple(Node(name=name, host="127.0.0.1", cpus=8, memory=1 << 40) for name in names)


class Three:
    """Processes and boxes on this machine; a cluster that runs boxes and pods on its own nodes."""

    def __init__(self) -> None:
        self.here = FakeMachine(nodes=nodes(HERE), runtimes=Runs("trainshed/"))
        self.boxes = FakeMachine(nodes=nodes(HERE), runtimes=Runs("box/"))
        self.pods = FakeMachine(nodes=nodes(EAST, WEST), runtimes=Runs("pod/", "box/"))
        self.processes = CountingBackend("process", self.here)
        self.finder = BoxFinder(self.boxes)
        self.cluster = CountingBackend("cluster", self.pods)
        self.late = LateMember(self.finder, runs_as="in a container")
        self.fleet = Fleet(
            (
                PresentMember(
                    self.processes, runs_as="as a process of this machine", own_images="trainshed/"
                ),
                self.late,
                PresentMember(self.cluster, runs_as="in a pod"),
            )
        )

    async def with_boxes(self) -> "Three":
        self.finder.is_there = True
        await self.late.get()
        return self


@pytest.fixture
async def three():
    three = Three()
    await three.fleet.start()
    yield three
    await three.fleet.close()


def key_of(job: str, run: int = 0) -> RunKey:
    return RunKey(ReplicaName(job, 1, 0, 0), run)


def a_launch(image: str, node: str, *, job: str = "job", run: int = 0, words: str = "sleep") -> Launch:
    return Launch(
        key=key_of(job, run),
        image=image,
        command=(words,),
        args=(),
        placement=Placement(pool=0, index=0, node=node, host="127.0.0.1", cpus=1, memory=1),
    )


def spec_of(*images: str) -> JobSpec:
    return JobSpec(pools=tuple(replace(a_pool(), image=image) for image in images))


def jobs_alive(machine: FakeMachine) -> set[str]:
    return {key.name.job for key in machine.alive()}


async def test_the_nodes_of_a_fleet_are_those_of_its_members_each_once(three: Three):
    assert [node.name for node in await three.fleet.nodes()] == [HERE, EAST, WEST]
    await three.with_boxes()
    assert [node.name for node in await three.fleet.nodes()] == [HERE, EAST, WEST]
    three.pods.nodes = nodes(WEST, "north")
    assert [node.name for node in await three.fleet.nodes()] == [HERE, WEST, "north"]


@pytest.mark.parametrize(
    ("image", "node", "where"),
    [
        (PLAIN, HERE, "here"),
        (BOX, HERE, "boxes"),
        (BOX, EAST, "pods"),
        (BOX, WEST, "pods"),
        (POD, WEST, "pods"),
    ],
)
async def test_a_run_starts_at_the_member_to_which_its_node_belongs(
    three: Three, image: str, node: str, where: str
):
    await three.with_boxes()
    await three.fleet.launch(a_launch(image, node))
    alive = {name: jobs_alive(getattr(three, name)) for name in ("here", "boxes", "pods")}
    assert alive == {"here": set(), "boxes": set(), "pods": set()} | {where: {"job"}}


async def test_a_run_on_another_node_does_not_look_for_the_member_that_is_not_there(three: Three):
    await three.fleet.launch(a_launch(BOX, EAST))
    assert jobs_alive(three.pods) == {"job"}
    with pytest.raises(Unavailable, match="There is no box"):
        await three.fleet.launch(a_launch(BOX, HERE, job="other"))
    assert three.finder.looks == 1


async def test_a_run_on_a_node_that_nobody_offers_waits_and_starts_nowhere_else(three: Three):
    with pytest.raises(Unavailable, match="Node 'gone' is not there now: no backend offers it"):
        await three.fleet.launch(a_launch(PLAIN, "gone"))
    assert not three.here.runs
    three.pods.nodes = nodes(EAST, "gone")
    await three.fleet.launch(a_launch(POD, "gone"))
    assert jobs_alive(three.pods) == {"job"}


async def test_a_run_on_a_node_that_is_gone_starts_where_another_node_is_found_for_it(three: Three):
    three.cluster.capabilities = replace(three.cluster.capabilities, moves=True)
    await three.fleet.launch(a_launch(POD, "gone"))
    assert jobs_alive(three.pods) == {"job"}


async def test_a_name_is_one_run_whichever_member_has_it(three: Three):
    await three.with_boxes()
    first = await three.fleet.launch(a_launch(BOX, EAST))
    assert await three.fleet.launch(a_launch(BOX, HERE)) == first
    assert not three.boxes.runs
    await three.fleet.launch(a_launch(BOX, HERE, run=1))
    assert three.boxes.alive() == {key_of("job", 1)} and not three.pods.alive()


async def test_addresses_come_from_the_member_to_which_the_nodes_belong(three: Three):
    job = a_job()
    for node, backend in ((HERE, three.processes), (WEST, three.cluster)):
        before = backend._next_port
        await three.fleet.address(an_admission(job, node), job.spec, frozenset())
        assert backend._next_port > before


async def test_every_member_that_may_know_a_job_is_asked_and_no_other(three: Three):
    await three.fleet.launch(a_launch(PLAIN, HERE, job="a"))
    await three.fleet.launch(a_launch(POD, EAST, job="b"))
    for job in ("a", "b"):
        (seen,) = await three.fleet.observe(job)
        assert seen.key == key_of(job) and seen.alive
        await three.fleet.stop(key_of(job), force=True)
        (seen,) = await three.fleet.observe(job)
        assert not seen.alive
    assert await three.fleet.jobs() == {"a", "b"}
    await three.fleet.remove("a")
    await three.fleet.remove("b")
    assert await three.fleet.jobs() == frozenset()
    assert three.finder.looks == 0 and three.finder.backend.asked == []
    await three.with_boxes()
    await three.fleet.observe("a")
    assert three.finder.backend.asked == ["a"]


async def test_what_the_others_have_of_a_job_is_stopped_though_one_member_is_not_there():
    three = Three()
    await three.with_boxes()
    for image, node in ((BOX, HERE), (POD, EAST)):
        await three.fleet.launch(a_launch(image, node, job=image.partition("/")[0]))
    again = Three()
    again.boxes.runs = {key_of("pod"): three.boxes.runs[key_of("box")]}
    again.pods.runs = three.pods.runs
    await again.fleet.start()
    with pytest.raises(Unavailable, match="There is no box"):
        await again.fleet.stop(key_of("pod"), force=True)
    assert not again.pods.alive()
    assert await again.fleet.jobs() == {"pod"}
    await again.fleet.close()


async def test_a_job_with_a_run_at_a_member_that_was_not_there_is_hinted_when_it_comes():
    three = Three()
    await three.with_boxes()
    await three.fleet.launch(a_launch(BOX, HERE))
    again, hinted = Three(), list[str]()
    again.boxes.runs = three.boxes.runs
    again.fleet.on_change(hinted.append)
    await again.fleet.start()
    assert hinted == []
    await again.with_boxes()
    assert hinted == ["job"]
    await again.fleet.close()


TOGETHER = (
    "One job cannot run both 'trainshed/python:3', which runs as a process of this machine, and "
    "'box/train:1', which runs in a container: their replicas could not reach each other by the addresses in "
    "CLUSTER_SPEC. Give every worker pool a container image, or every one a runtime."
)


@pytest.mark.parametrize("asked", [False, True])
async def test_a_job_whose_images_need_two_members_of_one_node_is_refused(three: Three, asked: bool):
    if asked:
        await three.fleet.nodes()
    assert three.fleet.refuse_together([BOX, PLAIN, BOX]) == TOGETHER
    assert three.fleet.refuse_together([PLAIN, PLAIN]) is None
    assert three.fleet.refuse_together([BOX]) is None


async def test_a_job_whose_images_one_member_runs_on_its_own_nodes_is_not_refused(three: Three):
    await three.fleet.nodes()
    assert three.fleet.refuse_together([POD, BOX]) is None


@pytest.mark.parametrize(
    ("image", "refused"),
    [
        (PLAIN, None),
        (POD, None),
        ("other/x", "'other/x' does not run as pod/."),
        ("trainshed/unknown", None),
    ],
)
async def test_an_image_is_refused_where_no_member_runs_it(three: Three, image: str, refused: str | None):
    assert three.fleet.refuse_image(image) == refused


async def test_an_image_that_belongs_to_a_member_is_refused_by_that_member():
    processes = FakeBackend(FakeMachine(runtimes=Runs("trainshed/python")))
    anything = FakeBackend(FakeMachine(runtimes=Runs("")))
    fleet = Fleet(
        (
            PresentMember(processes, runs_as="as a process", own_images="trainshed/"),
            PresentMember(anything, runs_as="in a container"),
        )
    )
    assert fleet.refuse_image("trainshed/x") == "'trainshed/x' does not run as trainshed/python."
    assert fleet.refuse_image("other/x") is None


async def test_each_image_of_a_job_is_prepared_by_the_first_member_that_runs_it(three: Three):
    assert three.fleet.prepare(spec_of(PLAIN), "a") == READY
    assert three.fleet.prepare(spec_of(POD, POD), "a") == READY
    assert three.fleet.prepare(spec_of(PLAIN, POD), "a") == READY
    waits = three.fleet.prepare(spec_of(PLAIN, BOX), "a")
    assert (waits.standing, waits.message) == (ReadinessState.PREPARING, "There is no box.")


class FakeImages:
    """The images of a member."""

    def __init__(self, *names: str) -> None:
        self.names = names

    async def all(self) -> tuple[Image, ...]:
        return tuple(Image(id=name, names=(name,)) for name in self.names)


async def test_images_are_those_of_the_member_that_has_some(three: Three):
    three.finder.backend.images = FakeImages("a")  # type: ignore[assignment]
    with pytest.raises(Unavailable, match="There is no box"):
        await three.fleet.images.all()
    three.finder.is_there = True
    assert ids(await three.fleet.images.all()) == ["a"]


async def test_a_member_that_is_not_there_does_not_hide_the_images_of_another(three: Three):
    three.cluster.images = FakeImages("b")  # type: ignore[assignment]
    assert ids(await three.fleet.images.all()) == ["b"]
    assert three.finder.looks == 0


def ids(images: Iterable[Image]) -> list[str]:
    return [image.id for image in images]

"""A fleet of this machine and a cluster: which may run a job, in which order, and why."""

from dataclasses import replace

import pytest

from tests.builders import a_pool
from tests.unit.backends.test_fleet import BOX, PLAIN, Runs
from trainshed.backends.fleet import Fleet
from trainshed.backends.fleet_member import PresentMember
from trainshed.backends.fleet_sites import SiteView, Use, chosen
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import READY, Readiness, ReadinessState
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Capabilities
from trainshed.core.queue.fleet import Node, Placement
from trainshed.testing import FakeBackend, FakeMachine

HERE, THERE = "this machine", "the cluster"
FAILED = Readiness(standing=ReadinessState.FAILED, message="It has no folders.")
PULLS = Readiness(standing=ReadinessState.PREPARING, message="An image is pulled.")


class ClusterFake(FakeBackend):
    """Runs images, but no job with a code folder."""

    def __init__(self, machine: FakeMachine) -> None:
        super().__init__(machine)
        self.capabilities = Capabilities(
            name="cluster", survives_server=True, kills_escapees=True, moves=True
        )

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        return FAILED if spec.code else super().prepare(spec, job)


class Mixed:
    def __init__(self, use: Use) -> None:
        small, large = (Node(name=name, host=name, cpus=cpus, memory=1 << 40) for name, cpus in SIZES)
        self.here = FakeMachine(nodes=(small,), runtimes=Runs("trainshed/", "box/"))
        self.there = FakeMachine(nodes=(large,), runtimes=Runs("box/", "pod/"))
        self.fleet = Fleet(
            (
                PresentMember(FakeBackend(self.here), runs_as="here", own_images="trainshed/", site=HERE),
                PresentMember(ClusterFake(self.there), runs_as="in a pod", site=THERE),
            ),
            {HERE: use, THERE: Use.LAST if use is Use.FIRST else Use.FIRST},
        )


SIZES = (("local", 4), ("east", 16))


async def mixed(use: Use) -> Mixed:
    made = Mixed(use)
    await made.fleet.start()
    await made.fleet.nodes()
    return made


def spec(image: str, cpus: float = 1, code: str = "") -> JobSpec:
    return JobSpec(pools=(replace(a_pool(cpus=cpus), image=image),), code=code)


@pytest.mark.parametrize(
    ("use", "image", "sites"),
    [
        (Use.NEEDED, PLAIN, (HERE,)),
        (Use.NEEDED, BOX, (THERE,)),
        (Use.LAST, BOX, (THERE, HERE)),
        (Use.FIRST, BOX, (HERE, THERE)),
        (Use.FIRST, "pod/only:1", (THERE,)),
    ],
)
async def test_a_job_may_run_where_its_image_runs_in_the_order_of_the_setting(
    use: Use, image: str, sites: tuple[str, ...]
):
    assert (await mixed(use)).fleet.prepare(spec(image), "a").sites == sites


@pytest.mark.parametrize("use", [Use.LAST, Use.FIRST])
async def test_a_job_that_needs_what_a_site_lacks_goes_to_the_one_that_has_it(use: Use):
    readiness = (await mixed(use)).fleet.prepare(spec(BOX, code="folder"), "a")
    assert readiness.sites == (HERE,)
    assert readiness.elsewhere == f"Not on {THERE}: It has no folders."


async def test_a_job_that_is_too_large_for_a_site_is_not_cut_where_another_has_room():
    assert (await mixed(Use.FIRST)).fleet.prepare(spec(BOX, cpus=8), "a").sites == (THERE,)
    assert (await mixed(Use.FIRST)).fleet.prepare(spec(BOX, cpus=99), "a").sites == (HERE, THERE)


async def test_a_job_that_nobody_can_run_fails_with_the_words_of_all():
    readiness = (await mixed(Use.LAST)).fleet.prepare(spec("pod/only:1", code="folder"), "a")
    assert readiness.standing is ReadinessState.FAILED and readiness.message == "It has no folders."


async def test_nodes_have_the_name_of_their_site_and_a_fleet_of_one_site_has_none():
    fleet = (await mixed(Use.LAST)).fleet
    assert {node.name: node.site for node in await fleet.nodes()} == {"local": HERE, "east": THERE}
    alone = Fleet((PresentMember(FakeBackend(FakeMachine()), runs_as="here", site=HERE),))
    assert {node.site for node in await alone.nodes()} == {""}
    assert alone.prepare(spec("trainshed/python:3")).sites == ()


def launch(node: str, run: int = 0, image: str = BOX) -> Launch:
    key = RunKey(ReplicaName("job", 1, 0, 0), run)
    place = Placement(pool=0, index=0, node=node, host=node, cpus=1, memory=1)
    return Launch(key=key, image=image, command=("sleep",), args=(), placement=place)


async def test_a_job_with_runs_is_prepared_where_they_are_whatever_comes_first():
    made = await mixed(Use.FIRST)
    await made.fleet.launch(launch("east"))
    assert made.fleet.prepare(spec(BOX), "job").sites == (THERE,)
    later = Fleet(made.fleet._members, made.fleet._uses)  # pyright: ignore[reportPrivateUsage]
    await later.observe("job")
    assert later.prepare(spec(BOX), "job").sites == (THERE,)
    await made.fleet.remove("job")
    assert made.fleet.prepare(spec(BOX), "job").sites == (HERE, THERE)


async def test_a_run_whose_node_is_gone_goes_to_the_site_that_had_it_if_that_can_move_it():
    made = await mixed(Use.LAST)
    await made.fleet.launch(launch("east"))
    made.there.nodes, made.here.nodes = (replace(made.there.nodes[0], name="west"),), ()
    await made.fleet.nodes()
    await made.fleet.launch(launch("east", run=1))
    assert {key.run for key in made.there.runs} == {0, 1}
    with pytest.raises(Unavailable, match="Node 'local' is not there now"):
        await made.fleet.launch(replace(launch("local"), key=RunKey(ReplicaName("other", 1, 0, 0), 0)))


def test_a_site_that_still_prepares_is_waited_for_unless_it_is_not_there():
    assert chosen([SiteView(THERE, PULLS), SiteView(HERE, READY)]) == PULLS
    passed = chosen([SiteView(THERE, PULLS, is_away=True), SiteView(HERE, READY)])
    assert passed.sites == (HERE,) and "An image is pulled." in passed.elsewhere
    assert chosen([SiteView(THERE, PULLS, is_away=True)]) == PULLS

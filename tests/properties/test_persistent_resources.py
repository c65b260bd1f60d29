"""Persistent resources in random trees with random jobs: what is reserved is theirs, and nobody is hurt."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import T0, a_pool
from tests.properties.effort import PROPERTY
from tests.properties.share_world import CPUS, NAMES, World, jobs, trees
from trainshed.core.jobs.job import Job
from trainshed.core.queue.persistent_resource import PersistentResource, reservable, with_resources
from trainshed.core.queue.share import ShareTree, share_tree

EFFORT = settings(PROPERTY, max_examples=150)
MACHINE = {"cpus": float(CPUS), "memory": 2.0**40}


@st.composite
def resources(draw: st.DrawFn) -> tuple[ShareTree, PersistentResource]:
    """A tree of a file, or none, with a resource that it has room for. Users have no limits."""
    base = draw(st.one_of(st.none(), trees()))
    if base is not None:
        shares = {name: replace(share, per_user={}) for name, share in base.shares.items()}
        base = ShareTree(shares, base.divided)
    project = draw(st.sampled_from([*NAMES, "nobody"]))
    tree = base or share_tree(())
    most = int(reservable(tree, tree.share_of(project), "cpus", MACHINE))
    pool = a_pool(cpus=draw(st.integers(0, most)), memory=1 << 34)
    resource = PersistentResource(id="r", project=project, location="l", pools=(pool,), created_at=T0)
    return with_resources(base, [resource]), resource


def some_inside(data: st.DataObject, batch: list[Job], resource: PersistentResource) -> list[Job]:
    """Some of the jobs name the resource; those that run as spot may not."""
    return [
        replace(
            job,
            project=resource.project,
            location=resource.location,
            spec=replace(job.spec, persistent_resource=resource.id),
        )
        if not job.spec.scheduling.is_spot and data.draw(st.booleans())
        else job
        for job in batch
    ]


@EFFORT
@given(st.data(), resources(), jobs(12))
def test_what_is_reserved_is_for_its_jobs_alone_and_they_wait_only_for_each_other(
    data: st.DataObject, made: tuple[ShareTree, PersistentResource], batch: list[Job]
):
    tree, resource = made
    world = World(tree, some_inside(data, batch, resource))
    kept = tree.nominal[resource.name].get("cpus", 0)
    for _ in range(4):
        world.settle()
        use = world.use()
        own = use.used.get((resource.name, "cpus"), 0)
        assert own <= kept
        assert use.used.get(("root", "cpus"), 0) - own + kept <= CPUS
        waiting = [job for job in world.waiting if job.persistent_resource == resource.name]
        assert own or not any(job.spec.pools[0].cpus <= kept for job in waiting), (
            "it is idle, and a job waits"
        )
        if not world.running:
            break
        world.end_next()


@EFFORT
@given(st.data(), resources(), jobs(12))
def test_only_spot_jobs_are_stopped_for_it_and_nobody_from_outside_stops_its_jobs(
    data: st.DataObject, made: tuple[ShareTree, PersistentResource], batch: list[Job]
):
    tree, resource = made
    world = World(tree, some_inside(data, batch, resource))
    everyone = dict(world.jobs)
    world.settle()
    for claimant, victim in world.preempted:
        mine, its = everyone[claimant].persistent_resource, everyone[victim].persistent_resource
        is_spot = everyone[victim].spec.scheduling.is_spot
        assert mine == its or is_spot or not (mine or its)
        assert tree.is_set or is_spot, "without shares only spot jobs are stopped"

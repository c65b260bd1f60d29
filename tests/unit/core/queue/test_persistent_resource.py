"""A persistent resource is a share that lends and borrows nothing, below the share of its project."""

from dataclasses import replace

import pytest

from tests.builders import T0, a_node, a_pool
from tests.shares import a_job_of, a_share, a_tree, started
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import Cycle, admit
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.guarantee import Guarantees, Standing, guarantees
from trainshed.core.queue.persistent_resource import (
    PersistentResource,
    is_free,
    reservable,
    too_small,
    with_resources,
)
from trainshed.core.queue.share import ROOT, ShareTree, Stake
from trainshed.core.queue.share_use import ShareUse
from trainshed.core.queue.snapshot import snapshot_of

NODE = a_node(cpus=8)
CAPACITY = {"cpus": 8.0, "memory": float(NODE.memory)}


def a_resource(name: str = "kept", cpus: float = 4, project: str = "vision") -> PersistentResource:
    pool = a_pool(cpus=cpus, memory=4 << 30)
    return PersistentResource(id=name, project=project, location="us-central1", pools=(pool,), created_at=T0)


def inside(job: Job, resource: PersistentResource) -> Job:
    spec = replace(job.spec, persistent_resource=resource.id)
    return replace(job, spec=spec, project=resource.project, location=resource.location)


def chosen(tree: ShareTree, running: list[Job], waiting: list[Job]) -> set[str]:
    """Who is admitted."""
    snapshot = snapshot_of([started(job) for job in running], (NODE,), Fit.SHRINK, T0, None, tree)
    return {result.job.id for result in admit(snapshot, waiting, T0) if result.admission is not None}


@pytest.mark.parametrize("tree", [None, a_tree(a_share("vision", 6), a_share("language", 2))])
def test_no_job_from_outside_gets_what_is_reserved_and_its_own_do(tree: ShareTree | None):
    kept = a_resource()
    shares = with_resources(tree, [kept])
    outside = [a_job_of(name, name, 5) for name in ("vision", "language", "nobody")]
    assert chosen(shares, [], outside) == set(), "eight CPUs, of which four are reserved"
    assert chosen(shares, [], [inside(a_job_of("vision", "mine", 4), kept), *outside]) == {"mine"}
    assert chosen(shares, [], [a_job_of("nobody", "small", 4)]) == {"small"}


def test_its_jobs_wait_only_for_each_other():
    kept = a_resource()
    shares = with_resources(None, [kept])
    mine = [inside(a_job_of("vision", str(number), 3), kept) for number in (1, 2)]
    first = a_job_of("vision", "0", 4, priority=9)
    head = a_job_of("vision", "00", 8, priority=9)
    assert chosen(shares, [first], [head, *mine]) == {"1"}, "whoever waits outside"


def on_node(job: Job, node: str) -> Job:
    job = started(job)
    assert job.status.admission is not None
    [place] = job.status.admission.placements
    admission = replace(job.status.admission, placements=(replace(place, node=node),))
    return replace(job, status=replace(job.status, admission=admission))


def test_the_first_job_outside_that_finds_no_room_on_one_node_does_not_keep_its_jobs_waiting():
    kept = a_resource(cpus=2)
    tree = with_resources(None, [kept])
    nodes = tuple(a_node(name, cpus=4) for name in ("n0", "n1", "n2"))
    running = [
        on_node(a_job_of("vision", "a", 3, timeout=100), "n0"),
        on_node(a_job_of("vision", "b", 3), "n1"),
        on_node(inside(a_job_of("vision", "c", 1), kept), "n2"),
    ]
    head = a_job_of("vision", "head", 4, priority=9)
    waiting = [head, inside(a_job_of("vision", "mine", 1), kept), a_job_of("vision", "other", 1)]
    results = admit(snapshot_of(running, nodes, Fit.SHRINK, T0, None, tree), waiting, T0)
    assert {result.job.id for result in results if result.admission is not None} == {"mine"}


def test_a_job_may_have_of_it_no_more_and_nothing_else_than_it_has():
    kept = a_resource()
    tree = with_resources(a_tree(a_share("vision", 8)), [kept])
    assert tree.limit(kept.name, "cpus") == 4
    assert tree.limit(kept.name, "gpus") == 0
    assert tree.limit(kept.name, "NVIDIA_TESLA_T4") == 0


def test_a_job_that_names_none_or_one_that_is_gone_belongs_to_its_project():
    kept = a_resource()
    tree = with_resources(a_tree(a_share("vision", 8)), [kept])
    job = a_job_of("vision", "1")
    assert tree.share_of_job(job) == "vision"
    assert tree.share_of_job(inside(job, kept)) == kept.name
    assert tree.share_of_job(inside(job, a_resource("gone"))) == "vision"


def rights(tree: ShareTree, *stakes: Stake) -> Guarantees:
    return guarantees(tree, stakes, lambda _share, _closed: iter(()))


def stake(tree: ShareTree, job: Job) -> Stake:
    return Cycle(snapshot_of([], (NODE,), Fit.SHRINK, T0, None, tree), T0).stake_of(job)


def test_without_a_file_nobody_takes_from_anybody_and_nobody_borrows():
    kept = a_resource()
    tree = with_resources(None, [kept])
    low, high = (stake(tree, a_job_of("a", str(at), 2, priority=at)) for at in (0, 5))
    mine = stake(tree, inside(a_job_of("vision", "mine", 2, priority=9), kept))
    found, use = rights(tree, low, high, mine), ShareUse(tree, CAPACITY)
    assert not any(
        found.may_take(one, other, use) for one in (low, high, mine) for other in (low, high, mine)
    )
    assert {found.standing(item) for item in (low, high, mine)} == {Standing.GUARANTEED}


def test_without_shares_spot_jobs_give_way_to_all_others_and_nobody_else_does():
    kept = a_resource()
    tree = with_resources(None, [kept])
    spot, other = stake(tree, a_job_of("a", "1", 2, spot=True)), stake(tree, a_job_of("a", "2", 2))
    mine = stake(tree, inside(a_job_of("vision", "mine", 2), kept))
    found, use = rights(tree, spot, other, mine), ShareUse(tree, CAPACITY)
    assert found.may_take(mine, spot, use)
    assert found.may_take(other, spot, use)
    assert not found.may_take(mine, other, use)


def test_nobody_from_outside_takes_from_it_and_it_takes_from_no_share():
    kept = a_resource(cpus=2)
    tree = with_resources(a_tree(a_share("vision", 4), a_share("language", 4)), [kept])
    mine = stake(tree, inside(a_job_of("vision", "mine", 2), kept))
    borrowed = stake(tree, a_job_of("nobody", "b", 4))
    claimant = stake(tree, a_job_of("language", "c", 4, priority=9))
    found, use = rights(tree, mine, borrowed, claimant), ShareUse(tree, CAPACITY)
    assert found.may_take(claimant, borrowed, use)
    assert not found.may_take(claimant, mine, use)
    assert not found.may_take(mine, borrowed, use)


def test_what_is_reserved_below_a_share_is_no_longer_guaranteed_to_its_other_jobs():
    share = a_share("vision", 4)
    job = a_job_of("vision", "1", 3)
    plain, kept = a_tree(share), with_resources(a_tree(share), [a_resource(cpus=2)])
    assert rights(plain, stake(plain, job)).has_right(stake(plain, job), "vision")
    assert not rights(kept, stake(kept, job)).has_right(stake(kept, job), "vision")
    small = stake(kept, a_job_of("vision", "2", 2))
    assert rights(kept, small).standing(small) is Standing.GUARANTEED, "it is still a share of its own"


def test_a_resource_that_the_file_does_not_divide_gives_nobody_a_right():
    gpus = replace(a_share("vision", 0), nominal={"gpus": 4})
    tree = with_resources(a_tree(gpus), [a_resource(project="nobody")])
    claimant, other = stake(tree, a_job_of("vision", "1", 2)), stake(tree, a_job_of("nobody", "2", 2))
    assert not rights(tree, claimant, other).may_take(claimant, other, ShareUse(tree, CAPACITY))


@pytest.mark.parametrize(
    ("project", "most"),
    [("vision", 3), ("nobody", 1)],
)
def test_below_a_share_no_more_can_be_reserved_than_its_nominal_amount(project: str, most: float):
    tree = with_resources(a_tree(a_share("vision", 5), a_share("language", 2)), [a_resource(cpus=2)])
    assert reservable(tree, tree.share_of(project), "cpus", CAPACITY) == most


def test_of_what_is_not_divided_all_that_no_other_reserves_can_be_reserved():
    tree = with_resources(None, [a_resource(cpus=2)])
    assert reservable(tree, ROOT, "cpus", CAPACITY) == 6
    assert reservable(tree, ROOT, "gpus", CAPACITY) == 0


def test_it_is_free_once_jobs_from_outside_have_none_of_it():
    kept, other = a_resource(), a_resource("other", 2)
    tree = with_resources(None, [kept, other])
    outside, own = a_job_of("nobody", "1", 3), inside(a_job_of("vision", "2", 4), kept)
    use = ShareUse(tree, CAPACITY)
    use.take(stake(tree, outside))
    assert not is_free(use, kept.name), "three are used, two are the other's, four are its own"
    use.take(stake(tree, own))
    assert not is_free(use, kept.name), "what its own jobs have is not counted twice"
    use.give(stake(tree, outside))
    assert is_free(use, kept.name)


@pytest.mark.parametrize(
    "tree",
    [
        a_tree(a_share("vision", 4, borrow=0)),
        a_tree(a_share("vision", 4), a_share("language", 4, lend=0)),
        a_tree(a_share("lab", 4, borrow=0), a_share("vision", 4, parent="lab")),
    ],
    ids=["at its limit", "others lend nothing", "at a limit above"],
)
def test_it_is_not_free_while_its_share_may_have_no_more_though_machines_are_idle(tree: ShareTree):
    kept = a_resource()
    shares = with_resources(tree, [kept])
    use = ShareUse(shares, CAPACITY)
    outside = stake(shares, a_job_of("vision", "1", 4))
    use.take(outside)
    mine = inside(a_job_of("vision", "mine", 4), kept)
    assert chosen(shares, [a_job_of("vision", "1", 4)], [mine]) == set()
    assert not is_free(use, kept.name)
    use.give(outside)
    assert is_free(use, kept.name)
    use.take(stake(shares, mine))
    assert is_free(use, kept.name), "what its own jobs have is not missing"


def faults(tree: ShareTree, *resources: PersistentResource) -> list[str]:
    return [violation.field for violation in too_small(tree, resources)]


def test_a_share_must_have_what_is_reserved_in_it_and_what_the_shares_below_it_have():
    kept = [a_resource("one", 2), a_resource("two", 2), a_resource("elsewhere", 9, "nobody")]
    assert faults(a_tree(a_share("vision", 4)), *kept) == []
    assert faults(a_tree(a_share("vision", 3)), *kept) == ["share.vision.nominal.cpus"]
    parted = a_share("vision", 4), a_share("team", 1, parent="vision")
    assert faults(a_tree(*parted), *kept) == ["share.vision.nominal.cpus"]
    assert faults(a_tree(*parted), kept[0]) == []


def test_of_what_is_not_divided_as_much_may_be_reserved_as_before():
    gpus = a_tree(replace(a_share("vision", 0), nominal={"gpus": 4}))
    assert faults(gpus, a_resource(cpus=99)) == []

"""Of those that may be stopped, the ones that lose the least work are: on which node, how many, of whom."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from tests.builders import T0, a_node, a_pool
from tests.shares import a_job_of, a_share, a_tree, claims_of, started
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.snapshot import snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs

NODES = tuple(a_node(name, cpus=4) for name in ("n0", "n1", "n2"))
OWNER = a_tree(a_share("owner", 12), a_share("guest", 0))  # a guest has nothing of its own


def minutes(**lost: float) -> dict[str, timedelta]:
    return {job: timedelta(minutes=number) for job, number in lost.items()}


def running(job: Job, *nodes: str) -> Job:
    """One replica on each of these nodes."""
    job = started(job)
    assert job.status.admission is not None
    [place] = job.status.admission.placements
    places = tuple(replace(place, index=at, node=node) for at, node in enumerate(nodes))
    admission = replace(job.status.admission, placements=places)
    spec = replace(job.spec, pools=(replace(job.spec.pools[0], replicas=len(nodes)),))
    return replace(job, spec=spec, status=replace(job.status, admission=admission))


def stopped(
    claimant: Job, active: list[Job], lost: Mapping[str, timedelta], tree: ShareTree = OWNER
) -> list[str]:
    snapshot = snapshot_of([*active, claimant], NODES, Fit.STRICT, T0, None, tree)
    queue = WaitingJobs([claimant], {}, tree)
    cycle = Cycle(snapshot, T0, queue)
    assert [cycle.answer(job).admission for job in cycle.walk(queue)] == [None]
    return [item.job for claim in claims_of(cycle, lost) for item in claim.victims]


def a_gang_of(project: str, id: str, cpus: float, replicas: int) -> Job:
    job = a_job_of(project, id, cpus)
    return replace(job, spec=replace(job.spec, pools=(a_pool(replicas, cpus=cpus),)))


def test_the_node_is_freed_whose_jobs_lose_the_least_together():
    active = [
        *(running(a_job_of("guest", f"small{n}", 1), "n0") for n in range(4)),
        running(a_job_of("guest", "whole", 4), "n1"),
        running(a_job_of("guest", "longer", 4), "n2"),
    ]
    lost = {f"small{n}": timedelta(minutes=10) for n in range(4)} | minutes(whole=8, longer=30)
    assert stopped(a_job_of("owner", "1", 4), active, lost) == ["whole"]
    assert stopped(a_job_of("owner", "1", 4), active, lost | minutes(whole=20)) == [
        f"small{n}" for n in range(4)
    ]


def test_a_large_job_that_has_just_stored_its_work_is_stopped_before_a_small_one_that_has_not():
    active = [
        running(a_job_of("guest", "large", 4), "n0"),
        running(a_job_of("guest", "small", 1), "n1"),
        running(a_job_of("owner", "own", 3), "n1"),
        running(a_job_of("owner", "other", 4), "n2"),
    ]
    assert stopped(a_job_of("owner", "1", 1), active, minutes(large=1, small=60)) == ["large"]
    assert stopped(a_job_of("owner", "1", 1), active, minutes(large=60, small=60)) == ["small"]


def test_for_each_replica_the_cheapest_node_is_freed_and_a_gang_counts_once():
    active = [
        running(a_job_of("guest", "gang", 4), "n0", "n1"),
        running(a_job_of("guest", "alone", 4), "n2"),
    ]
    claimant = a_gang_of("owner", "1", 4, replicas=2)
    assert stopped(claimant, active, minutes(gang=10, alone=12)) == ["gang"]
    assert stopped(a_job_of("owner", "1", 4), active, minutes(gang=10, alone=12)) == ["alone"]


def test_a_job_of_a_higher_priority_is_not_stopped_where_those_of_a_lower_one_are_enough():
    active = [
        running(a_job_of("guest", "low", 4), "n0"),
        running(a_job_of("guest", "high", 4, priority=1), "n1"),
        running(a_job_of("guest", "spot", 4, spot=True), "n2"),
    ]
    assert stopped(a_job_of("owner", "1", 4), active, minutes(spot=600, low=60)) == ["spot"]
    assert stopped(a_gang_of("owner", "1", 4, 2), active, minutes(spot=600, low=60)) == ["spot", "low"]


def test_a_job_takes_from_its_neighbour_before_all_neighbours_give_way_for_one_of_another_branch():
    tree = a_tree(
        a_share("above", 4),
        a_share("owner", 4, parent="above"),
        a_share("neighbour", 0, parent="above"),
        a_share("stranger", 0),
    )
    active = [
        *(running(a_job_of("neighbour", f"near{n}", 2), "n0") for n in range(2)),
        running(a_job_of("neighbour", "near", 4), "n1"),
        running(a_job_of("stranger", "far", 4), "n2"),
    ]
    lost = minutes(near=60, near0=5, near1=9)
    assert stopped(a_job_of("owner", "1", 2), active, lost, tree) == ["near0"]


def test_who_runs_on_a_node_that_is_gone_too_may_be_stopped_for_what_it_has_elsewhere():
    active = [
        running(a_job_of("guest", "gang", 4), "n0", "gone"),
        running(a_job_of("guest", "other", 4), "gone"),
        running(a_job_of("owner", "own", 4), "n1"),
        running(a_job_of("owner", "more", 4), "n2"),
    ]
    assert stopped(a_job_of("owner", "1", 4), active, minutes(gang=9)) == ["gang"]

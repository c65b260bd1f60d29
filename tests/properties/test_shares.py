"""Shares over random trees and jobs: no limit is ever broken, and where none are set nothing changes."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import T0, a_node
from tests.properties.effort import PROPERTY
from tests.properties.share_world import CPUS, jobs, trees
from tests.properties.test_admit import queues, snapshots
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import Cycle, admit
from trainshed.core.queue.share import ShareTree, share_tree
from trainshed.core.queue.share_use import ShareUse
from trainshed.core.queue.snapshot import Reservation, Snapshot
from trainshed.core.queue.waiting_jobs import WaitingJobs

EFFORT = settings(PROPERTY, max_examples=150)


def world(tree: ShareTree, running: list[Job]) -> Snapshot:
    """A machine on which those of the jobs run that an earlier cycle let in."""
    empty = Snapshot(nodes=(a_node(cpus=CPUS),), held=(), tree=tree)
    held = [
        Reservation(
            job=result.job.id,
            display_name="",
            placements=result.admission.placements,
            until=T0 + result.job.spec.scheduling.timeout,
            stake=tree.stake(result.job, result.admission.placements),
        )
        for result in admit(empty, running, T0)
        if result.admission is not None
    ]
    return replace(empty, held=tuple(held))


def renamed(running: list[Job]) -> list[Job]:
    return [replace(job, id=f"r{job.id}") for job in running]


@EFFORT
@given(snapshots(), queues())
def test_a_tree_without_shares_decides_as_no_tree(snapshot: Snapshot, queue: list[Job]):
    tree = share_tree(())
    stakes = tuple(replace(item, stake=None) for item in snapshot.held)
    assert admit(replace(snapshot, held=stakes, tree=tree), queue, T0) == admit(snapshot, queue, T0)


@EFFORT
@given(trees(), jobs(), jobs())
def test_a_cycle_over_the_kept_queue_decides_as_a_pass_over_all_jobs(
    tree: ShareTree, running: list[Job], queue: list[Job]
):
    snapshot = world(tree, renamed(running))
    kept = WaitingJobs(queue, {}, tree)
    cycle = Cycle(snapshot, T0, kept)
    let_in = {
        job.id: result.admission
        for job in kept.in_order(cycle.refused, cycle.turn)
        if (result := cycle.answer(job)).admission is not None
    }
    expected = admit(snapshot, queue, T0)
    assert let_in == {v.job.id: v.admission for v in expected if v.admission is not None}
    for result in expected:
        if result.admission is None:
            assert cycle.refusal_of(result.job) == result.refusal


@EFFORT
@given(trees(), jobs(), jobs(), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_the_question(
    tree: ShareTree, running: list[Job], queue: list[Job], random
):
    snapshot = world(tree, renamed(running))
    shuffled = list(queue)
    random.shuffle(shuffled)
    assert admit(snapshot, queue, T0) == admit(snapshot, shuffled, T0)


@EFFORT
@given(trees(), jobs(), jobs())
def test_no_share_and_no_user_ever_has_more_than_its_limit(
    tree: ShareTree, running: list[Job], queue: list[Job]
):
    snapshot = world(tree, renamed(running))
    use = ShareUse(tree, {"cpus": CPUS})
    stakes = [item.stake for item in snapshot.held if item.stake is not None]
    stakes += [tree.stake(v.job, v.admission.placements) for v in admit(snapshot, queue, T0) if v.admission]
    for stake in stakes:
        use.take(stake)
    for (share, item), used in use.used.items():
        assert used <= tree.limit(share, item)
    for (share, _, item), used in use.by_user.items():
        assert used <= tree.shares[share].per_user.get(item, used)


@EFFORT
@given(trees(), jobs(), jobs())
def test_what_a_share_keeps_is_free_for_it_of_all_but_spot(
    tree: ShareTree, running: list[Job], queue: list[Job]
):
    """Whoever runs, a share that lends nothing can have its nominal amount at once."""
    snapshot = world(tree, renamed([job for job in running if job.spec.scheduling.strategy != "SPOT"]))
    results = admit(snapshot, [job for job in queue if job.spec.scheduling.strategy != "SPOT"], T0)
    use = ShareUse(tree, {"cpus": CPUS})
    for item in snapshot.held:
        assert item.stake is not None
        use.take(item.stake)
    for result in results:
        if result.admission is not None:
            use.take(tree.stake(result.job, result.admission.placements))
    free = CPUS - use.used.get(("root", "cpus"), 0)
    keeping = [name for name in tree.shares if tree.shares[name].lend.get("cpus") == 0]
    leaves = [name for name in keeping if not tree.children[name]]
    assert free >= sum(
        max(0, tree.nominal[name]["cpus"] - use.used.get((name, "cpus"), 0)) for name in leaves
    )

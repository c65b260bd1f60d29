"""Preemption over random trees, jobs and graces: it ends, it meets every guarantee, and nobody starves."""

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.builders import at, seconds
from tests.properties.effort import PROPERTY
from tests.properties.share_world import CPUS, World, fleets, gangs, graces, jobs, trees, trees_of_two
from tests.shares import a_job_of, a_share, a_tree
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Fit, Node
from trainshed.core.queue.guarantee import Standing
from trainshed.core.queue.place import needs
from trainshed.core.queue.preempt import ClaimChoice
from trainshed.core.queue.share import ShareTree
from trainshed.core.queue.share_use import Bound, ShareUse
from trainshed.core.queue.snapshot import Holdings, is_waiting, snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs

EFFORT = settings(PROPERTY, max_examples=80)
batches = st.lists(jobs(6), min_size=1, max_size=4)


def numbered(batches: list[list[Job]]) -> list[list[Job]]:
    return [[replace(job, id=f"{n}{job.id}") for job in batch] for n, batch in enumerate(batches)]


def _assert_guarantees_are_met(world: World) -> None:
    cycle = world.settle()
    assert cycle.shares is not None
    use = world.use()
    for job in world.waiting:
        stake = cycle.stake_of(job)
        if cycle.shares.rights.standing(stake) is not Standing.GUARANTEED:
            continue
        shortage = use.shortage(stake)
        its_user = shortage is not None and shortage.bound is Bound.USER
        assert its_user or use.exceeds_nominal(stake.share, stake.amounts), (
            f"{job.id} of share {stake.share} waits with a right"
        )


@EFFORT
@given(trees(), batches, graces)
def test_without_an_event_from_outside_preemption_comes_to_an_end(
    tree: ShareTree, batches: list[list[Job]], graces: list[int]
):
    """kueue#14543, kueue#3779: jobs that preempt each other in turn. `settle` fails where it never ends."""
    world = World(tree, [], graces=graces)
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        world.settle()


@EFFORT
@given(trees(), batches, graces)
def test_nobody_is_stopped_twice_by_the_same_job_without_an_event_from_outside(
    tree: ShareTree, batches: list[list[Job]], graces: list[int]
):
    world = World(tree, [], graces=graces)
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        world.preempted.clear()
        world.settle()
        assert len(set(world.preempted)) == len(world.preempted)


@EFFORT
@given(trees(), batches, graces)
def test_who_was_stopped_for_a_job_made_it_start(
    tree: ShareTree, batches: list[list[Job]], graces: list[int]
):
    """kueue#13662: room that was made for one is never another's."""
    world = World(tree, [], graces=graces)
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        world.settle()
        for claimant, _ in world.preempted:
            assert claimant in world.starts


@EFFORT
@given(trees_of_two(), fleets(), st.lists(gangs(), min_size=1, max_size=4), graces)
def test_preemption_of_gangs_with_gpus_on_several_machines_ends_and_starts_who_it_was_for(
    tree: ShareTree, nodes: tuple[Node, ...], batches: list[list[Job]], graces: list[int]
):
    world = World(tree, [], nodes, graces)
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        world.preempted.clear()
        world.settle()
        assert len(set(world.preempted)) == len(world.preempted)
        assert {claimant for claimant, _ in world.preempted} <= set(world.starts)


@EFFORT
@given(trees(), batches, graces)
def test_every_guarantee_is_met_once_preemption_has_ended(
    tree: ShareTree, batches: list[list[Job]], graces: list[int]
):
    """kueue#6577. A share has its nominal amount, or no job that waits fits into what is missing of it."""
    world = World(tree, [], graces=graces)
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        _assert_guarantees_are_met(world)


@EFFORT
@given(trees(), batches, graces)
def test_only_who_borrows_or_runs_as_spot_or_has_a_lower_priority_in_the_share_is_stopped(
    tree: ShareTree, batches: list[list[Job]], graces: list[int]
):
    world = World(tree, [], graces=graces)
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        is_settled = False
        while not is_settled:
            jobs_before, before = world.jobs.copy(), len(world.preempted)
            rights = world.cycle().shares
            assert rights is not None
            is_settled = world.jobs == jobs_before
            for claimant, victim in world.preempted[before:]:
                one, other = world.jobs[claimant], world.jobs[victim]
                same = tree.share_of(one.project) == tree.share_of(other.project)
                lower = one.spec.scheduling.priority > other.spec.scheduling.priority
                standing = rights.rights.standing(tree.stake(other, needs(other.spec)))
                assert (same and lower) or standing is not Standing.GUARANTEED


@EFFORT
@given(trees(), batches, graces, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_every_guarantee_is_met_also_where_jobs_come_while_others_are_being_stopped(
    tree: ShareTree, batches: list[list[Job]], graces: list[int], between: list[int]
):
    world = World(tree, [], graces=graces)
    for batch, cycles in zip(numbered(batches), between, strict=False):
        world.jobs |= {job.id: job for job in batch}
        for _ in range(cycles):
            world.cycle()
    _assert_guarantees_are_met(world)


@EFFORT
@given(trees(), jobs(), graces)
def test_every_job_that_its_share_may_have_starts_at_last(
    tree: ShareTree, queue: list[Job], graces: list[int]
):
    world = World(tree, queue, graces=graces)
    alone = ShareUse(tree, {"cpus": CPUS})
    possible = {job.id for job in queue if alone.shortage(tree.stake(job, needs(job.spec))) is None}
    for _ in range(200):
        world.settle()
        if not world.running:
            break
        world.end_next()
    assert possible <= set(world.starts)


@EFFORT
@given(trees(), st.lists(jobs(3), min_size=30, max_size=30), st.data())
def test_a_job_within_its_share_is_never_passed_for_ever_by_smaller_ones(
    tree: ShareTree, arrivals: list[list[Job]], data: st.DataObject
):
    shares = [
        name
        for name, share in tree.shares.items()
        if share.nominal.get("cpus", 0) >= 1 and not tree.children[name] and not share.per_user
    ]
    assume(shares)
    name = data.draw(st.sampled_from(shares))
    world = World(tree, [])
    world.jobs |= {job.id: job for job in numbered(arrivals[:1])[0]}
    world.settle()
    size = int(tree.nominal[name]["cpus"])
    world.jobs["target"] = a_job_of(name, "target", size, created_at=world.now)
    for batch in numbered(arrivals):
        late = [
            replace(
                job,
                id=f"late{job.id}",
                created_at=world.now + seconds(1),
                spec=replace(job.spec, scheduling=replace(job.spec.scheduling, priority=0)),
            )
            for job in batch
        ]
        world.jobs |= {job.id: job for job in late}
        world.settle()
        if "target" in world.starts:
            return
        world.end_next()
    raise AssertionError("it never started")


@EFFORT
@given(trees(), batches, st.randoms(use_true_random=False))
def test_what_is_kept_from_cycle_to_cycle_changes_no_decision(
    tree: ShareTree, batches: list[list[Job]], random
):
    """The queue and the holdings, as the scheduler keeps them, against all worked out anew."""
    world, kept, holdings = World(tree, []), WaitingJobs((), {}, tree), Holdings()
    for batch in numbered(batches):
        world.jobs |= {job.id: job for job in batch}
        if world.running and random.random() < 0.5:
            world.end_next()
        for _ in range(3):
            waiting = {job.id: job for job in world.waiting}
            for id in [job.id for job in kept if job.id not in waiting]:
                kept.remove(id)
            for job in waiting.values():
                kept.put(job)
            anew, now = WaitingJobs(waiting.values(), {}, tree), world.now
            everyone = world.jobs.values()
            snapshot = snapshot_of(everyone, world.nodes, Fit.SHRINK, now, None, tree, holdings)
            one, other = Cycle(snapshot, now, kept), Cycle(world.snapshot(), now, anew)
            assert [one.answer(job) for job in one.walk(kept)] == [
                other.answer(job) for job in other.walk(anew)
            ]
            choices = ClaimChoice.of(one), ClaimChoice.of(other)
            assert choices[0] is not None and choices[1] is not None
            assert choices[0].candidates() == choices[1].candidates()
            assert choices[0].claims({}) == choices[1].claims({})
            world.cycle()


def test_who_is_stopped_for_starts_also_where_another_of_its_shape_is_refused():
    """What is kept for one is not the other's, and the other comes before it in the queue."""
    tree = a_tree(
        a_share("a", 0, parent="above"), a_share("b", 5, parent="above", lend=0), a_share("above", 7)
    )
    first = [a_job_of("a", "0", 1), a_job_of("a", "spot", 6, spot=True), a_job_of("c", "1", 1)]
    world = World(tree, first)
    world.settle()
    world.jobs |= {job.id: job for job in (a_job_of("a", "2", 1), a_job_of("c", "3", 1))}
    world.settle()
    assert {"2", "3"} <= set(world.starts)


def test_a_job_within_what_is_guaranteed_does_not_wait_behind_one_of_its_share_that_asks_for_more():
    tree = a_tree(a_share("a", 1), a_share("b", 0))
    large = a_job_of("a", "large", 8, created_at=at(-1))
    world = World(
        tree, [a_job_of("b", "0", 1, timeout=10, created_at=at(-2)), large, a_job_of("a", "small", 1)]
    )
    world.settle()
    assert set(world.starts) == {"0", "small"}


def test_a_job_that_has_waited_for_a_day_is_not_passed_by_others_of_its_share():
    tree = a_tree(a_share("a", 1), a_share("b", 0))
    large = a_job_of("a", "large", 8, created_at=at(-25 * 3600))
    other = a_job_of("b", "0", 1, timeout=10, created_at=at(-26 * 3600))
    world = World(tree, [other, large, a_job_of("a", "small", 1)])
    world.settle()
    assert world.starts == ["0"]


def test_a_share_gets_its_own_where_who_borrows_is_inside_and_outside_of_the_one_above():
    below = [a_share("a", 6, parent="above"), a_share("b", 0, parent="above")]
    tree = a_tree(*below, a_share("above", 6), a_share("c", 0))
    world = World(tree, [a_job_of("c", "0", 3), a_job_of("b", "1", 1)])
    world.settle()
    world.jobs["own"] = a_job_of("a", "own", 6, created_at=at(9))
    world.settle()
    assert "own" in world.starts


def test_the_case_of_two_shares_that_each_borrow_ends():
    """Each has one job within its own and one that borrows; a third share wants its own back."""
    tree = a_tree(a_share("a", 3), a_share("b", 3), a_share("c", 2))
    world = World(tree, [a_job_of(name, f"{name}{n}", 2) for name in "ab" for n in range(2)])
    world.settle()
    assert len(world.running) == 4
    world.jobs["c"] = a_job_of("c", "c", 2, created_at=at(9))
    world.settle()
    assert [victim for _, victim in world.preempted] in (["a1"], ["b1"])
    assert not is_waiting(world.jobs["c"])


def test_a_job_that_was_stopped_takes_back_nothing_while_nothing_ends():
    """kueue#3779: the stopped job has a higher priority than the one that took its own back."""
    tree = a_tree(a_share("a", 4), a_share("b", 4))
    own = a_job_of("b", "own", 4, priority=9, created_at=at(-1))
    world = World(tree, [own, a_job_of("b", "borrows", 4, priority=9)])
    world.settle()
    world.jobs["1"] = a_job_of("a", "1", 4, created_at=at(9))
    world.settle()
    assert world.preempted == [("1", "borrows")]
    assert [job.id for job in world.waiting] == ["borrows"]

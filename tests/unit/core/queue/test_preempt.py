"""Who is stopped for whom: by which rule, in which order, and never more than needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import T0, a_node, at, closing
from tests.shares import a_job_of, a_share, a_tree, claims_of, started
from trainshed.control.preemption import standings
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, Outcome
from trainshed.core.queue.admit import Cycle
from trainshed.core.queue.fleet import Admission, Claim, Fit, Placement
from trainshed.core.queue.guarantee import MOST_UNFIT, Standing
from trainshed.core.queue.preempt import MOST_CLAIMANTS, ClaimChoice
from trainshed.core.queue.share import UNDIVIDED, Share, ShareTree
from trainshed.core.queue.snapshot import snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs

TREE = a_tree(a_share("a", 4), a_share("b", 4))


def cycle_of(tree: ShareTree, waiting: Sequence[Job], active: Sequence[Job]) -> Cycle:
    snapshot = snapshot_of([*active, *waiting], (a_node(cpus=8),), Fit.SHRINK, T0, None, tree)
    queue = WaitingJobs(waiting, {}, tree)
    cycle = Cycle(snapshot, T0, queue)
    for job in cycle.walk(queue):
        cycle.answer(job)
    return cycle


def stopped(
    waiting: Sequence[Job],
    running: Sequence[Job],
    *,
    tree: ShareTree = TREE,
    lost: Mapping[str, timedelta] | None = None,
) -> dict[str, list[str]]:
    """By claimant, the jobs that are stopped for it."""
    cycle = cycle_of(tree, waiting, [started(job) for job in running])
    choice = ClaimChoice.of(cycle)
    assert choice is not None
    able, chosen = choice.candidates(), choice.claims(lost or {})
    assert all(item.job in able for claim in chosen for item in claim.victims)
    return {claim.job.id: [item.job for item in claim.victims] for claim in chosen}


def test_a_share_takes_back_what_is_its_own_from_who_borrows_it():
    running = [a_job_of("b", "own", 4, created_at=at(-2)), a_job_of("b", "borrows", 4, created_at=at(-1))]
    assert stopped([a_job_of("a", "1", 4)], running) == {"1": ["borrows"]}


def test_nobody_is_stopped_where_the_share_wants_more_than_is_its_own():
    running = [a_job_of("a", "0", 2), a_job_of("b", "1", 6)]
    assert stopped([a_job_of("a", "2", 3)], running) == {}


def test_nobody_is_stopped_who_is_within_what_is_guaranteed():
    running = [a_job_of("a", "0", 4), a_job_of("b", "1", 4)]
    assert stopped([a_job_of("a", "2", 1, priority=0)], running) == {}


def test_in_a_share_a_higher_priority_stops_a_lower_one():
    running = [a_job_of("a", "low", 4), a_job_of("b", "0", 4)]
    assert stopped([a_job_of("a", "high", 4, priority=1)], running) == {"high": ["low"]}


def test_a_higher_priority_stops_nobody_of_another_share_within_its_own():
    running = [a_job_of("a", "0", 4), a_job_of("b", "1", 4)]
    assert stopped([a_job_of("b", "high", 5, priority=9)], running) == {}


def test_spot_jobs_are_stopped_first_and_for_anybody_else():
    running = [a_job_of("b", "spot", 4, spot=True), a_job_of("b", "borrows", 4, priority=0)]
    assert stopped([a_job_of("nobody", "1", 2)], running) == {"1": ["spot"]}
    assert stopped([a_job_of("a", "1", 4)], running) == {"1": ["spot"]}


def test_without_shares_spot_jobs_give_way_and_nobody_else_does():
    running = [a_job_of("b", "spot", 2, spot=True), a_job_of("b", "low", 6, priority=-1)]
    assert stopped([a_job_of("b", "1", 2)], running, tree=UNDIVIDED) == {"1": ["spot"]}
    assert stopped([a_job_of("b", "1", 8, priority=9)], running, tree=UNDIVIDED) == {}


def test_without_shares_only_spot_jobs_have_a_standing():
    running = [started(a_job_of("b", "spot", 2, spot=True)), started(a_job_of("b", "other", 2))]
    assert standings(cycle_of(UNDIVIDED, [], running)) == {"spot": Standing.SPOT}


def test_a_spot_job_stops_nobody():
    running = [a_job_of("b", "0", 8, spot=True)]
    assert stopped([a_job_of("a", "1", 1, spot=True, priority=9)], running) == {}


def test_of_those_that_borrow_the_lowest_priority_and_then_the_least_loss_is_stopped():
    running = [
        a_job_of("b", "first", 4, created_at=at(-9), priority=9),
        a_job_of("b", "urgent", 1, priority=5),
        a_job_of("b", "fresh", 1),
        a_job_of("b", "long", 1),
        a_job_of("b", "kept", 1),
    ]
    lost = {"fresh": timedelta(minutes=1), "long": timedelta(hours=3), "kept": timedelta(seconds=5)}
    assert stopped([a_job_of("a", "1", 1)], running, lost=lost) == {"1": ["kept"]}
    assert stopped([a_job_of("a", "1", 2)], running, lost=lost) == {"1": ["kept", "fresh"]}
    assert stopped([a_job_of("a", "1", 3)], running, lost=lost) == {"1": ["kept", "fresh", "long"]}


def test_who_turns_out_not_to_be_needed_is_spared():
    running = [
        a_job_of("b", "own", 4, created_at=at(-9)),
        a_job_of("b", "small", 1),
        a_job_of("b", "large", 3),
    ]
    lost = {"large": timedelta(hours=1)}
    assert stopped([a_job_of("a", "1", 3)], running, lost=lost) == {"1": ["large"]}


def test_nobody_is_stopped_where_that_would_not_be_enough():
    running = [a_job_of("a", "0", 1), a_job_of("b", "own", 4, created_at=at(-9)), a_job_of("b", "1", 3)]
    tree = a_tree(a_share("a", 4, borrow=0), a_share("b", 4))
    assert stopped([a_job_of("a", "2", 4)], running, tree=tree) == {}


def test_nobody_is_stopped_for_a_job_that_starts_when_others_have_stopped_anyway():
    own, ends = started(a_job_of("b", "own", 4)), started(a_job_of("b", "ends", 3))
    active = [own, closing(ends, Outcome.CANCELLED), started(a_job_of("b", "borrows", 1))]
    assert claims_of(cycle_of(TREE, [a_job_of("a", "1", 3)], active)) == ()


def test_a_failed_job_that_is_kept_for_a_look_does_not_leave_soon():
    own = started(a_job_of("b", "own", 4, created_at=at(-2)))
    kept = started(a_job_of("b", "kept", 3, created_at=at(-1)))
    scheduling = replace(kept.spec.scheduling, hold=timedelta(hours=1))
    kept = replace(kept, spec=replace(kept.spec, scheduling=scheduling))
    borrows = started(a_job_of("b", "borrows", 1, created_at=at(1)))
    for outcome, expected in ((Outcome.FAILED, ["borrows"]), (Outcome.CANCELLED, [])):
        cycle = cycle_of(TREE, [a_job_of("a", "1", 1)], [own, closing(kept, outcome), borrows])
        assert [item.job for claim in claims_of(cycle) for item in claim.victims] == expected


def test_a_job_that_should_have_left_long_ago_counts_as_one_that_stays():
    own = started(a_job_of("b", "own", 4, created_at=at(-2)))
    stuck = started(a_job_of("b", "stuck", 3, created_at=at(-1)))
    stuck = closing(stuck, Outcome.CANCELLED, since=at(-3600))
    borrows = started(a_job_of("b", "borrows", 1, created_at=at(1)))
    [claim] = claims_of(cycle_of(TREE, [a_job_of("a", "1", 1)], [own, stuck, borrows]))
    assert [item.job for item in claim.victims] == ["borrows"]


def test_a_job_between_two_attempts_is_not_stopped():
    own = started(a_job_of("b", "own", 4, created_at=at(-9)))
    retries = closing(started(a_job_of("b", "retries", 2)), Outcome.RETRY)
    other = started(a_job_of("b", "other", 2, created_at=at(-1)))
    [claim] = claims_of(cycle_of(TREE, [a_job_of("a", "1", 2)], [own, retries, other]))
    assert [item.job for item in claim.victims] == ["other"]
    assert claims_of(cycle_of(TREE, [a_job_of("a", "1", 4)], [own, retries, other])) == ()


def test_jobs_for_which_nobody_could_stop_enough_keep_no_other_from_it():
    running = [a_job_of("b", "other", 7), a_job_of("b", "spot", 1, spot=True)]
    large = [a_job_of("b", f"large{n}", 8, timeout=100 + n, created_at=at(-n)) for n in range(1, 40)]
    assert stopped([*large, a_job_of("b", "small", 1)], running, tree=UNDIVIDED) == {"small": ["spot"]}


def test_a_claim_lasts_while_a_job_leaves_that_was_leaving_when_it_was_made():
    """Else the victim would start again, be stopped again, and so on until the other has left."""
    own = started(a_job_of("b", "own", 4, created_at=at(-2)))
    leaves = closing(started(a_job_of("b", "leaves", 2)), Outcome.CANCELLED, since=at(-5))
    claimant = a_job_of("a", "1", 4)
    place = Placement(pool=0, index=0, node="n", host="10.0.0.1", cpus=4, memory=1 << 30)
    claim = Claim(placements=(place,), victims=(("victim", 0),), claimed_at=T0)
    claimant = replace(claimant, status=replace(claimant.status, claim=claim))
    victim = a_job_of("b", "victim", 2, created_at=at(-1))  # it has stopped, and waits again

    during = cycle_of(TREE, [claimant, victim], [own, leaves])
    assert [item.job for item in during.held] == ["own", "leaves", "1"]
    refusal = during.refusal_of(claimant)
    assert refusal is not None
    assert (refusal.reason, refusal.holders) == (Reason.WAITS_FOR_PREEMPTED, (("leaves", "job-leaves", "b"),))
    assert claims_of(during) == ()

    later = closing(leaves, Outcome.CANCELLED, since=at(5))  # who begins to leave later is not waited for
    assert [item.job for item in cycle_of(TREE, [claimant], [own, later]).held] == ["own", "leaves"]
    assert [item.job for item in cycle_of(TREE, [claimant, victim], [own]).held] == ["own", "1"]


def test_a_claimant_never_gets_gpus_that_one_who_leaves_still_has():
    leaves = started(a_job_of("b", "leaves", 1))
    gpus = Placement(pool=0, index=0, node="n", host="10.0.0.1", cpus=1, memory=1 << 30, gpus=("0", "1"))
    admission = Admission(placements=(replace(gpus, gpus=("0",)),), admitted_at=T0)
    leaves = closing(replace(leaves, status=replace(leaves.status, admission=admission)), Outcome.CANCELLED)
    claimant = a_job_of("a", "1", 1)
    claim = Claim(placements=(gpus,), victims=(), claimed_at=at(1))
    claimant = replace(claimant, status=replace(claimant.status, claim=claim))
    nodes = (a_node(cpus=8, gpus=("0", "1")),)
    mark = snapshot_of([leaves, claimant], nodes, Fit.SHRINK, at(2), None, TREE).earmarks["1"]
    assert [place.gpus for place in mark.reservation.placements] == [("1",)]


def test_what_is_claimed_is_given_to_nobody_else():
    """kueue#13662: the room that was made for one is taken by another before it starts."""
    victim = closing(started(a_job_of("b", "victim", 4, created_at=at(-1))), Outcome.PREEMPTED)
    own = started(a_job_of("b", "own", 4, created_at=at(-2)))
    claimant = a_job_of("a", "1", 4)
    place = Placement(pool=0, index=0, node="n", host="10.0.0.1", cpus=4, memory=1 << 30)
    claim = Claim(placements=(place,), victims=(("victim", 0),), claimed_at=T0)
    claimant = replace(claimant, status=replace(claimant.status, claim=claim))
    spot = a_job_of("b", "spot", 1, spot=True)
    during = cycle_of(TREE, [claimant, spot], [own, victim])
    assert (during.held[-1].job, claims_of(during)) == ("1", ())
    refusal = during.refusal_of(claimant)
    assert refusal is not None
    assert refusal.holders == (("victim", "job-victim", "b"),)
    after = cycle_of(TREE, [claimant, spot], [own])
    assert [item.job for item in after.held] == ["own", "1"]


def test_two_claimants_are_not_given_the_same_room():
    running = [
        a_job_of("b", "own", 4, created_at=at(-9)),
        a_job_of("b", "x", 2, created_at=at(-8)),
        a_job_of("b", "y", 2, created_at=at(-7)),
    ]
    waiting = [a_job_of("a", "1", 2), a_job_of("a", "2", 2, timeout=99)]
    claims = stopped(waiting, running)
    assert sorted(claims) == ["1", "2"]
    assert sorted(name for names in claims.values() for name in names) == ["x", "y"]


def test_each_running_job_stands_as_guaranteed_borrowed_or_spot():
    running = [
        a_job_of("b", "own", 4, created_at=at(-2)),
        a_job_of("b", "more", 1, created_at=at(-1)),
        a_job_of("b", "spot", 1, spot=True),
        a_job_of("nobody", "other", 1),
    ]
    cycle = cycle_of(TREE, [], [started(job) for job in running])
    assert cycle.shares is not None
    assert {item.job: cycle.shares.rights.standing(item.stake) for item in cycle.held if item.stake} == {
        "own": Standing.GUARANTEED,
        "more": Standing.BORROWED,
        "spot": Standing.SPOT,
        "other": Standing.BORROWED,
    }


def test_a_job_that_runs_has_its_right_behind_however_many_that_do_not_fit():
    waiting = [a_job_of("a", f"w{n}", 5 + n / 100, created_at=at(-1000 + n)) for n in range(MOST_UNFIT + 50)]
    runs = started(a_job_of("a", "runs", 4, created_at=at(-1)))
    assert standings(cycle_of(TREE, waiting, [runs])) == {"runs": Standing.GUARANTEED}


def test_a_share_takes_from_its_sister_what_is_its_own_and_leaves_others_alone():
    tree = a_tree(
        a_share("above", 4), a_share("x", 2, parent="above"), a_share("y", 2, parent="above"), a_share("z", 4)
    )
    running = [
        a_job_of("y", "own", 2, created_at=at(-3)),
        a_job_of("y", "borrows", 2, created_at=at(-2)),
        a_job_of("z", "other", 4, created_at=at(-1)),
    ]
    assert stopped([a_job_of("x", "1", 2)], running, tree=tree) == {"1": ["borrows"]}


def test_what_a_sister_does_not_lend_gives_nobody_else_a_right_in_the_share_above():
    tree = a_tree(
        a_share("above", 4),
        a_share("x", 4, parent="above", lend=0),
        a_share("y", 0, parent="above"),
        a_share("z", 4),
    )
    assert stopped([a_job_of("z", "1", 4)], [a_job_of("y", "borrows", 1)], tree=tree) == {"1": ["borrows"]}


@pytest.mark.parametrize("share", [a_share("a", 4, borrow=0), a_share("a", 4, per_user=4)])
def test_jobs_that_the_limits_of_their_share_hold_back_do_not_hide_who_is_behind_them(share: Share):
    tree = a_tree(share, a_share("c", 2))
    high, low = a_job_of("a", "high", 3, priority=9, user="ann"), a_job_of("a", "low", 1, user="ann")
    running = [high, low, a_job_of("c", "0", 2), a_job_of("c", "spot", 2, spot=True)]
    # There is room for each once `low` and `spot` have stopped, and its share may not have so much.
    many = [a_job_of("a", f"{n}", 2 + n / 100, priority=1, user="ann") for n in range(2 * MOST_CLAIMANTS)]
    assert stopped([*many, a_job_of("c", "behind", 2)], running, tree=tree) == {"behind": ["spot"]}


def test_what_a_share_does_not_lend_gives_no_other_below_the_same_one_a_right():
    below = [a_share("a", 5, parent="above", lend=1), a_share("b", 2, parent="above")]
    tree = a_tree(a_share("above", 7), *below, a_share("c", 1))
    running = [a_job_of("b", "own", 2, created_at=at(-2)), a_job_of("b", "borrows", 2, created_at=at(-1))]
    assert stopped([a_job_of("c", "1", 1)], running, tree=tree) == {"1": ["borrows"]}


def test_a_share_may_use_itself_what_it_does_not_lend_with_the_rights_of_the_one_above():
    below = [a_share("a", 5, parent="above", lend=0), a_share("b", 2, parent="above")]
    tree = a_tree(a_share("above", 7), *below, a_share("c", 1))
    running = [a_job_of("c", "borrows", 2, created_at=at(-2)), a_job_of("b", "0", 1, created_at=at(-1))]
    assert stopped([a_job_of("a", "1", 6)], running, tree=tree) == {"1": ["borrows"]}

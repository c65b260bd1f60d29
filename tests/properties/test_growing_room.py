"""What is counted bit by bit against what is worked out anew: the same answers, whatever is given back."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import at
from tests.properties.effort import PROPERTY
from tests.properties.share_world import jobs, trees
from tests.properties.test_admit import queues, snapshots
from trainshed.core.jobs.job import Job
from trainshed.core.queue.growing_room import GrowingRoom
from trainshed.core.queue.place import Room, placed, ways
from trainshed.core.queue.share import ShareTree, stake_of
from trainshed.core.queue.share_use import ShareUse
from trainshed.core.queue.snapshot import Holdings, Reservation, Snapshot, held_by

EFFORT = settings(PROPERTY, max_examples=150)


@EFFORT
@given(snapshots(), queues())
def test_there_is_room_when_a_placement_finds_room(snapshot: Snapshot, queue: list[Job]):
    for job in queue:
        possible = ways(job.spec, snapshot.nodes, snapshot.fit, ())
        if not possible:
            continue
        full = Room(snapshot.nodes)
        for item in snapshot.held:
            full.take(item.placements)
        growing, plain = GrowingRoom(possible, full.copy()), full.copy()
        for item in snapshot.held:
            assert growing.has_room() == (placed(possible, plain.copy())[1] is not None)
            growing.give(item.placements)
            plain.give(item.placements)
        assert growing.has_room() == (placed(possible, plain.copy())[1] is not None)


@EFFORT
@given(trees(), jobs(), st.sampled_from([1, -1]))
def test_shares_count_many_jobs_as_they_count_each(tree: ShareTree, queue: list[Job], sign: int):
    stakes = [held_by(job, at(0), tree).stake for job in queue]
    stakes += [stake_of(job, {"cpus": job.spec.pools[0].cpus}, tree.lane_of(job)) for job in queue]
    together, apart = ShareUse(tree, {"cpus": 8}), ShareUse(tree, {"cpus": 8})
    together.take_all([stake for stake in stakes if stake is not None], sign)
    for stake in stakes:
        assert stake is not None
        apart.take(stake, sign)
    assert (together.used, together.by_user) == (apart.used, apart.by_user)
    assert all(together.rank(name) == apart.rank(name) for name in tree.shares)


@EFFORT
@given(trees(), jobs(), st.randoms(use_true_random=False))
def test_what_is_remembered_of_a_job_is_what_it_holds(tree: ShareTree, queue: list[Job], random):
    holdings = Holdings()
    for number in range(3):
        now, some = at(number), [job for job in queue if random.random() < 0.7]
        assert holdings.of(some, now, tree) == [held_by(job, now, tree) for job in some]


@EFFORT
@given(snapshots(), st.randoms(use_true_random=False))
def test_what_is_left_of_the_nodes_is_the_same_counted_bit_by_bit_and_anew(snapshot: Snapshot, random):
    """To the last digit: what is not a whole number depends on the order in which it is added up."""
    holdings, held = Holdings(), list[Reservation]()
    for item in snapshot.held:
        places = [replace(place, cpus=place.cpus * 0.1) for place in item.placements]
        if random.random() < 0.2:  # it was moved, to where others had its GPUs
            places = [replace(place, gpus=place.gpus or ("0",)) for place in places]
        held.append(replace(item, placements=tuple(places)))
    for _ in range(4):
        some = [item for item in held if random.random() < 0.6]
        some = [replace(item, ending_since=at(0)) if random.random() < 0.2 else item for item in some]
        nodes = snapshot.nodes if random.random() < 0.8 else snapshot.nodes[1:]
        kept, anew = holdings.room(nodes, some), Room(nodes)
        for item in some:
            anew.take(item.placements)
        assert (kept.cpus, kept.memory, kept.gpus) == (anew.cpus, anew.memory, anew.gpus)
        given = [(place.node, gpu) for item in some for place in item.placements for gpu in place.gpus]
        assert holdings.have_own_gpus == (len(set(given)) == len(given))

"""The simulated benchmarks in a small size: they run, and what they measure is there."""

from datetime import timedelta

from tests.benchmarks.cycling import cycles
from tests.benchmarks.replay import Replay
from tests.benchmarks.trace import machines_for, trace, tree_of


def test_cycles_over_a_full_fleet_take_time_with_shares_and_without():
    for shared in (False, True):
        assert len(cycles(60, 20, 3, shared=shared)) == 3


def test_the_same_seed_makes_the_same_trace():
    assert trace(7, 50, 1) == trace(7, 50, 1)
    assert trace(7, 50, 1) != trace(8, 50, 1)


def test_a_tree_has_twenty_shares_and_the_root():
    assert len(tree_of(40).shares) == 21


def test_every_job_of_a_replayed_trace_runs_to_its_end_and_no_work_is_counted_twice():
    items = trace(3, 150, 0.1)
    replay = Replay(items, machines_for(items, 0.1, 2.0), asked=5)
    replay.play()
    assert not replay.scheduler.running
    assert not len(replay.scheduler.waiting)
    gpus = {item.job.id: sum(p.accelerators * p.replicas for p in item.job.spec.pools) for item in items}
    needed = sum((item.length * gpus[item.job.id] for item in items), timedelta())
    assert abs(replay.used - replay.lost - needed) < timedelta(minutes=1)
    assert replay.etas

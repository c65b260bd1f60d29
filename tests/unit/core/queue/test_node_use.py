"""Who holds what of a node, and what is free."""

from dataclasses import replace

from tests.builders import a_job, a_node, a_placement, a_pool, admitted, at
from trainshed.core.jobs.job import Job
from trainshed.core.queue.fleet import Admission, Placement
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.node_use import NodeUse, PartInUse, node_states

NODE = a_node(cpus=8, memory=32 * GIB, gpus="01")


def holding(id: str, *placements: Placement) -> Job:
    job = admitted(a_job(a_pool(len(placements)), id=id, created_at=at(float(id))))
    admission = Admission(placements=placements, admitted_at=at(0))
    return replace(job, status=replace(job.status, admission=admission))


def test_what_no_job_holds_is_free_and_holders_are_named_by_replica_oldest_first():
    young = holding("2", a_placement(0, 0, cpus=1, memory=GIB))
    old = holding("1", a_placement(0, 0, cpus=2, memory=4 * GIB, gpus=("1",)), a_placement(0, 1))
    (state,) = node_states((NODE,), (young, old), {}, {("1", "workerpool0-1"): {"cpu": 0.5}})
    assert (state.free.cpus, state.free.memory, state.free_gpus) == (4, 26 * GIB, ("0",))
    assert [(item.job.id, item.task, dict(item.use)) for item in state.holdings] == [
        ("1", "workerpool0-0", {}),
        ("1", "workerpool0-1", {"cpu": 0.5}),
        ("2", "workerpool0-0", {}),
    ]


def test_a_node_that_was_made_smaller_than_what_it_runs_has_nothing_free():
    (state,) = node_states((a_node(cpus=1, memory=GIB),), (holding("1", a_placement(0, 0, cpus=4)),), {}, {})
    assert (state.free.cpus, state.free.memory) == (0, 0)


def test_a_replica_on_a_node_that_is_gone_and_a_waiting_job_hold_nothing_here():
    gone = holding("1", a_placement(0, 0, node="gone"))
    (state,) = node_states((NODE,), (gone, a_job(id="2")), {}, {})
    assert state.holdings == ()
    assert state.free.cpus == 8


def test_each_node_has_the_numbers_of_its_own_machine():
    use = NodeUse(cpus=PartInUse(1, 8))
    here, there = node_states((NODE, replace(NODE, name="other")), (), {"other": use}, {})
    assert (here.use, there.use) == (NodeUse(), use)

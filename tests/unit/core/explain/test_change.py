"""What would start a waiting job now: only what really does, the smallest of its kind, the cheapest first."""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import T0, a_holder, a_job, a_node, a_pool, at, cancelled, running, seconds
from tests.shares import a_job_of, a_share, a_tree, started
from trainshed.core.explain.change import changes
from trainshed.core.explain.explanation import Change, ChangeCost, World
from trainshed.core.explain.history import History, history_of
from trainshed.core.jobs.job import Job, JobState, Pool, Scheduling
from trainshed.core.queue.fleet import Fit, Node
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.snapshot import Reservation, Snapshot, snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs
from trainshed.data.catalogue import load_catalogue

LONG = Scheduling(timeout=seconds(10_000))


def a_world(
    *waiting: Job,
    held: tuple[Reservation, ...] = (),
    running: tuple[Job, ...] = (),
    node: Node | None = None,
    fit: Fit = Fit.SHRINK,
    history: History | None = None,
) -> World:
    return World(
        snapshot=Snapshot(nodes=(node or a_node(),), held=held, fit=fit),
        waiting=waiting,
        running=running,
        history=history or History(),
        catalogue=load_catalogue(),
        now=T0,
    )


def on(machine: str, replicas: int = 1, *, gpus: int = 0) -> Pool:
    known = load_catalogue().machines[machine]
    pool = a_pool(replicas, cpus=known.cpus, memory=known.memory, gpus=gpus)
    return replace(pool, machine_type=machine)


def told(found: tuple[Change, ...]) -> list[tuple[str, str, str]]:
    return [(c.field.removeprefix("jobSpec."), c.before, c.after) for c in found]


HALF = a_holder(cpus=4, until=at(5000))  # of the eight CPUs of the node


def test_the_most_replicas_and_the_largest_machine_that_fit_now_are_named_and_who_is_in_the_way():
    job = a_job(on("n1-standard-2", 4), scheduling=LONG)
    assert told(changes(a_world(job, held=(HALF,)), job)) == [
        ("workerPoolSpecs[0].replicaCount", "4", "2"),
        ("workerPoolSpecs[0].machineSpec.machineType", "n1-standard-2", "n1-standard-1"),
        ("cancel", "RUNNING", "CANCELLED"),
    ]


def test_a_cancel_names_the_job_to_cancel():
    job = a_job(on("n1-standard-8"), scheduling=LONG)
    *_, last = changes(a_world(job, held=(HALF,)), job)
    assert (last.field, last.job, last.toll) == ("cancel", "h", ChangeCost.OTHER)
    assert "Cancel job h 'job-h'" in last.sentence


def test_of_several_in_the_way_the_smallest_that_will_do_is_named():
    job = a_job(on("n1-standard-2"), scheduling=LONG)
    holders = (
        a_holder("large", cpus=5, until=at(5000)),
        a_holder("fitting", cpus=2, until=at(5000)),
        a_holder("small", cpus=1, until=at(5000)),
    )
    *_, last = changes(a_world(job, held=holders), job)
    assert last.job == "fitting"


def test_a_job_that_is_ending_anyway_need_not_be_cancelled():
    job = a_job(on("n1-standard-8"), scheduling=LONG)
    ending = cancelled(running(a_job(id="h")))
    found = changes(a_world(job, held=(HALF,), running=(ending,)), job)
    assert "cancel" not in [c.field for c in found]


def test_accelerators_are_given_up_one_by_one():
    job = a_job(on("n1-standard-1", gpus=4), scheduling=LONG)
    node = a_node(gpus=["0", "1", "2", "3"])
    held = (a_holder(gpus=["0"], until=at(5000)),)
    [first, _] = changes(a_world(job, held=held, node=node), job)
    assert told((first,)) == [("workerPoolSpecs[0].machineSpec.acceleratorCount", "4", "3")]


def test_without_any_free_accelerator_none_is_what_works():
    job = a_job(on("n1-standard-1", gpus=1), scheduling=LONG)
    held = (a_holder(gpus=["0"], until=at(5000)),)
    first, *_ = changes(a_world(job, held=held, node=a_node(gpus=["0"])), job)
    assert (first.field, first.after) == ("jobSpec.workerPoolSpecs[0].machineSpec.acceleratorCount", "0")
    assert "no NVIDIA_TESLA_T4" in first.sentence


def test_accelerators_that_are_part_of_the_machine_go_only_with_a_smaller_machine():
    machine = load_catalogue().machines["a2-highgpu-2g"]
    pool = replace(on("a2-highgpu-2g"), accelerator=machine.accelerator, accelerators=2)
    job = a_job(pool, scheduling=LONG)
    node = a_node(cpus=24, memory=machine.memory, gpus=["0", "1"])
    held = (a_holder(cpus=12, gpus=["0"], until=at(5000)),)
    fields = [c.field for c in changes(a_world(job, held=held, node=node), job)]
    assert "jobSpec.workerPoolSpecs[0].machineSpec.machineType" in fields
    assert not [f for f in fields if "acceleratorCount" in f]


HEAD = a_job(on("n1-standard-8"), id="0", created_at=at(-9), scheduling=LONG)


def test_a_job_that_fits_behind_one_that_does_not_may_pass_by_a_shorter_timeout():
    job = a_job(on("n1-standard-1"), scheduling=LONG)
    first, *_ = changes(a_world(HEAD, job, held=(HALF,)), job)
    assert told((first,)) == [("scheduling.timeout", "10000s", "4860s")]
    assert first.toll is ChangeCost.NOBODY


def test_a_timeout_shorter_than_its_runs_took_is_no_help():
    job = a_job(on("n1-standard-1"), scheduling=LONG)
    before = replace(running(job).status, state=JobState.SUCCEEDED, ended_at=at(4900))
    history = history_of([replace(job, status=before)])
    found = changes(a_world(HEAD, job, held=(HALF,), history=history), job)
    assert "jobSpec.scheduling.timeout" not in [c.field for c in found]


def test_a_higher_priority_and_a_cancel_of_the_first_in_the_queue_help_a_job_that_fits():
    job = a_job(on("n1-standard-1"), scheduling=replace(LONG, timeout=seconds(10_000)))
    found = {c.field: c for c in changes(a_world(HEAD, job, held=(HALF,)), job)}
    assert (found["jobSpec.scheduling.priority"].before, found["jobSpec.scheduling.priority"].after) == (
        "0",
        "1",
    )
    assert found["cancel"].job == "0"
    assert found["cancel"].before == "QUEUED"


def test_the_lowest_priority_that_will_do_is_named():
    job = a_job(on("n1-standard-1"), scheduling=LONG)
    urgent = a_job(a_pool(cpus=1), id="2", scheduling=Scheduling(timeout=seconds(60), priority=90))
    higher = replace(HEAD, spec=replace(HEAD.spec, scheduling=replace(LONG, priority=7)))
    found = {c.field: c for c in changes(a_world(urgent, higher, job, held=(HALF,)), job)}
    assert found["jobSpec.scheduling.priority"].after == "8"


def test_submitted_again_it_stands_behind_those_that_came_meanwhile():
    """Fewer replicas would fit; but who cancels and submits again is last, behind one that does not fit."""
    job = a_job(on("n1-standard-2", 4), created_at=at(-9), scheduling=LONG)
    later = a_job(on("n1-standard-8"), id="2", created_at=at(-5), scheduling=LONG)
    alone = changes(a_world(job, held=(HALF,)), job)
    followed = changes(a_world(job, later, held=(HALF,)), job)
    assert "jobSpec.workerPoolSpecs[0].replicaCount" in [c.field for c in alone]
    assert "jobSpec.workerPoolSpecs[0].replicaCount" not in [c.field for c in followed]


def test_where_one_pool_alone_is_not_enough_all_go_to_a_smaller_machine():
    job = a_job(on("n1-standard-4"), on("n1-standard-4"), scheduling=LONG)
    found = changes(a_world(job, held=(HALF,), fit=Fit.STRICT), job)
    assert ("workerPoolSpecs[*].machineSpec.machineType", "n1-standard-4", "n1-standard-2") in told(found)


def test_a_job_too_large_for_all_machines_is_told_what_would_fit():
    job = a_job(on("n1-standard-64"), scheduling=LONG)
    found = changes(a_world(job, fit=Fit.STRICT, node=a_node(cpus=8, memory=64 * GIB)), job)
    assert told(found) == [("workerPoolSpecs[0].machineSpec.machineType", "n1-standard-64", "n1-standard-8")]


def test_without_machines_nothing_helps():
    job = a_job(on("n1-standard-4", 3))
    world = replace(a_world(job), snapshot=Snapshot(nodes=(), held=()))
    assert changes(world, job) == ()


def a_shared_world(*waiting: Job) -> World:
    """Vision has all that it may have, and so language waits for its own job."""
    tree = a_tree(a_share("vision", 4, borrow=0), a_share("language", 4))
    held = [started(a_job_of("vision", "v", 4)), started(a_job_of("language", "l", 3))]
    snapshot = snapshot_of([*held, *waiting], (a_node(),), Fit.SHRINK, T0, None, tree)
    return replace(a_world(*waiting, running=tuple(held)), snapshot=snapshot)


def test_with_shares_the_changes_are_those_that_the_share_allows():
    job = a_job_of("language", "1")
    job = replace(job, spec=replace(job.spec, pools=(on("n1-standard-1", 2),)))
    assert told(changes(a_shared_world(job), job)) == [
        ("workerPoolSpecs[0].replicaCount", "2", "1"),
        ("cancel", "RUNNING", "CANCELLED"),
    ]


def test_with_shares_all_that_wait_are_put_in_order_once_however_many_changes_are_tried(
    monkeypatch: pytest.MonkeyPatch,
):
    made: list[WaitingJobs] = []

    def counted(*args: Any) -> WaitingJobs:
        made.append(WaitingJobs(*args))
        return made[-1]

    monkeypatch.setattr("trainshed.core.explain.change.WaitingJobs", counted)
    many = [a_job_of("language", f"{number:02d}", 4, created_at=at(number)) for number in range(20)]
    world = a_shared_world(*many)
    changes(world, many[10])
    [queue] = made
    assert [job.id for job in queue.in_order(())] == [job.id for job in many], "and are all in it again"

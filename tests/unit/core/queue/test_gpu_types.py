"""Types of GPUs: a job gets the type it asks for where a machine has it, and else what there is."""

from dataclasses import replace

import pytest

from tests.builders import T0, a_job, a_node, a_pool, at
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job
from trainshed.core.queue.admit import AdmissionResult, admit
from trainshed.core.queue.fleet import Fit, Node, Placement
from trainshed.core.queue.snapshot import Reservation, Snapshot

A100, T4 = "NVIDIA_TESLA_A100", "NVIDIA_TESLA_T4"


def node(name: str, kind: str = "", gpus: int = 0, **fields: object) -> Node:
    devices = tuple(map(str, range(gpus)))
    return replace(a_node(cpus=8), name=name, accelerator=kind, gpus=devices, **fields)


def job(kind: str, count: int = 1, replicas: int = 1) -> Job:
    pool = replace(a_pool(replicas), accelerator=kind, accelerators=count)
    return replace(a_job(pool), id="j")


def answer(
    job: Job, *nodes: Node, fit: Fit = Fit.STRICT, held: tuple[Reservation, ...] = ()
) -> AdmissionResult:
    [result] = admit(Snapshot(nodes=nodes, held=held, fit=fit), [job], T0)
    return result


def places(result: AdmissionResult) -> list[tuple[str, int]]:
    assert result.admission is not None, result.waiting
    return [(place.node, len(place.gpus)) for place in result.admission.placements]


SMALL, LARGE = node("a", T4, 4), node("b", A100, 2)


def test_a_job_is_placed_where_its_type_is():
    assert places(answer(job(A100), SMALL, LARGE)) == [("b", 1)]
    assert places(answer(job(T4), LARGE, SMALL)) == [("a", 1)]


def test_a_type_that_no_machine_has_is_any_gpu():
    assert places(answer(job("NVIDIA_H200", 3), SMALL, LARGE)) == [("a", 3)]


def test_a_job_waits_for_its_type_although_others_are_free_and_says_so():
    place = Placement(pool=0, index=0, node="b", host="b", cpus=1, memory=0, gpus=("0", "1"))
    taken = Reservation(job="1", display_name="one", placements=(place,), until=at(60))
    waiting = answer(job(A100), SMALL, LARGE, held=(taken,)).waiting
    assert waiting is not None and waiting.reason is Reason.WAITS_FOR_CAPACITY
    assert f"1 {A100}; free are" in waiting.message and f"0 {A100} of" in waiting.message
    assert places(answer(job(T4), SMALL, LARGE, held=(taken,))) == [("a", 1)]


def test_more_of_a_type_than_there_is_does_not_fit_or_is_cut_to_that_type():
    refused = answer(job(A100, count=4), SMALL, LARGE).waiting
    assert refused is not None and refused.reason is Reason.TOO_LARGE
    assert f"4 {A100}; all machines together have" in refused.message and f"2 {A100}." in refused.message
    cut = answer(job(A100, count=4), SMALL, LARGE, fit=Fit.SHRINK)
    assert places(cut) == [("b", 2)]


@pytest.mark.parametrize("fit", list(Fit))
def test_a_machine_that_is_kept_for_gpus_takes_no_replica_without(fit: Fit):
    kept = node("a", T4, 4, only_gpus=True)
    assert places(answer(job("", count=0), kept, node("c"), fit=fit)) == [("c", 0)]
    assert places(answer(job(T4), kept, node("c"), fit=fit)) == [("a", 1)]

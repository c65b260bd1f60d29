"""One scheduling cycle: who gets in, who passes whom, and what everybody else is told."""

from collections import Counter

import pytest

from tests.builders import T0, a_holder, a_job, a_node, a_placement, a_pool, admitted, at, running, seconds
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job, Scheduling
from trainshed.core.queue.admit import MOST_BEHIND, AdmissionResult, admit
from trainshed.core.queue.fleet import Admission, Fit, Node
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.place import Room
from trainshed.core.queue.snapshot import Reservation, Snapshot, held_by


def a_waiting(id: str, cpus: float = 1, *, age: float = 0, priority: int = 0, timeout: float = 3600) -> Job:
    return a_job(
        a_pool(cpus=cpus),
        id=id,
        created_at=at(-age),
        scheduling=Scheduling(priority=priority, timeout=seconds(timeout)),
    )


def answers(
    waiting: list[Job],
    *,
    nodes: tuple[Node, ...] = (a_node(),),
    held: tuple[Reservation, ...] = (),
    fit: Fit = Fit.SHRINK,
) -> dict[str, AdmissionResult]:
    return {v.job.id: v for v in admit(Snapshot(nodes=nodes, held=held, fit=fit), waiting, T0)}


def let_in(verdicts: dict[str, AdmissionResult]) -> list[str]:
    return [id for id, v in verdicts.items() if v.admission is not None]


def why(verdict: AdmissionResult) -> Waiting:
    assert verdict.waiting is not None
    return verdict.waiting


def test_a_job_that_fits_is_admitted_with_a_place_for_every_replica():
    job = a_job(a_pool(), a_pool(2))
    assert answers([job])["1"].admission == Admission(
        placements=(a_placement(0, 0), a_placement(1, 0), a_placement(1, 1)), admitted_at=T0
    )


def test_a_gang_is_admitted_whole_or_not_at_all():
    verdict = answers([a_job(a_pool(3, cpus=2))], held=(a_holder(cpus=3, until=at(60)),))["1"]
    assert verdict.admission is None
    assert why(verdict).reason is Reason.WAITS_FOR_CAPACITY


def test_a_job_that_waits_for_a_gpu_is_told_that_none_is_free():
    job = a_job(a_pool(gpus=1))
    held = (a_holder(gpus=["0"], until=at(60)),)
    message = why(answers([job], nodes=(a_node(gpus=["0"]),), held=held)["1"]).message
    assert "free are 7 CPUs, 31.0 GiB, 0 GPUs of 8 CPUs, 32.0 GiB, 1 GPU" in message


def test_the_older_goes_first():
    verdicts = answers([a_waiting("young", 8, age=1), a_waiting("old", 8, age=2)])
    assert let_in(verdicts) == ["old"]


def test_priority_goes_before_age():
    verdicts = answers([a_waiting("old", 8, age=2), a_waiting("urgent", 8, priority=1)])
    assert let_in(verdicts) == ["urgent"]


def test_of_two_jobs_of_one_moment_the_smaller_id_goes_first():
    assert let_in(answers([a_waiting("b", 8), a_waiting("a", 8)])) == ["a"]


def test_a_job_for_which_there_is_no_room_says_who_holds_it_with_numbers():
    held = tuple(a_holder(f"h{n}", cpus=1.5, until=at(60 * (n + 1))) for n in range(4))
    waiting = why(answers([a_waiting("1", 4)], held=held)["1"])
    assert waiting == Waiting(
        reason=Reason.WAITS_FOR_CAPACITY,
        message="Needs 4 CPUs, 1.0 GiB; free are 2 CPUs, 28.0 GiB of 8 CPUs, 32.0 GiB; "
        "held by h0 'job-h0', h1 'job-h1', h2 'job-h2' and 1 more.",
        remedy="It starts when enough of these end, by 2026-05-01 12:02:00 UTC at the latest; "
        "cancel one, or ask for at most what is free.",
    )


def test_a_smaller_job_passes_the_head_when_it_is_over_in_time():
    held = (a_holder(cpus=6, until=at(600)),)
    verdicts = answers([a_waiting("head", 8, age=9), a_waiting("short", 2, timeout=600)], held=held)
    assert let_in(verdicts) == ["short"]


def test_a_smaller_job_that_would_delay_the_head_does_not_pass():
    held = (a_holder(cpus=6, until=at(600)),)
    verdicts = answers([a_waiting("head", 8, age=9), a_waiting("long", 2, timeout=601)], held=held)
    assert let_in(verdicts) == []
    assert why(verdicts["long"]) == Waiting(
        reason=Reason.WAITS_BEHIND_OTHERS,
        message="Needs 2 CPUs, 1.0 GiB; free are 2 CPUs, 31.0 GiB; "
        "first in the queue is job head 'job-head', which needs 8 CPUs, 1.0 GiB.",
        remedy="It starts after that job, or before it where that delays nobody: ask for less, "
        "or set a shorter scheduling.timeout or a higher scheduling.priority.",
    )


def test_a_smaller_job_passes_however_long_it_takes_where_the_head_does_not_need_its_room():
    held = (a_holder(cpus=6, until=at(600)),)
    verdicts = answers([a_waiting("head", 6, age=9), a_waiting("long", 2, timeout=10**6)], held=held)
    assert let_in(verdicts) == ["long"]


def test_several_small_jobs_do_not_delay_the_head_together():
    held = (a_holder(cpus=4, until=at(600)),)
    small = [a_waiting(f"s{n}", 2, timeout=10**6) for n in range(2)]
    verdicts = answers([a_waiting("head", 6, age=9), *small], held=held)
    assert let_in(verdicts) == ["s0"]


def test_a_job_larger_than_the_machine_gets_all_there_is_and_is_told_what_was_cut():
    job = a_job(a_pool(cpus=16, memory=64 * GIB, gpus=2))
    verdict = answers([job], nodes=(a_node(gpus=["0"]),))["1"]
    assert verdict.admission == Admission(
        placements=(a_placement(0, 0, cpus=8, memory=32 * GIB, gpus=("0",)),),
        admitted_at=T0,
        cuts=(
            "CPUs: asked 16, given 8",
            "memory: asked 64.0 GiB, given 32.0 GiB",
            "accelerators (NVIDIA_TESLA_T4): asked 2, given 1",
        ),
    )


def test_a_shrunk_job_waits_for_all_there_is_and_says_what_it_will_get():
    verdict = answers([a_waiting("1", 16)], held=(a_holder(cpus=1, until=at(60)),))["1"]
    assert why(verdict).reason is Reason.WAITS_FOR_CAPACITY
    assert why(verdict).message.startswith("Needs 8 CPUs")


def test_a_strict_job_that_is_too_large_waits_with_the_numbers():
    waiting = why(answers([a_job(a_pool(cpus=16, gpus=1))], fit=Fit.STRICT)["1"])
    assert waiting == Waiting(
        reason=Reason.TOO_LARGE,
        message="Needs 16 CPUs, 1.0 GiB, 1 GPU; all machines together have 8 CPUs, 32.0 GiB.",
        remedy="Ask for less, add a machine, or start the server with --fit shrink.",
    )


def test_a_strict_job_that_is_too_large_does_not_block_the_others():
    verdicts = answers([a_waiting("huge", 16, age=9), a_waiting("small", 8)], fit=Fit.STRICT)
    assert let_in(verdicts) == ["small"]


def test_without_machines_every_job_says_so():
    waiting = why(answers([a_waiting("1")], nodes=())["1"])
    assert (waiting.reason, waiting.remedy) == (Reason.NO_NODES, "Connect a machine.")


def test_a_gpu_held_by_another_job_is_not_given_again():
    held = (a_holder(gpus=["0"], until=at(60)),)
    admission = answers([a_job(a_pool(gpus=1))], nodes=(a_node(gpus=["0", "1"]),), held=held)["1"].admission
    assert admission is not None
    assert admission.placements[0].gpus == ("1",)


def test_a_holder_that_should_be_over_already_delays_nobody_into_the_past():
    held = (a_holder(cpus=8, until=at(-60)),)
    verdicts = answers([a_waiting("head", 8, age=9)], held=held)
    assert "by 2026-05-01 12:00:00 UTC" in why(verdicts["head"]).remedy


def test_a_job_holds_its_places_until_its_timeout_from_when_it_started():
    job = running(a_job(scheduling=Scheduling(timeout=seconds(100))))
    admission = job.status.admission
    assert admission is not None
    assert held_by(job, at(50)) == Reservation(
        job="1", display_name="job-1", project=job.project, placements=admission.placements, until=at(100)
    )


def test_a_job_still_starting_holds_its_places_from_when_it_was_admitted():
    assert held_by(admitted(a_job(scheduling=Scheduling(timeout=seconds(100)))), at(50)).until == at(100)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the costly step of a cycle, placing a gang, is taken."""
    calls: Counter[str] = Counter()
    place = Room.place

    def counting(self: Room, wanted: object, within: frozenset[str] | None = None) -> object:
        calls["place"] += 1
        return place(self, wanted, within)  # type: ignore[arg-type]

    monkeypatch.setattr(Room, "place", counting)
    return calls


def cost_of(waiting: int, calls: Counter[str], fit: Fit = Fit.SHRINK, cpus: float = 8) -> int:
    calls.clear()
    held = tuple(a_holder(f"h{n}", cpus=0.5, until=at(60 + n)) for n in range(8))
    jobs = [a_waiting(f"{n:06d}", cpus, age=waiting - n) for n in range(waiting)]
    verdicts = answers(jobs, held=held, fit=fit)
    assert len(verdicts) == waiting
    return calls["place"]


def test_ten_thousand_waiting_jobs_cost_no_more_than_a_thousand(monkeypatch: pytest.MonkeyPatch):
    calls = counted(monkeypatch)
    assert cost_of(10_000, calls) == cost_of(1_000, calls)


def test_ten_thousand_jobs_that_are_too_large_cost_one_look_each(monkeypatch: pytest.MonkeyPatch):
    assert cost_of(10_000, counted(monkeypatch), Fit.STRICT, cpus=99) <= 10_000


def test_a_job_far_back_in_the_queue_is_told_so():
    jobs = [
        a_waiting(f"{n:06d}", 8, age=1000 - n, timeout=3600 + n) for n in range(MOST_BEHIND + 2)
    ]  # no two alike: the head, as many as are tried behind it, and one more
    verdicts = list(answers(jobs, held=(a_holder(until=at(60)),)).values())
    told = "More than 200 jobs of other sizes are before it; first in the queue is job 000000"
    assert told not in why(verdicts[-2]).message
    assert told in why(verdicts[-1]).message


def test_a_small_job_passes_however_many_equal_ones_are_before_it():
    jobs = [a_waiting(f"{n:06d}", 8, age=5000 - n) for n in range(3000)]
    verdicts = answers([*jobs, a_waiting("small", 1, timeout=30)], held=(a_holder(until=at(60)),))
    assert let_in(verdicts) == ["small"]

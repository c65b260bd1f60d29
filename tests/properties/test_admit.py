"""admit over random fleets and queues: never too much, never half, never unfair, never without a reason."""

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.builders import EMPTY, T0, a_job, a_node, a_pool, at, seconds
from tests.properties.effort import PROPERTY
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, Pool, Scheduling, planned_replicas
from trainshed.core.queue.admit import AdmissionResult, admit
from trainshed.core.queue.fleet import Fit, Node, Placement
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.place import Room, fitted, needs
from trainshed.core.queue.snapshot import Reservation, Snapshot

TOLERANCE = 1e-6
EFFORT = settings(PROPERTY, max_examples=80)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Node, ...]:
    return tuple(
        a_node(
            f"node{number}",
            cpus=draw(st.integers(1, 8)),
            memory=draw(st.integers(1, 16)) * GIB,
            gpus=[f"{number}-{gpu}" for gpu in range(draw(st.integers(0, 3)))],
        )
        for number in range(draw(st.integers(0, 3)))
    )


pools: st.SearchStrategy[Pool] = st.one_of(
    st.builds(
        a_pool,
        st.integers(1, 3),
        cpus=st.sampled_from([0.5, 1, 2, 4, 12]),
        memory=st.sampled_from([GIB, 4 * GIB, 20 * GIB]),
        gpus=st.sampled_from([0, 0, 0, 1, 2, 8]),
    ),
    st.just(EMPTY),
)


@st.composite
def queues(draw: st.DrawFn) -> list[Job]:
    return [
        a_job(
            a_pool(cpus=draw(st.sampled_from([0.5, 1, 2, 4]))),
            *draw(st.lists(pools, max_size=2)),
            id=f"{number:03d}",
            created_at=at(-draw(st.integers(0, 3))),
            scheduling=Scheduling(
                priority=draw(st.integers(0, 1)), timeout=seconds(draw(st.sampled_from([10, 60, 600])))
            ),
        )
        for number in range(draw(st.integers(0, 7)))
    ]


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A fleet on which some jobs, admitted by earlier cycles, hold places."""
    nodes, fit = draw(fleets()), draw(st.sampled_from(list(Fit)))
    earlier = [replace(job, id=f"held-{job.id}") for job in draw(queues())]
    held = tuple(
        Reservation(
            job=verdict.job.id,
            display_name=verdict.job.display_name,
            placements=verdict.admission.placements,
            until=at(draw(st.integers(-5, 300))),
        )
        for verdict in admit(Snapshot(nodes=nodes, held=(), fit=fit), earlier, T0)
        if verdict.admission is not None
    )
    return Snapshot(nodes=nodes, held=held[: draw(st.integers(0, len(held)))], fit=fit)


def given_places(snapshot: Snapshot, verdicts: tuple[AdmissionResult, ...]) -> list[Placement]:
    places = [p for held in snapshot.held for p in held.placements]
    return places + [p for v in verdicts if v.admission for p in v.admission.placements]


@EFFORT
@given(snapshots(), queues())
def test_no_node_is_ever_given_more_than_it_has_and_no_gpu_twice(snapshot: Snapshot, queue: list[Job]):
    by_node: dict[str, list[Placement]] = defaultdict(list)
    for place in given_places(snapshot, admit(snapshot, queue, T0)):
        by_node[place.node].append(place)
    for node in snapshot.nodes:
        places = by_node.pop(node.name, [])
        assert sum(p.cpus for p in places) <= node.cpus + TOLERANCE
        assert sum(p.memory for p in places) <= node.memory
        gpus = [gpu for p in places for gpu in p.gpus]
        assert len(gpus) == len(set(gpus))
        assert set(gpus) <= set(node.gpus)
    assert not by_node, "a place on a node that does not exist"


@EFFORT
@given(snapshots(), queues())
def test_an_admission_has_exactly_one_place_for_every_replica(snapshot: Snapshot, queue: list[Job]):
    for verdict in admit(snapshot, queue, T0):
        if verdict.admission is not None:
            places = [(p.pool, p.index) for p in verdict.admission.placements]
            assert places == [(r.pool, r.index) for r in planned_replicas(verdict.job.spec)]


@EFFORT
@given(snapshots(), queues(), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_the_question(
    snapshot: Snapshot, queue: list[Job], random
):
    shuffled = list(queue)
    random.shuffle(shuffled)
    assert admit(snapshot, queue, T0) == admit(snapshot, shuffled, T0)


@EFFORT
@given(snapshots(), queues())
def test_every_job_is_either_let_in_or_told_why_not_and_what_would_change_it(
    snapshot: Snapshot, queue: list[Job]
):
    verdicts = admit(snapshot, queue, T0)
    assert sorted(v.job.id for v in verdicts) == sorted(j.id for j in queue)
    for verdict in verdicts:
        assert (verdict.admission is None) is not (verdict.waiting is None)
        if verdict.waiting is not None:
            assert verdict.waiting.message.startswith(("Needs ", "More than "))
            assert verdict.waiting.remedy


@EFFORT
@given(snapshots(), queues())
def test_what_is_given_is_never_more_than_asked_and_less_only_with_a_sentence(
    snapshot: Snapshot, queue: list[Job]
):
    for verdict in admit(snapshot, queue, T0):
        if verdict.admission is None:
            continue
        less = False
        for need, place in zip(needs(verdict.job.spec), verdict.admission.placements, strict=True):
            asked, got = (need.cpus, need.memory, need.gpus), (place.cpus, place.memory, len(place.gpus))
            assert all(g <= a for g, a in zip(got, asked, strict=True))
            less = less or got != asked
        assert less == bool(verdict.admission.cuts)
        assert not (less and snapshot.fit is Fit.STRICT)


@EFFORT
@given(fleets(), queues())
def test_a_job_cut_to_fit_does_fit_the_empty_fleet(nodes: tuple[Node, ...], queue: list[Job]):
    assume(nodes)
    for job in queue:
        fit = fitted(job.spec, nodes, Fit.SHRINK)
        assert fit is not None
        assert Room(nodes).place(fit[0]) is not None


@EFFORT
@given(snapshots(), queues())
def test_alone_on_free_machines_a_job_is_let_in_or_too_large(snapshot: Snapshot, queue: list[Job]):
    for job in queue:
        [verdict] = admit(replace(snapshot, held=()), [job], T0)
        if verdict.waiting is not None:
            assert verdict.waiting.reason in (Reason.TOO_LARGE, Reason.NO_NODES)


def starts_at(job: Job, snapshot: Snapshot, running: list[Reservation]) -> datetime | None:
    """By simulation: give back what ends, in order, until the job fits. What is overdue ends in a moment."""
    fit = fitted(job.spec, snapshot.nodes, snapshot.fit)
    assert fit is not None
    for now in sorted({T0, *(max(h.until, T0 + timedelta.resolution) for h in running)}):
        room = Room(snapshot.nodes)
        for held in running:
            if held.until > now or (now == T0 and held in snapshot.held):
                room.take(held.placements)
        if room.place(fit[0]) is not None:
            return now
    return None


@EFFORT
@given(snapshots(), queues())
def test_the_head_is_never_delayed_by_who_passes_it(snapshot: Snapshot, queue: list[Job]):
    verdicts = admit(snapshot, queue, T0)
    heads = [n for n, v in enumerate(verdicts) if v.waiting and v.waiting.reason is Reason.WAITS_FOR_CAPACITY]
    assert len(heads) <= 1
    if not heads:
        return
    head = heads[0]

    def held(some: tuple[AdmissionResult, ...]) -> list[Reservation]:
        return [
            Reservation(
                job=v.job.id,
                display_name="",
                placements=v.admission.placements,
                until=T0 + v.job.spec.scheduling.timeout,
            )
            for v in some
            if v.admission
        ]

    before = [*snapshot.held, *held(verdicts[:head])]
    without = starts_at(verdicts[head].job, snapshot, before)
    with_passers = starts_at(verdicts[head].job, snapshot, [*before, *held(verdicts[head:])])
    assert without is not None
    assert with_passers is not None
    assert with_passers <= without


@EFFORT
@given(snapshots(), queues())
def test_nobody_is_let_in_before_a_job_of_higher_rank_that_fits_now(snapshot: Snapshot, queue: list[Job]):
    """Only the head and those behind it wait: the ones before it are in, or too large for these machines."""
    verdicts = admit(snapshot, queue, T0)
    for verdict in verdicts:
        if verdict.waiting is None or verdict.waiting.reason in (Reason.TOO_LARGE, Reason.NO_NODES):
            continue
        assert verdict.waiting.reason is Reason.WAITS_FOR_CAPACITY
        break

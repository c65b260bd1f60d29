"""Explanations over random worlds: what they name is true, and there always is one."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import T0, a_job, a_node, a_pool, at, running, seconds
from tests.properties.effort import PROPERTY
from tests.properties.job_plans import Step, jobs, lives, play
from tests.properties.job_world import World as Life
from tests.properties.test_admit import queues, snapshots
from trainshed.core.event import Reason
from trainshed.core.explain.explanation import Change, Ground, World
from trainshed.core.explain.history import History, history_of
from trainshed.core.explain.why import explain
from trainshed.core.jobs.job import Job, JobSpec, JobState, Pool, Scheduling
from trainshed.core.queue.admit import admit
from trainshed.core.queue.fleet import Fit, Placement
from trainshed.core.queue.machine import GIB
from trainshed.core.queue.shape import order
from trainshed.core.queue.snapshot import Reservation, Snapshot
from trainshed.data.catalogue import load_catalogue

EFFORT = settings(PROPERTY, max_examples=80)
CATALOGUE = load_catalogue()
KNOWN_MACHINES = ("n1-standard-1", "n1-standard-2", "n1-standard-4", "n1-highcpu-8", "a2-highgpu-2g")


def an_ended(job: Job, length: float, state: JobState = JobState.SUCCEEDED) -> Job:
    """The same job, once, before: it took so many seconds."""
    status = replace(running(job).status, state=state, started_at=at(-9999), ended_at=at(-9999 + length))
    return replace(job, id=f"{job.id}-before-{length}", status=status)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    snapshot: Snapshot = draw(snapshots())
    waiting = tuple(_on_a_machine(job, draw(st.sampled_from(KNOWN_MACHINES))) for job in draw(queues()))
    timeout = seconds(300)
    holders = tuple(
        replace(job, status=replace(job.status, started_at=held.until - timeout))
        for held in snapshot.held
        if draw(st.booleans())
        for job in [running(a_job(id=held.job, scheduling=Scheduling(timeout=timeout)))]
    )
    lengths = st.lists(st.sampled_from([0, 1, 20, 100, 290, 5000]), max_size=4)
    ended = [an_ended(job, length) for job in (*waiting, *holders) for length in draw(lengths)]
    return World(
        snapshot=snapshot,
        waiting=waiting,
        running=holders,
        history=history_of(ended),
        catalogue=CATALOGUE,
        now=T0,
    )


@st.composite
def busy_worlds(draw: st.DrawFn) -> World:
    """One machine, nearly full, and a few jobs that would fit if only: where there is something to change."""
    names = ("n1-standard-1", "n1-standard-2", "n1-standard-4", "n1-highcpu-2")
    node = a_node(cpus=8, memory=30 * GIB, gpus=["0", "1", "2", "3"])
    free = ["0", "1", "2", "3"]
    held: list[Reservation] = []
    holders: list[Job] = []
    for number in range(draw(st.integers(1, 3))):
        count = draw(st.integers(0, min(2, len(free))))
        gpus, free = tuple(free[:count]), free[count:]
        cpus = draw(st.sampled_from([1, 1, 2]))
        place = Placement(pool=0, index=0, node="n", host="", cpus=cpus, memory=8 * GIB, gpus=gpus)
        until = at(draw(st.sampled_from([5, 100, 4000, 100_000])))
        job = running(a_job(id=f"held-{number}"))
        held.append(Reservation(job=job.id, display_name=job.display_name, placements=(place,), until=until))
        holders.append(replace(job, status=replace(job.status, started_at=until - timedelta(days=7))))
    waiting: list[Job] = []
    for number in range(draw(st.integers(1, 4))):
        pools = [
            a_pool(draw(st.integers(1, 4)), gpus=draw(st.sampled_from([0, 0, 1, 3])))
            for _ in range(draw(st.integers(1, 2)))
        ]
        plan = Scheduling(
            priority=draw(st.sampled_from([0, 0, 2])),
            timeout=seconds(draw(st.sampled_from([60, 5000, 700_000]))),
        )
        job = a_job(*pools, id=f"{number:03d}", created_at=at(-9 + number), scheduling=plan)
        waiting.append(_on_a_machine(job, draw(st.sampled_from(names))))
    lengths = st.lists(st.sampled_from([1, 3000, 999_999]), max_size=3)
    ended = [an_ended(job, length) for job in (*waiting, *holders) for length in draw(lengths)]
    return World(
        snapshot=Snapshot(nodes=(node,), held=tuple(held), fit=draw(st.sampled_from(list(Fit)))),
        waiting=tuple(waiting),
        running=tuple(holders),
        history=history_of(ended),
        catalogue=CATALOGUE,
        now=T0,
    )


all_worlds = st.one_of(worlds(), busy_worlds())


def _on_a_machine(job: Job, name: str) -> Job:
    """The first pool as the wire makes it, so that there are smaller machines of the family."""
    machine = CATALOGUE.machines[name]
    first = replace(job.spec.pools[0], machine_type=name, cpus=machine.cpus, memory=machine.memory)
    if machine.accelerators:
        first = replace(first, accelerator=machine.accelerator, accelerators=machine.accelerators)
    return replace(job, spec=replace(job.spec, pools=(first, *job.spec.pools[1:])))


def applied(change: Change, world: World, job: Job) -> tuple[Snapshot, list[Job], str]:
    """The world after a person has done what the change says."""
    if change.field == "cancel":
        held = tuple(h for h in world.snapshot.held if h.job != change.job)
        waiting = [j for j in world.waiting if j.id != change.job]
        return replace(world.snapshot, held=held), waiting, job.id
    others = [j for j in world.waiting if j.id != job.id]
    again = replace(job, id="~again", spec=changed(job.spec, change), created_at=world.now)
    return world.snapshot, [*others, again], again.id


def changed(spec: JobSpec, change: Change) -> JobSpec:
    if match := re.fullmatch(r"jobSpec\.scheduling\.(\w+)", change.field):
        value = int(change.after) if match[1] == "priority" else seconds(float(change.after[:-1]))
        return replace(spec, scheduling=replace(spec.scheduling, **{match[1]: value}))
    match = re.fullmatch(r"jobSpec\.workerPoolSpecs\[(\d+|\*)\]\.(?:machineSpec\.)?(\w+)", change.field)
    assert match
    which = [n for n in range(len(spec.pools)) if match[1] in ("*", str(n)) and not spec.pools[n].is_empty]
    pools = [_set(p, match[2], change.after) if n in which else p for n, p in enumerate(spec.pools)]
    return replace(spec, pools=tuple(pools))


def _set(pool: Pool, field: str, value: str) -> Pool:
    if field == "replicaCount":
        return replace(pool, replicas=int(value))
    if field == "acceleratorCount":
        return replace(pool, accelerators=int(value))
    assert field == "machineType"
    machine = CATALOGUE.machines[value]
    gpus = {"accelerators": machine.accelerators} if machine.accelerators else {}
    return replace(pool, machine_type=value, cpus=machine.cpus, memory=machine.memory, **gpus)


@EFFORT
@given(all_worlds)
def test_every_change_it_names_does_start_the_job(world: World):
    for job in world.waiting:
        for change in explain(world, job).changes:
            snapshot, waiting, mine = applied(change, world, job)
            verdicts = {v.job.id: v for v in admit(snapshot, waiting, world.now)}
            assert verdicts[mine].admission is not None, change


@EFFORT
@given(all_worlds)
def test_a_job_is_said_to_start_now_exactly_if_the_scheduler_would_admit_it(world: World):
    verdicts = {v.job.id: v for v in admit(world.snapshot, world.waiting, world.now)}
    for job in world.waiting:
        told, verdict = explain(world, job), verdicts[job.id]
        assert told.starts_now == (verdict.admission is not None)
        assert not (told.starts_now and told.changes)
        if verdict.waiting is not None:
            assert told.ground.reason is verdict.waiting.reason
            assert told.ground.message == verdict.waiting.message


@EFFORT
@given(all_worlds)
def test_the_place_in_the_queue_counts_who_goes_before(world: World):
    for job in world.waiting:
        told = explain(world, job)
        assert told.position == 1 + sum(order(other) < order(job) for other in world.waiting)
        assert told.queue == len(world.waiting)


@EFFORT
@given(all_worlds)
def test_a_start_that_is_foreseen_is_bounded_in_order_and_never_before_now(world: World):
    for job in world.waiting:
        told = explain(world, job)
        too_large = told.ground.reason in (Reason.TOO_LARGE, Reason.NO_NODES)
        assert (told.eta is None) == too_large
        if told.eta is None:
            continue
        assert told.eta.latest is not None
        between = told.eta.between or (told.eta.earliest, told.eta.latest)
        likely = told.eta.likely or between[0]
        assert world.now <= told.eta.earliest <= between[0] <= likely <= between[1] <= told.eta.latest
        assert told.eta.basis
        if told.starts_now:
            assert [told.eta.earliest, told.eta.likely, told.eta.latest] == [world.now] * 3


@EFFORT
@given(all_worlds)
def test_changes_come_the_cheapest_for_others_first_and_then_the_smallest(world: World):
    tolls = ["NOBODY", "ITSELF", "QUEUE", "OTHER"]
    for job in world.waiting:
        costs = [(tolls.index(c.toll), c.loss) for c in explain(world, job).changes]
        assert costs == sorted(costs)
        assert all(0 <= loss <= 1 for _, loss in costs)


@EFFORT
@given(all_worlds)
def test_who_asks_before_submitting_is_told_what_he_would_be_told_after(world: World):
    job = a_job(a_pool(2), id="~new", created_at=world.now)
    before = explain(world, job)
    after = explain(replace(world, waiting=(*world.waiting, job)), job)
    assert before == after
    assert before.queue == len(world.waiting) + 1


@EFFORT
@given(
    st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(1, 500), max_size=3)), min_size=1, max_size=4),
    st.integers(1, 16),
    st.integers(0, 400),
)
def test_where_such_jobs_took_longer_the_first_in_the_queue_starts_no_earlier(
    holders: list[tuple[int, list[int]]], cpus: int, more: int
):
    """On one node, where what is free is one number: elsewhere a shorter job may stand in the way sooner."""

    def bounds(extra: float) -> list[datetime]:
        world = crowded(holders, extra)
        job = a_job(a_pool(cpus=cpus, memory=0), id="~me")
        eta = explain(world, job).eta
        assert eta is not None
        assert eta.latest is not None
        return [eta.earliest, *(eta.between or (eta.latest, eta.latest)), eta.latest]

    assert all(sooner <= later for sooner, later in zip(bounds(0), bounds(more), strict=True))


def crowded(holders: list[tuple[int, list[int]]], extra: float) -> World:
    timeout = seconds(1000)
    found: list[Job] = []
    held: list[Reservation] = []
    ended: list[Job] = []
    for number, (cpus, lengths) in enumerate(holders):
        job = running(a_job(id=f"h{number}", scheduling=Scheduling(timeout=timeout)))
        place = Placement(pool=0, index=0, node="n", host="", cpus=cpus, memory=0)
        found.append(job)
        held.append(
            Reservation(job=job.id, display_name=job.display_name, placements=(place,), until=T0 + timeout)
        )
        ended += [an_ended(job, length + extra) for length in lengths]
    nodes = (a_node(cpus=16, memory=16 * GIB),)
    return World(
        snapshot=Snapshot(nodes=nodes, held=tuple(held)),
        waiting=(),
        running=tuple(found),
        history=history_of(ended),
        catalogue=CATALOGUE,
        now=T0,
    )


def sentences(ground: Ground) -> list[str]:
    return [ground.message, *(text for part in ground.grounds for text in sentences(part))]


@EFFORT
@given(jobs(), lives())
def test_every_moment_of_every_life_has_an_explanation_in_sentences(job: Job, life: list[Step]):
    world = Life(job)
    for step in life:
        play(world, step)
        seen = World(
            snapshot=Snapshot(nodes=(a_node(),), held=()),
            waiting=(),
            running=(),
            history=History(),
            catalogue=CATALOGUE,
            now=world.now + timedelta(seconds=1),
        )
        told = explain(seen, world.job)
        assert told.state is world.job.status.state
        assert all(text.endswith(".") for text in sentences(told.ground))
        assert (told.position is None) == (told.state is not JobState.QUEUED)

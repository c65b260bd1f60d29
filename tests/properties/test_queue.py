"""The kept queue against a full pass: whatever comes and goes, a cycle decides as if it read all anew."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builders import T0, a_job, a_node, a_pool, at, cancelled, seconds
from tests.properties.effort import PROPERTY
from tests.properties.test_admit import fleets, queues, snapshots
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, simulate
from trainshed.core.jobs.job import Job, JobState, Scheduling
from trainshed.core.queue.admit import Cycle, admit
from trainshed.core.queue.fleet import Fit, Node, Placement
from trainshed.core.queue.place import Room, fitted
from trainshed.core.queue.shape import order
from trainshed.core.queue.snapshot import Reservation, Snapshot, is_waiting, snapshot_of
from trainshed.core.queue.waiting_jobs import WaitingJobs
from trainshed.testing.backend import FakeMachine

EFFORT = settings(PROPERTY, max_examples=80)
MADE = "trainshed/made"

steps = st.one_of(
    st.tuples(
        st.just("submit"),
        st.sampled_from([0.5, 1, 2, 4, 12]),
        st.sampled_from([10, 60, 600]),
        st.integers(0, 1),
        st.sampled_from(["", "", MADE]),
    ),
    st.tuples(st.sampled_from(["cancel", "finish", "relabel"]), st.integers(0, 9)),
    st.tuples(st.just("machines"), fleets()),
    st.tuples(st.sampled_from(["make", "unmake", "nothing"])),
)


class Play:
    """A scheduler over the fakes, with a loop over jobs that stands still: a test says what happens."""

    def __init__(self, nodes: tuple[Node, ...], fit: Fit) -> None:
        self.machine = FakeMachine(clock=SteppedClock(), nodes=nodes)
        self.engine = Engine(self.machine, fit=fit)
        self.engine.scheduler.hint_job = lambda _: None
        self.engine.scheduler.hint = lambda: None
        self.machine.runtimes.unmade.add(MADE)
        self.count = 0

    async def take(self, step: tuple[Any, ...]) -> None:
        store = self.engine.store
        active = sorted(await store.active(), key=lambda job: job.id)
        match step:
            case ("submit", cpus, timeout, priority, image):
                pool = a_pool(cpus=cpus)
                scheduling = Scheduling(priority=priority, timeout=seconds(timeout))
                self.count += 1
                job = a_job(
                    replace(pool, image=image or pool.image),
                    id=f"{self.count:03d}",
                    created_at=at(-self.count % 3),
                    scheduling=scheduling,
                )
                await store.insert(job, ())
            case ("cancel" | "finish" | "relabel" as what, number) if active:
                job = active[number % len(active)]
                if what == "relabel":
                    await store.relabel(job, {"a": str(number)})
                elif what == "finish":
                    await store.write(job, replace(job.status, state=JobState.SUCCEEDED))
                else:
                    await store.write(job, cancelled(job).status)
            case ("machines", nodes):
                self.machine.nodes = nodes
            case ("make",):
                self.machine.runtimes.make(MADE)
            case ("unmake",):
                self.machine.runtimes.unmade.add(MADE)
            case _:
                pass

    def is_ready(self, job: Job) -> bool:
        return self.engine.backend.prepare(job.spec).is_ready


SMALL = ("submit", 0.5, 10, 0, "")
LONG = ("submit", 0.5, 600, 0, "")
TWO_FIT = ("machines", (Node(name="node0", host="10.0.0.1", cpus=1, memory=2 << 30),))


@EFFORT
@example(nodes=(), fit=Fit.SHRINK, plan=[SMALL, SMALL, SMALL, SMALL, LONG, TWO_FIT, SMALL])
@given(fleets(), st.sampled_from(list(Fit)), st.lists(steps, max_size=25))
def test_a_cycle_over_the_kept_queue_decides_as_a_pass_over_all_jobs(
    nodes: tuple[Node, ...], fit: Fit, plan: list[tuple[Any, ...]]
):
    async def play() -> None:
        shed = Play(nodes, fit)
        scheduler, store = shed.engine.scheduler, shed.engine.store
        for step in plan:
            await shed.take(step)
            active = await store.active()
            waiting = [job for job in active if is_waiting(job) and shed.is_ready(job)]
            now = shed.machine.clock.now()
            expected = admit(snapshot_of(active, shed.machine.nodes, fit, now), waiting, now)
            await scheduler.cycle()
            let_in = {v.job.id for v in expected if v.admission is not None}
            for job in await store.active():
                if is_waiting(job):
                    assert job.id not in let_in
            for verdict in expected:
                job = await store.load(verdict.job.id)
                assert job is not None
                if verdict.admission is None:
                    assert is_waiting(job)
                    assert scheduler.reason(job.id) == verdict.waiting
                else:
                    assert job.status.admission is not None
                    places = [replace(p, port=0) for p in job.status.admission.placements]
                    assert places == list(verdict.admission.placements)

    simulate(play)


@EFFORT
@given(snapshots(), st.lists(queues(), min_size=1, max_size=3), st.data())
def test_jobs_put_in_and_taken_out_come_in_order_once_each(
    snapshot: Snapshot, batches: list[list[Job]], data: st.DataObject
):
    kept: dict[str, Job] = {}
    queue = WaitingJobs()
    for number, batch in enumerate(batches):
        for job in (replace(job, id=f"{number}-{job.id}") for job in batch):
            kept[job.id] = job
            queue.put(job)
        for id in data.draw(st.lists(st.sampled_from(sorted(kept)), unique=True)) if kept else ():
            del kept[id]
            queue.remove(id)
    in_order = sorted(kept.values(), key=order)
    assert list(queue.in_order(closed=())) == in_order
    cycle = Cycle(snapshot, T0)
    let_in = [job.id for job in queue.in_order(cycle.refused) if cycle.answer(job).admission]
    expected = admit(snapshot, in_order, T0)
    assert let_in == [v.job.id for v in expected if v.admission]
    for verdict in expected:
        if verdict.admission is None:
            assert cycle.refusal_of(verdict.job) == verdict.refusal


def plain_admit(snapshot: Snapshot, waiting: list[Job], now: datetime) -> dict[str, tuple[Placement, ...]]:
    """The rule word by word, job by job: no shapes, nothing remembered from one job to the next."""
    held, let_in, head = list(snapshot.held), dict[str, tuple[Placement, ...]](), None
    for job in sorted(waiting, key=order):
        fit = fitted(job.spec, snapshot.nodes, snapshot.fit)
        if fit is None:
            continue
        room = Room(snapshot.nodes)
        for holder in held:
            room.take(holder.placements)
        places = room.place(fit[0])
        if places is not None:
            mine = Reservation(
                job=job.id, display_name="", placements=places, until=now + job.spec.scheduling.timeout
            )
            if head is None or _starts(head[0], snapshot, [*held, mine], now) <= head[1]:
                held.append(mine)
                let_in[job.id] = places
        elif head is None:
            head = fit[0], _starts(fit[0], snapshot, held, now)
    return let_in


def _starts(wanted: Any, snapshot: Snapshot, held: list[Reservation], now: datetime) -> datetime:
    for end in sorted(h.until for h in held):
        room = Room(snapshot.nodes)
        for holder in held:
            if holder.until > end:
                room.take(holder.placements)
        if room.place(wanted) is not None:
            return max(end, now)
    raise AssertionError("it fits the empty machines")


@EFFORT
@given(snapshots(), queues())
def test_on_one_machine_shapes_change_no_decision(snapshot: Snapshot, queue: list[Job]):
    node = a_node(cpus=8, gpus=["0", "1"])
    room, held = Room((node,)), list[Reservation]()
    for holder in snapshot.held:
        places = tuple(replace(p, node=node.name, host=node.host, gpus=()) for p in holder.placements)
        if all(room.cpus[node.name] >= p.cpus and room.memory[node.name] >= p.memory for p in places):
            room.take(places)
            held.append(replace(holder, placements=places))
    world = Snapshot(nodes=(node,), held=tuple(held), fit=snapshot.fit)
    found = {v.job.id: v.admission.placements for v in admit(world, queue, T0) if v.admission}
    assert found == plain_admit(world, queue, T0)

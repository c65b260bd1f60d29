"""The real queue, loop, scheduler and service over the fakes, in stepped time, while everything goes wrong.

Servers are killed in the middle of what they do, answers and writes get lost, observations are old, replicas
die, get lost or vanish, jobs come and are cancelled. Then it all stops, and everything must settle.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_node, a_pool, a_rule, seconds
from tests.properties.effort import PROPERTY
from tests.properties.job_plans import exits
from tests.shares import a_share, a_tree
from tests.unit.control.engine import Engine
from tests.unit.control.stepped import SteppedClock, simulate, until
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.event import Event
from trainshed.core.jobs.job import Job, JobSpec, JobState, Scheduling, Status
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit, Handle, Observation
from trainshed.core.names import RunKey
from trainshed.core.ports import Store
from trainshed.core.queue.share import ShareTree
from trainshed.service.jobs import JobRequest
from trainshed.testing.backend import FakeBackend, FakeMachine
from trainshed.testing.store import MemoryStore

CPUS = 4.0
MADE = "trainshed/made"  # an image that has to be made ready
PATIENCE = seconds(0.04)  # as the server: what ends at once is written once


@dataclass(frozen=True, slots=True)
class Submit:
    programs: tuple[tuple[str, ...], ...]
    cpus: float
    restarts: int
    retries: int
    hold: float = 0  # seconds
    image: str = "trainshed/python:3"
    project: str = "shed"
    priority: int = 0
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class CancelOne:
    which: int


@dataclass(frozen=True, slots=True)
class Harm:
    which: int
    how: Exit | None  # None: it vanishes


@dataclass(frozen=True, slots=True)
class Kill:
    """The server dies and another one starts."""


@dataclass(frozen=True, slots=True)
class Fail:
    action: str
    after: bool


@dataclass(frozen=True, slots=True)
class FailWrite:
    after: bool


@dataclass(frozen=True, slots=True)
class Freeze:
    seconds: float


@dataclass(frozen=True, slots=True)
class Mute:
    pass


@dataclass(frozen=True, slots=True)
class Unmake:
    """What jobs of the image need has to be made anew."""


@dataclass(frozen=True, slots=True)
class Make:
    well: bool


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


Step: TypeAlias = Submit | CancelOne | Harm | Kill | Fail | FailWrite | Freeze | Mute | Unmake | Make | Wait

programs = st.sampled_from(
    [
        ("exit", "0"),
        ("exit", "0", "3"),
        ("exit", "1", "2"),
        ("die", "9"),
        ("exit", "137", "1"),
        ("sleep",),
        ("stubborn",),
    ]
)
submits = st.builds(
    Submit,
    st.lists(programs, min_size=1, max_size=3).map(tuple),
    st.sampled_from([0.5, 1.0, 2.0, 8.0]),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.0, 15.0]),
    st.sampled_from(["trainshed/python:3", MADE]),
)
waits = st.builds(Wait, st.sampled_from([0.0, 0.0, 0.01, 0.3, 1.0, 3.0, 20.0]))
steps: st.SearchStrategy[Step] = st.one_of(
    submits,
    waits,
    waits,
    st.builds(CancelOne, st.integers(0, 9)),
    st.builds(Harm, st.integers(0, 9), st.one_of(exits, st.none())),
    st.just(Kill()),
    st.builds(Fail, st.sampled_from(["launch", "observe", "stop", "remove"]), st.booleans()),
    st.builds(FailWrite, st.booleans()),
    st.builds(Freeze, st.sampled_from([0.1, 1.0, 1.9])),
    st.just(Mute()),
    st.just(Unmake()),
    st.builds(Make, st.sampled_from([True, True, False])),
)


@dataclass(slots=True)
class Trouble:
    """What the world has to complain about, and what it was told to do wrong."""

    broken: list[str] = field(default_factory=list[str])
    failing_writes: list[bool] = field(default_factory=list[bool])
    vanished: set[RunKey] = field(default_factory=set[RunKey])
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def rest(self) -> None:
        """What a dead server does, until the test is over."""
        await self.over.wait()
        raise asyncio.CancelledError


class WatchedBackend(FakeBackend):
    """The fake, dead once its server is, and watching over what must never happen."""

    def __init__(self, machine: FakeMachine, trouble: Trouble) -> None:
        super().__init__(machine)
        self.dead = False
        self._trouble = trouble

    async def launch(self, launch: Launch) -> Handle:
        await self._while_alive()
        return await super().launch(launch)

    async def observe(self, job: str) -> tuple[Observation, ...]:
        await self._while_alive()
        return await super().observe(job)

    async def stop(self, key: RunKey, *, force: bool) -> None:
        await self._while_alive()
        await super().stop(key, force=force)

    async def remove(self, job: str) -> None:
        await self._while_alive()
        await super().remove(job)

    async def _while_alive(self) -> None:
        if self.dead:
            await self._trouble.rest()

    def _start(self, launch: Launch) -> None:
        if self.dead:  # the process that would have started it is gone
            return
        super()._start(launch)
        key, alive = launch.key, self.machine.alive()
        mine = {k for k in alive if k.name.job == key.name.job}
        complain = self._trouble.broken.append
        if len({k.name.attempt for k in mine}) > 1:
            complain(f"two attempts alive together: {sorted(map(str, mine))}")
        if len({k.name for k in mine}) < len(mine):
            complain(f"two runs of one replica: {sorted(map(str, mine))}")
        if self.machine.starts[key] > 1 and key not in self._trouble.vanished:
            complain(f"{key} was started twice")
        places = [self.machine.runs[k].launch.placement for k in alive]
        if sum(p.cpus for p in places) > CPUS + 1e-6:
            complain(f"more CPUs in use than there are, with {key}")
        ports = [p.port for p in places]
        if len(ports) != len(set(ports)):
            complain(f"a port is shared, with {key}")


class FlakyStore(MemoryStore):
    """Fails before or after it has written, as often as it was told to; a final status is for ever."""

    def __init__(self, trouble: Trouble, machine: FakeMachine) -> None:
        super().__init__()
        self._trouble, self._machine = trouble, machine

    async def write(
        self, job: Job, status: Status, events: Sequence[Event] = (), *, flush: bool = True
    ) -> Job:
        fault = self._trouble.failing_writes.pop() if self._trouble.failing_writes else None
        if fault is False:
            raise Unavailable("The store was told to fail.")
        current = await self.load(job.id)
        written = await super().write(job, status, events, flush=flush)
        if current is not None and current.is_final and current.status != status:
            self._trouble.broken.append(f"job {job.id} woke: {current.status.state} -> {status.state}")
        if status.state.is_final and any(k.name.job == job.id for k in self._machine.alive()):
            self._trouble.broken.append(f"job {job.id} became {status.state} with replicas alive")
        if fault is True:
            raise Unavailable("The store was told to lose its answer.")
        return written


class Connection:
    """One server's way to the store: dead once its server is."""

    def __init__(self, store: MemoryStore, trouble: Trouble) -> None:
        self.dead = False
        self._store, self._trouble = store, trouble

    def on_commit(self, follow: Callable[[Job, bool], None]) -> None:
        self._store.on_commit(lambda job, is_deleted: None if self.dead else follow(job, is_deleted))

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def ask(*args: Any, **options: Any) -> Any:
            if self.dead:
                await self._trouble.rest()
            return await getattr(self._store, name)(*args, **options)

        return ask


class Shed:
    """The machine and the store, and whichever server runs just now."""

    def __init__(self, tree: ShareTree | None = None) -> None:
        self.trouble, self.tree = Trouble(), tree
        self.machine = FakeMachine(clock=SteppedClock(), nodes=(a_node(cpus=CPUS),))
        self.store = FlakyStore(self.trouble, self.machine)
        self.submitted: list[str] = []
        self.projects: dict[str, str] = {}
        self.graves: list[asyncio.Task[None]] = []
        self._start_server()

    def _start_server(self) -> None:
        self.backend = WatchedBackend(self.machine, self.trouble)
        self.connection = Connection(self.store, self.trouble)
        self.engine = Engine(
            self.machine,
            cast("Store", self.connection),
            backend=self.backend,
            patience=PATIENCE,
            tree=self.tree,
        )

    async def kill(self) -> None:
        """Nothing of the old server acts any more, but for a commit that was under way."""
        self.backend.dead = self.connection.dead = True
        await self.backend.close()
        self.graves.append(asyncio.create_task(self.engine.close()))
        for _ in range(5):
            await asyncio.sleep(0)
        self._start_server()
        await self.engine.open()

    async def bury(self) -> None:
        """End whatever still waits, of dead servers and of the last one."""
        self.backend.dead = self.connection.dead = True
        self.trouble.over.set()
        await asyncio.gather(*self.graves, self.engine.close(), return_exceptions=True)

    async def play(self, step: Step) -> None:
        match step:
            case Submit():
                await self._submit(step)
            case CancelOne() if self.submitted:
                job = self.submitted[step.which % len(self.submitted)]
                with contextlib.suppress(Conflict, Unavailable):
                    await self.engine.jobs.cancel(self.projects[job], "here", job)
            case Harm():
                alive = sorted(self.machine.alive())
                if alive and step.how is not None:
                    self.machine.end(alive[step.which % len(alive)], step.how)
                elif alive:
                    self.trouble.vanished.add(key := alive[step.which % len(alive)])
                    self.machine.vanish(key)
            case Kill():
                await self.kill()
            case Fail():
                self.backend.fail(step.action, after=step.after)
            case FailWrite():
                self.trouble.failing_writes.append(step.after)
            case Freeze():
                self.backend.freeze()
                await asyncio.sleep(step.seconds)
                self.backend.thaw()
            case Mute():
                self.backend.mute = True
            case Unmake():
                self.machine.runtimes.unmade.add(MADE)
            case Make():
                self.machine.runtimes.make(MADE, well=step.well)
            case Wait():
                await asyncio.sleep(step.seconds)
            case _:
                pass

    async def _submit(self, step: Submit) -> None:
        pool = replace(a_pool(cpus=step.cpus), image=step.image)
        pools = tuple(replace(pool, command=words) for words in step.programs)
        rule = a_rule(restarts=step.restarts, retries=step.retries)
        scheduling = Scheduling(
            timeout=seconds(120),
            grace=seconds(5),
            drain=seconds(10),
            hold=seconds(step.hold),
            restart=rule,
            priority=step.priority,
            strategy=step.strategy,
        )
        request = JobRequest(display_name="job", spec=JobSpec(pools=pools, scheduling=scheduling))
        job = await self.engine.jobs.submit(step.project, "here", request)
        self.submitted.append(job.id)
        self.projects[job.id] = step.project

    async def settled(self) -> bool:
        return not await self.store.active() and not self.machine.runs


async def _live(shed: Shed, life: list[Step]) -> None:
    await shed.engine.open()
    for step in life:
        await shed.play(step)
    shed.trouble.failing_writes.clear()
    shed.machine.runtimes.unmade.clear()  # it has been made in the end
    await shed.kill()  # the last one: without faults from here on
    await until(shed.settled, every=5, at_most=5_000)
    assert shed.trouble.broken == []
    jobs = [await shed.store.load(job) for job in shed.submitted]
    assert all(job is not None and job.is_final for job in jobs)
    await shed.play(Submit((("exit", "0"),), CPUS, 0, 0))
    await until(shed.settled, every=1, at_most=60)
    last = await shed.store.load(shed.submitted[-1])
    assert last is not None
    assert last.status.state is JobState.SUCCEEDED, "a slot has leaked"


def run_life(life: list[Step], tree: ShareTree | None = None) -> None:
    async def play() -> None:
        shed = Shed(tree)
        try:
            await _live(shed, life)
        finally:
            await shed.bury()

    logging.disable(logging.CRITICAL)
    numbers = itertools.count(1)
    try:
        with patch("trainshed.service.jobs.new_id", lambda: f"{next(numbers):03d}"):
            simulate(play)
    finally:
        logging.disable(logging.NOTSET)


@settings(PROPERTY, max_examples=60)
@given(st.lists(steps, min_size=5, max_size=40))
def test_whatever_goes_wrong_everything_settles_and_nothing_is_lost_or_done_twice(life: list[Step]):
    run_life(life)


of_shares = st.builds(
    replace,
    submits,
    project=st.sampled_from(["a", "b", "shed"]),
    priority=st.sampled_from([0, 0, 1]),
    strategy=st.sampled_from(["", "", "SPOT"]),
)


@settings(PROPERTY, max_examples=60)
@given(st.lists(st.one_of(of_shares, of_shares, of_shares, steps), min_size=5, max_size=40))
def test_the_same_holds_where_jobs_preempt_each_other(life: list[Step]):
    run_life(life, a_tree(a_share("a", 2), a_share("b", 1)))


async def _slowly_killed(at: int) -> tuple[list[str], list[str]]:
    """A share takes its own back while the server dies before its write of this number."""
    shed = Shed(a_tree(a_share("a", 2), a_share("b", 2)))
    writes = itertools.count()
    write = shed.store.write

    async def dying_write(*args: Any, **options: Any) -> Job:
        if next(writes) == at:
            await shed.kill()
            raise Unavailable("The server died.")
        return await write(*args, **options)

    try:
        await shed.engine.open()
        sleep = Submit((("sleep",),), 2, 0, 0)
        await shed.play(replace(sleep, project="b"))
        await shed.play(replace(sleep, project="b"))
        await asyncio.sleep(30)
        with patch.object(shed.store, "write", dying_write):
            await shed.play(replace(sleep, project="a"))
            await asyncio.sleep(40)
        alive = sorted(key.name.job for key in shed.machine.alive())
        events = [event.reason.value for event in await shed.store.events("002")]
        assert shed.trouble.broken == []
        return alive, events
    finally:
        await shed.bury()


def test_a_server_that_dies_before_any_write_of_a_preemption_leaves_nobody_running_twice():
    logging.disable(logging.CRITICAL)
    try:
        for at in range(8):
            numbers = itertools.count(1)
            with patch("trainshed.service.jobs.new_id", lambda numbers=numbers: f"{next(numbers):03d}"):
                alive, events = simulate(partial(_slowly_killed, at))
            assert alive == ["001", "003"], f"killed before write {at}"
            assert events.count("PREEMPTED") == events.count("REQUEUED") == 1, events
    finally:
        logging.disable(logging.NOTSET)

"""A backend in memory that keeps every promise of core.ports.Backend, and breaks the world on request.

FakeMachine is what outlives a server: the runs. A new FakeBackend over the same one is a restarted server.
Time is a clock given or the real one; programs are words (program.py). Faults are asked for by the test: an
action that fails, or whose answer is lost; observations that are old; replicas that end, get lost or vanish.
It never starts a process, and writes files only where RunFiles names them.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trainshed.core.errors import Conflict, Exhausted, Unavailable
from trainshed.core.jobs.job import JobSpec
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.readiness import PreparationProgress, Readiness, together
from trainshed.core.jobs.replica import Exit, Handle, Observation, Sight
from trainshed.core.jobs.stacks import ProcessStack, StackDump, StackFrame, ThreadStack
from trainshed.core.metrics import Measure, Usage
from trainshed.core.names import RunKey
from trainshed.core.ports import Capabilities, Clock, RunFiles, Sink
from trainshed.core.queue.fleet import Admission, Node
from trainshed.core.shell_port import Shells
from trainshed.core.stats_port import Stacks, Stats
from trainshed.core.supplies.runtime import RuntimeNeed
from trainshed.testing.program import Program, read_program
from trainshed.testing.runtimes import FakeRuntimes

_KILLED = Exit(signal=9)
_TERMINATED = Exit(signal=15)
_ASLEEP = StackDump(
    processes=(
        ProcessStack(
            pid=1,
            command="fake",
            state="sleeps",
            threads=(
                ThreadStack(name="MainThread", frames=(StackFrame("sleep", "fake.py", 1),), is_main=True),
            ),
        ),
    )
)


@dataclass(slots=True)
class FakeRun:
    launch: Launch
    program: Program
    started_at: datetime
    output: Sink | None = None
    asked: bool = False
    is_held: bool = False
    exit: Exit | None = None
    ended_at: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.exit is None or self.is_held

    def write(self, out: str, err: str = "") -> None:
        if self.output is None:
            return
        for path, text in ((self.output.stdout, out), (self.output.stderr, err)):
            if text:
                handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                os.write(handle, text.encode())
                os.close(handle)

    def observe(self) -> Observation:
        key = self.launch.key
        return Observation(
            key=key,
            sight=self._sight(),
            exit=self.exit,
            started_at=self.started_at,
            ended_at=self.ended_at,
            handle={"fake": str(key)},
        )

    def _sight(self) -> Sight:
        if self.exit is None:
            return Sight.RUNNING
        return Sight.HELD if self.is_held else Sight.LOST if self.exit.lost else Sight.ENDED


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(slots=True)
class FakeMachine:
    """The world behind the backend: it goes on while no server runs."""

    clock: Clock = field(default_factory=RealClock)
    nodes: tuple[Node, ...] = (Node(name="fake", host="127.0.0.1", cpus=96.0, memory=1 << 40),)
    runs: dict[RunKey, FakeRun] = field(default_factory=dict[RunKey, FakeRun])
    starts: Counter[RunKey] = field(default_factory=Counter[RunKey])  # how often each run was really started
    runtimes: FakeRuntimes = field(default_factory=FakeRuntimes)
    watchers: list[Callable[[str], None]] = field(default_factory=list[Callable[[str], None]])

    def end(self, key: RunKey, exit: Exit, at: datetime | None = None) -> None:
        """A run ends, whatever its program says."""
        run = self.runs.get(key)
        if run is None or not run.alive:
            return
        if run.is_held:
            run.is_held = False
        else:
            run.exit, run.ended_at = exit, at or self.clock.now()
            run.is_held = run.launch.held and not (run.asked or exit.ok or exit.lost)
        for watcher in list(self.watchers):
            watcher(key.name.job)

    def kill(self, key: RunKey) -> None:
        """All of the run goes, and its place with it."""
        if (run := self.runs.get(key)) is not None:
            run.asked = True
        self.end(key, _KILLED)

    def lose(self, key: RunKey) -> None:
        """Who held the exit status is gone, and with it the run."""
        self.end(key, Exit())

    def vanish(self, key: RunKey) -> None:
        """The run is not there any more and nothing tells that it ever was."""
        self.runs.pop(key, None)

    def alive(self) -> frozenset[RunKey]:
        self.pass_time()
        return frozenset(key for key, run in self.runs.items() if run.alive)

    def pass_time(self) -> None:
        """Let every program that has come to its end by now end."""
        now = self.clock.now()
        for key, run in list(self.runs.items()):
            due = run.started_at + run.program.after
            if run.exit is None and run.program.exit is not None and due <= now:
                self.end(key, run.program.exit, due)


class FakeStats:
    def __init__(
        self, machine: FakeMachine, busy: Mapping[RunKey, float], fault: Callable[[str], None]
    ) -> None:
        self._machine, self._busy, self._fault = machine, busy, fault

    async def sample(self) -> Mapping[RunKey, Usage]:
        self._fault("sample")
        self._machine.pass_time()
        now = self._machine.clock.now()
        result: dict[RunKey, Usage] = {}
        for key, run in self._machine.runs.items():
            if run.alive:
                age = (now - run.started_at).total_seconds()
                result[key] = Usage(
                    taken=now.timestamp(), cpu_seconds=age * self._busy.get(key, 0.0), processes=1
                )
        return result


class FakeStacks:
    def __init__(
        self, machine: FakeMachine, places: Mapping[RunKey, StackDump], fault: Callable[[str], None]
    ) -> None:
        self._machine, self._places, self._fault = machine, places, fault

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        self._fault("stacks")
        self._machine.pass_time()
        runs = {key: self._machine.runs.get(key) for key in keys}
        return {key: self._places.get(key, _ASLEEP) for key, run in runs.items() if run and run.alive}


class FakeBackend:
    def __init__(self, machine: FakeMachine | None = None, *, files: RunFiles | None = None) -> None:
        """Without files nothing that programs print is kept."""
        self.machine, self._files = machine or FakeMachine(), files
        self.capabilities = Capabilities(
            name="fake", survives_server=True, kills_escapees=True, measures=frozenset({Measure.CPU})
        )
        self.busy: dict[RunKey, float] = {}  # the cores a run uses, by what a test says; else 0
        # Where a run is, by what a test says; else in `sleep (fake.py:1)`.
        self.places: dict[RunKey, StackDump] = {}
        self.stats: Stats | None = FakeStats(self.machine, self.busy, self._fault)
        self.stacks: Stacks | None = FakeStacks(self.machine, self.places, self._fault)
        self.shells: Shells | None = None
        self.views = self.images = self.callers = self.node_stats = None
        self.image_inventories = ()
        self.mute = False  # hints are lost
        self._frozen: dict[RunKey, Observation] | None = None
        self._failures: list[tuple[str, bool]] = []
        self._hints: list[Callable[[str], None]] = []
        self._next_port = 10_000

    # What a test may ask for

    def fail(self, action: str, *, after: bool = False) -> None:
        """The next launch, observe, stop or remove fails: before it does anything, or after it did it."""
        self._failures.append((action, after))

    def freeze(self) -> None:
        """From now on observe shows what there is now."""
        self.machine.pass_time()
        self._frozen = {key: run.observe() for key, run in self.machine.runs.items()}

    def thaw(self) -> None:
        self._frozen = None

    # The promises

    async def start(self) -> None:
        self.machine.watchers.append(self._hint)
        self.machine.runtimes.hints.append(self._hint)

    async def close(self) -> None:
        if self._hint in self.machine.watchers:
            self.machine.watchers.remove(self._hint)
            self.machine.runtimes.hints.remove(self._hint)

    async def nodes(self) -> tuple[Node, ...]:
        return self.machine.nodes

    def refuse_image(self, image: str) -> str | None:
        return self.machine.runtimes.refuse(image)

    def prepare(self, spec: JobSpec, job: str = "") -> Readiness:
        needs = (RuntimeNeed(p.image, spec.requirements, p.packages) for p in spec.pools if not p.is_empty)
        return together(self.machine.runtimes.readiness(need, job) for need in dict.fromkeys(needs))

    def preparing(self) -> tuple[PreparationProgress, ...]:
        return self.machine.runtimes.preparing()

    def render(self, launch: Launch) -> Mapping[str, object]:
        return {"words": list(launch.command + launch.args), "env": dict(launch.env)}

    async def launch(self, launch: Launch) -> Handle:
        self._fault("launch", after=False)
        await asyncio.sleep(0)
        key, runs = launch.key, self.machine.runs
        if key not in runs:
            self.machine.runtimes.python(RuntimeNeed(launch.image, launch.requirements, launch.packages))
            others = [other for other in runs if other.name == key.name]
            if any(other.run > key.run for other in others):
                raise Conflict(f"A later run than {key} has been started.")
            for other in others:
                self.machine.kill(other)
            self._start(launch)
        self._fault("launch", after=True)
        return {"fake": str(key)}

    async def observe(self, job: str) -> tuple[Observation, ...]:
        self._fault("observe", after=False)
        self.machine.pass_time()
        runs = self._frozen
        if runs is None:
            return tuple(run.observe() for key, run in self.machine.runs.items() if key.name.job == job)
        return tuple(seen for key, seen in runs.items() if key.name.job == job)

    async def stop(self, key: RunKey, *, force: bool) -> None:
        self._fault("stop", after=False)
        await asyncio.sleep(0)
        self.machine.pass_time()
        run = self.machine.runs.get(key)
        if run is not None and run.alive and (force or run.is_held):
            self.machine.kill(key)
        elif run is not None and run.alive and not run.asked:
            run.asked = True
            run.write(run.program.on_term)
            if run.program.obeys:
                self.machine.end(key, _TERMINATED)
        self._fault("stop", after=True)

    async def remove(self, job: str) -> None:
        self._fault("remove", after=False)
        await asyncio.sleep(0)
        for key in [key for key in self.machine.runs if key.name.job == job]:
            self.machine.kill(key)
            self.machine.vanish(key)
        self._fault("remove", after=True)

    async def jobs(self) -> frozenset[str]:
        return frozenset(key.name.job for key in self.machine.runs)

    async def address(self, admission: Admission, spec: JobSpec, avoid: frozenset[int]) -> Admission:
        return admission.numbered(await self.free_ports(len(admission.placements) + 1, avoid))

    async def free_ports(self, count: int, avoid: frozenset[int]) -> tuple[int, ...]:
        ports: list[int] = []
        for _ in range(20_000):
            if len(ports) == count:
                return tuple(ports)
            if self._next_port not in avoid:
                ports.append(self._next_port)
            self._next_port = self._next_port + 1 if self._next_port < 29_999 else 10_000
        raise Exhausted(f"{count} free ports are needed and {len(ports)} are left.")

    def on_change(self, hint: Callable[[str], None]) -> None:
        self._hints.append(hint)

    def _hint(self, job: str) -> None:
        if not self.mute:
            for hint in self._hints:
                hint(job)

    def _fault(self, action: str, *, after: bool = False) -> None:
        if (action, after) in self._failures:
            self._failures.remove((action, after))
            raise Unavailable(f"The fake backend was told to fail at {action}.")

    def _start(self, launch: Launch) -> None:
        machine, key = self.machine, launch.key
        program = read_program(launch.command + launch.args, {n for names in launch.names for n in names})
        output = None if self._files is None else self._files.output(key.name)
        machine.runs[key] = run = FakeRun(launch, program, machine.clock.now(), output)
        machine.starts[key] += 1
        run.write(program.out, program.err)
        if program.exit is not None and isinstance(machine.clock, RealClock):
            asyncio.get_running_loop().call_later(program.after.total_seconds(), machine.pass_time)

"""The hang watch over fakes: whom it looks at and when, what it writes, and what it leaves alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from tests.builders import T0, a_job, a_pool, at, cancelled, running, seconds
from trainshed.control.hangs import HangWatcher
from trainshed.core.errors import Unavailable
from trainshed.core.event import Event, Reason
from trainshed.core.jobs.hang import HangPolicy, HangRule
from trainshed.core.jobs.job import Job, Outcome, Scheduling
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit, Phase
from trainshed.core.jobs.stacks import ProcessStack, StackDump, StackFrame, ThreadStack
from trainshed.core.metrics import GpuUse, Report, RunReading, Usage
from trainshed.core.names import ReplicaName, RunKey
from trainshed.testing.backend import FakeBackend
from trainshed.testing.store import MemoryStore

RULE = HangRule(after=seconds(60), exit_after=seconds(40), asked=True)


class HandClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return at(self.seconds)


@dataclass
class Bench:
    """One job of three replicas on a fake machine, looked at every two seconds."""

    rule: HangRule = RULE
    job: Job = field(init=False)
    printed: dict[ReplicaName, int] = field(default_factory=dict[ReplicaName, int])
    cpu: dict[RunKey, float] = field(default_factory=dict[RunKey, float])
    steps: dict[RunKey, float] = field(default_factory=dict[RunKey, float])
    gpu: float | None = None
    hinted: list[str] = field(default_factory=list[str])

    async def open(self) -> "Bench":
        self.clock, self.store, self.backend = HandClock(), MemoryStore(), FakeBackend()
        scheduling = Scheduling(hang=self.rule)
        job = running(a_job(a_pool(), a_pool(2), scheduling=scheduling))
        self.job = await self.store.insert(job, ())
        admission = job.status.admission
        assert admission is not None
        for replica in job.status.replicas:
            await self.backend.launch(
                Launch(
                    key=job.key(replica),
                    image="",
                    command=("sleep",),
                    args=(),
                    placement=admission.by_replica()[replica.pool, replica.index],
                )
            )
        self.keys = [job.key(replica) for replica in job.status.replicas]
        self.renew()
        return self

    def renew(self) -> None:
        """Another server."""
        self.watch = HangWatcher(
            store=self.store,
            clock=self.clock,
            stacks=self.backend.stacks,
            printed=lambda name: self.printed.get(name, 0),
            ring=lambda job: None,
            hint_job=self.hinted.append,
        )

    def readings(self) -> list[RunReading]:
        gpus = (GpuUse(device="0", share=self.gpu, memory=0),) if self.gpu is not None else ()
        return [
            RunReading(
                key=key,
                usage=Usage(taken=self.clock.seconds, cpu_seconds=self.cpu.get(key, 0.0), gpus=gpus),
                values={},
                report=Report(at=T0, step=self.steps[key], values={"loss": float("nan")})
                if key in self.steps
                else None,
                first=None,
            )
            for key in self.keys
        ]

    async def passes(self, length: float, *, busy: Sequence[RunKey] = ()) -> None:
        for _ in range(int(length / 2)):
            self.clock.seconds += 2
            for key in busy:
                self.cpu[key] = self.cpu.get(key, 0.0) + 2
            self.watch.see(self.readings())
            await self.watch.look()

    async def now(self) -> Job:
        job = await self.store.load(self.job.id)
        assert job is not None
        return job

    async def events(self, *reasons: Reason) -> list[Event]:
        return [event for event in await self.store.events(self.job.id) if event.reason in reasons]

    async def change(self, job: Job) -> None:
        await self.store.write(await self.now(), job.status)


@pytest.fixture
async def bench() -> Bench:
    return await Bench().open()


def at_line(line: int) -> StackDump:
    main = ThreadStack(name="MainThread", frames=(StackFrame("f", "/w/a.py", line),), is_main=True)
    return StackDump(processes=(ProcessStack(pid=1, command="python", state="runs", threads=(main,)),))


async def test_a_job_that_stands_still_is_told_of_once_with_its_stacks(bench: Bench):
    bench.backend.places[bench.keys[1]] = at_line(17)
    await bench.passes(58)
    assert (await bench.now()).status.hang is None
    await bench.passes(200)
    [event] = await bench.events(Reason.HANG_SUSPECTED)
    assert "2 replicas are in sleep (fake.py:1); workerpool1-0 is in f (a.py:17)" in event.message
    assert len(await bench.events(Reason.STACKS)) == 2
    job = await bench.now()
    assert job.status.hang is not None
    assert job.status.closing is None
    assert bench.hinted == [job.id]


@pytest.mark.parametrize("what", ["prints", "steps", "computes", "gpu"])
async def test_a_job_that_moves_is_never_told_of(bench: Bench, what: str):
    for round in range(40):
        match what:
            case "prints":
                bench.printed[bench.keys[2].name] = round
            case "steps":
                bench.steps[bench.keys[2]] = round
            case "gpu":
                bench.gpu = 0.5 if round % 2 else 0.0
            case _:
                bench.cpu[bench.keys[2]] = round * 3.0
        await bench.passes(20)
    assert await bench.events(Reason.HANG_SUSPECTED) == []


async def test_a_hang_that_is_over_is_told_and_the_next_one_too(bench: Bench):
    await bench.passes(80)
    bench.printed[bench.keys[0].name] = 1
    await bench.passes(10)
    assert len(await bench.events(Reason.HANG_OVER)) == 1
    assert (await bench.now()).status.hang is None
    await bench.passes(80)
    assert len(await bench.events(Reason.HANG_SUSPECTED)) == 2


async def test_a_new_server_begins_anew_and_neither_fires_nor_forgets(bench: Bench):
    await bench.passes(50)
    bench.renew()
    await bench.passes(50)
    assert await bench.events(Reason.HANG_SUSPECTED) == []
    await bench.passes(20)
    assert len(await bench.events(Reason.HANG_SUSPECTED)) == 1
    bench.renew()
    await bench.passes(200)
    assert len(await bench.events(Reason.HANG_SUSPECTED)) == 1
    assert await bench.events(Reason.HANG_OVER) == []


async def test_a_server_that_slept_does_not_fire_when_it_wakes(bench: Bench):
    await bench.passes(50)
    bench.clock.seconds += 3600
    await bench.passes(50)
    assert await bench.events(Reason.HANG_SUSPECTED) == []


@pytest.mark.parametrize(("policy", "outcome"), [("RESTART", Outcome.RETRY), ("FAIL", Outcome.FAILED)])
async def test_a_policy_is_carried_out_by_the_status_alone(policy: str, outcome: Outcome):
    bench = await Bench(replace(RULE, policy=HangPolicy(policy))).open()
    await bench.passes(200)
    job = await bench.now()
    assert job.status.closing is not None and job.status.closing.outcome is outcome
    assert bench.backend.machine.alive() == frozenset(bench.keys)
    assert len(await bench.events(Reason.HANG_SUSPECTED)) == 1


async def test_a_job_that_is_being_ended_is_left_alone(bench: Bench):
    await bench.change(cancelled(bench.job, at(1)))
    await bench.passes(200)
    assert await bench.events(Reason.HANG_SUSPECTED) == []


async def test_what_changed_while_its_stacks_were_taken_is_looked_at_again(bench: Bench):
    stacks = bench.backend.stacks
    assert stacks is not None
    real = stacks.stacks

    async def meanwhile(keys: Sequence[RunKey]):
        stacks.stacks = real  # type: ignore[method-assign]
        await bench.change(cancelled(bench.job, at(1)))
        return await real(keys)

    stacks.stacks = meanwhile  # type: ignore[method-assign]
    await bench.passes(100)
    assert await bench.events(Reason.HANG_SUSPECTED) == []
    assert (await bench.now()).status.cancel_asked_at == at(1)


async def test_a_job_that_moves_while_its_stacks_are_taken_does_not_hang(bench: Bench):
    stacks = bench.backend.stacks
    assert stacks is not None
    real = stacks.stacks

    async def meanwhile(keys: Sequence[RunKey]):
        stacks.stacks = real  # type: ignore[method-assign]
        bench.printed[bench.keys[1].name] = 1
        return await real(keys)

    stacks.stacks = meanwhile  # type: ignore[method-assign]
    await bench.passes(100)
    assert await bench.events(Reason.HANG_SUSPECTED) == []
    await bench.passes(40)
    assert len(await bench.events(Reason.HANG_SUSPECTED)) == 1


async def test_stacks_that_cannot_be_taken_do_not_hide_the_hang(bench: Bench):
    bench.backend.fail("stacks")
    await bench.passes(80)
    [event] = await bench.events(Reason.HANG_SUSPECTED)
    assert "policy WARN" in event.message
    assert await bench.events(Reason.STACKS) == []


async def test_a_store_that_fails_once_is_asked_again(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    async def broken(job: str) -> Job | None:
        raise Unavailable("no store")

    await bench.passes(50)
    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "load", broken)
        await bench.passes(4)
    await bench.passes(40)
    assert len(await bench.events(Reason.HANG_SUSPECTED)) == 1


async def test_a_busy_job_whose_steps_stopped_hangs_only_if_its_stacks_stand_still(bench: Bench):
    bench.steps[bench.keys[0]] = 7
    await bench.passes(62, busy=bench.keys)
    for line in range(30):  # it evaluates, say
        bench.backend.places[bench.keys[0]] = at_line(line)
        await bench.passes(6, busy=bench.keys)
    assert await bench.events(Reason.HANG_SUSPECTED) == []
    await bench.passes(80, busy=bench.keys)
    [event] = await bench.events(Reason.HANG_SUSPECTED)
    assert "it computes, but no stack moved" in event.message


async def test_looks_at_a_long_step_do_not_count_for_the_next_one(bench: Bench):
    for step in range(5):  # each a little longer than the time set, in one and the same place
        bench.steps[bench.keys[0]] = step
        await bench.passes(68, busy=bench.keys)
    assert await bench.events(Reason.HANG_SUSPECTED) == []


async def test_a_busy_job_that_never_spoke_of_steps_is_believed(bench: Bench):
    await bench.passes(400, busy=bench.keys)
    assert await bench.events(Reason.HANG_SUSPECTED) == []


async def test_a_replica_that_is_done_makes_the_others_suspect(bench: Bench):
    job = bench.job
    replicas = tuple(
        replace(r, phase=Phase.ENDED, exit=Exit(code=0), noticed_at=at(0)) if r.pool and r.index else r
        for r in job.status.replicas
    )
    await bench.change(replace(job, status=replace(job.status, replicas=replicas)))
    bench.keys = bench.keys[:2]
    await bench.passes(38, busy=bench.keys)
    assert await bench.events(Reason.HANG_SUSPECTED) == []
    await bench.passes(10, busy=bench.keys)
    [event] = await bench.events(Reason.HANG_SUSPECTED)
    assert "workerpool1-1 ended well" in event.message


async def test_a_job_that_is_not_watched_is_looked_up_once_in_a_long_while(monkeypatch: pytest.MonkeyPatch):
    bench = await Bench(HangRule(after=seconds(0), exit_after=seconds(0))).open()
    asked: list[str] = []
    real = bench.store.load

    async def counted(job: str) -> Job | None:
        asked.append(job)
        return await real(job)

    monkeypatch.setattr(bench.store, "load", counted)
    await bench.passes(1000)
    assert len(asked) == 1


async def test_nothing_is_kept_of_jobs_that_are_over(bench: Bench):
    await bench.passes(10)
    bench.watch.see([])
    await bench.watch.look()
    assert bench.watch._jobs == {}  # pyright: ignore[reportPrivateUsage]

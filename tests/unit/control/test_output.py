"""The loop and the output of its jobs: complete before the end is told, and no obstacle to it."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders import a_job, a_node, a_pool, admitted, at
from tests.unit.control.engine import Engine, NoLogs
from tests.unit.control.stepped import SteppedClock, in_stepped_time
from trainshed.control.jobs import RETRY_LAUNCH
from trainshed.core.errors import Unavailable
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.names import ReplicaName
from trainshed.core.ports import Sink
from trainshed.testing.backend import FakeMachine


class FullDisk(NoLogs):
    def __init__(self) -> None:
        super().__init__()
        self.is_full = True

    def sink(self, name: ReplicaName) -> Sink:
        if self.is_full:
            raise Unavailable("The log files cannot be made.")
        return Sink(stdout="", stderr="")

    async def finish(self, job: str) -> None:
        if self.is_full:
            raise Unavailable("The log cannot be finished.")
        self.finished.append(job)


def an_engine(logs: NoLogs) -> Engine:
    engine = Engine(FakeMachine(clock=SteppedClock(), nodes=(a_node(),)))
    engine.logs = engine.loop.logs = logs
    return engine


async def a_kept_job(engine: Engine, *command: str) -> Job:
    return await engine.store.insert(admitted(a_job(replace(a_pool(), command=command))), ())


async def now(engine: Engine, job: Job) -> Job:
    found = await engine.store.load(job.id)
    assert found is not None
    return found


@in_stepped_time
async def test_the_output_is_complete_before_the_end_is_told():
    engine = an_engine(NoLogs())
    told: list[tuple[JobState, list[str]]] = []
    engine.loop.ring = lambda job: told.append((job.status.state, list(engine.logs.finished)))
    job = await a_kept_job(engine, "exit", "0")
    await engine.loop.turn(job.id)
    assert told[-1] == (JobState.SUCCEEDED, [job.id])
    assert engine.logs.finished == [job.id]


@in_stepped_time
async def test_a_job_whose_log_files_cannot_be_made_says_so_and_starts_later():
    logs = FullDisk()
    engine = an_engine(logs)
    job = await a_kept_job(engine, "sleep")
    assert await engine.loop.turn(job.id) == at(0) + RETRY_LAUNCH
    waiting = (await now(engine, job)).status.waiting
    assert waiting is not None
    assert waiting.reason is Reason.LAUNCH_FAILED
    assert "log files" in waiting.message
    logs.is_full = False
    await engine.loop.turn(job.id)
    assert (await now(engine, job)).status.state is JobState.RUNNING


@in_stepped_time
async def test_a_log_that_cannot_be_finished_is_no_reason_to_keep_quiet_about_the_end():
    logs = FullDisk()
    logs.is_full = False
    engine = an_engine(logs)
    job = await a_kept_job(engine, "sleep")
    await engine.loop.turn(job.id)
    logs.is_full = True
    await engine.jobs.cancel(job.project, job.location, job.id)
    with pytest.raises(Unavailable):  # cleaning up is tried again by the queue
        for _ in range(10):
            await engine.loop.turn(job.id)
            await asyncio.sleep(10)
    assert (await now(engine, job)).status.state is JobState.CANCELLED
    logs.is_full = False
    await engine.loop.turn(job.id)
    assert logs.finished == [job.id]
    assert engine.backend.machine.runs == {}

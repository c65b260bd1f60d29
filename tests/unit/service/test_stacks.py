"""Stacks of a job: a replica that is being started is waited for, and who waits in vain is told why."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.builders import a_job, a_pool, admitted, running
from trainshed.core.errors import Conflict
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.stacks import StackDump
from trainshed.core.names import RunKey
from trainshed.service.stacks import StackService
from trainshed.testing.store import MemoryStore

HERE = ("shed", "here", "1")


class NoThreads:
    """Stacks of whatever is asked for."""

    async def stacks(self, keys: Sequence[RunKey]) -> Mapping[RunKey, StackDump]:
        return {key: StackDump(processes=(), fault="") for key in keys}


async def kept(job: Job, patience: float) -> StackService:
    store = MemoryStore()
    await store.insert(job, ())
    return StackService(store, NoThreads(), patience)


async def change(service: StackService, job: Job) -> None:
    stored = await service.store.load(job.id)
    assert stored is not None
    await service.store.write(stored, job.status, ())


@pytest.mark.parametrize("task", ["", "workerpool0-0"])
async def test_stacks_of_a_replica_that_is_being_started_are_waited_for(task: str):
    service = await kept(admitted(a_job(a_pool(2))), patience=60)
    asked = asyncio.create_task(service.of(*HERE, task))
    await asyncio.sleep(0)
    await change(service, running(a_job(a_pool(2))))
    assert "workerpool0-0" in (await asked)[1]


async def test_stacks_of_a_job_are_those_of_the_replicas_that_run_already():
    job = running(a_job(a_pool(2)))
    first, second = job.status.replicas
    planned = replace(second, phase=admitted(a_job()).status.replicas[0].phase)
    service = await kept(replace(job, status=replace(job.status, replicas=(first, planned))), patience=3600)
    assert set((await service.of(*HERE))[1]) == {"workerpool0-0"}


async def test_who_asks_for_stacks_of_what_does_not_start_is_told_what_it_waits_for():
    job = admitted(a_job())
    waiting = Waiting(reason=Reason.STARTING, message="Its image is being pulled.")
    service = await kept(replace(job, status=replace(job.status, waiting=waiting)), patience=0.1)
    with pytest.raises(Conflict, match=r"\(it is PENDING: Its image is being pulled\): nothing to look at"):
        await service.of(*HERE)

"""The janitor: what a killed server left of deleted jobs goes, and nothing else."""

from dataclasses import replace

from tests.builders import a_job, at
from tests.unit.control.engine import NoLogs
from trainshed.control.janitor import Janitor
from trainshed.core.jobs.job import JobState, Status
from trainshed.core.ports import Operation
from trainshed.testing.store import MemoryStore


async def test_only_the_output_of_deleted_jobs_is_looked_at():
    store, logs = MemoryStore(), NoLogs()
    there = await store.insert(replace(a_job(), id="there"), ())
    gone = await store.insert(replace(a_job(), id="gone"), ())
    over = await store.write(gone, Status(state=JobState.FAILED))
    await store.delete(over, Operation(name="o", kind="delete", target=gone.name, created_at=at(0)))
    logs.finished += [there.id, gone.id, "of another database"]
    hinted: list[str] = []
    assert await Janitor(store, logs, hinted.append).look() is None
    assert hinted == ["gone"]


async def test_a_job_whose_output_has_gone_is_not_looked_at_again():
    store, logs = MemoryStore(), NoLogs()
    job = await store.insert(a_job(), ())
    over = await store.write(job, Status(state=JobState.FAILED))
    await store.delete(over, Operation(name="o", kind="delete", target=job.name, created_at=at(0)))
    hinted: list[str] = []
    await Janitor(store, logs, hinted.append).look()
    assert hinted == []

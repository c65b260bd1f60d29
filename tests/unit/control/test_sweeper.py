"""The sweeper: folders of code go when their last job has been deleted for a day."""

from dataclasses import replace

from tests.builders import a_job, at
from tests.contracts.code_store import SOME, Steps, keep
from trainshed.control.sweeper import EVERY, Sweeper
from trainshed.core.jobs.job import JobState, Status
from trainshed.core.ports import Operation
from trainshed.testing.code import MemoryCodeStore
from trainshed.testing.store import MemoryStore


async def test_a_folder_goes_a_day_after_the_last_job_that_refers_to_it():
    clock, store = Steps(), MemoryStore()
    code = MemoryCodeStore(clock)
    sweeper = Sweeper(store, code, clock)
    folder = await keep(code, SOME)
    job = a_job()
    job = await store.insert(replace(job, spec=replace(job.spec, code=folder)), ())
    for _ in range(3):
        clock.wait(days=2)
        await sweeper.look()
    over = await store.write(job, Status(state=JobState.FAILED))
    await store.delete(over, Operation(name="o", kind="delete", target=job.name, created_at=at(0)))
    await sweeper.look()
    clock.wait(hours=23)
    await sweeper.look()
    assert (await code.manifest(folder)).id == folder
    clock.wait(hours=2)
    await sweeper.look()
    assert not await code.hold(folder)


async def test_it_looks_again_now_and_then():
    clock = Steps()
    assert await Sweeper(MemoryStore(), MemoryCodeStore(clock), clock).look() == clock.now() + EVERY

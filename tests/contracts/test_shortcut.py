"""Writes that need no disk: at once where nobody writes, by the writer where somebody does, refused alike."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.store_values import a_job, an_event
from trainshed.core.errors import Conflict
from trainshed.core.jobs.job import JobState
from trainshed.store import SqlStore
from trainshed.store.writer import Writer


@pytest.fixture
async def store(tmp_path: Path):
    made = SqlStore(f"sqlite:///{tmp_path}/jobs.db")
    await made.start()
    yield made
    await made.close()


async def test_a_write_without_flush_is_there_for_everybody_when_it_returns(store: SqlStore, tmp_path: Path):
    job = await store.insert(a_job(), ())
    pending = replace(job.status, state=JobState.PENDING)
    written = await store.write(job, pending, (an_event(),), flush=False)
    assert written.version == job.version + 1
    with sqlite3.connect(f"file:{tmp_path}/jobs.db?mode=ro", uri=True) as other:
        assert other.execute("SELECT state, version FROM jobs").fetchall() == [("PENDING", 2)]
    assert await store.load(job.id) == written
    assert len(await store.events(job.id)) == 1


async def test_while_another_program_writes_it_waits_with_the_writer(store: SqlStore, tmp_path: Path):
    job = await store.insert(a_job(), ())
    other = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(store.write(job, replace(job.status, state=JobState.PENDING), flush=False))
    await asyncio.sleep(0.05)
    assert not writing.done()
    other.execute("ROLLBACK")
    other.close()
    assert (await writing).status.state is JobState.PENDING


async def test_a_stale_write_is_refused_and_changes_nothing(store: SqlStore):
    job = await store.insert(a_job(), ())
    now = await store.write(job, replace(job.status, state=JobState.PENDING), flush=False)
    with pytest.raises(Conflict):
        await store.write(job, replace(job.status, state=JobState.RUNNING), (an_event(),), flush=False)
    assert await store.load(job.id) == now
    assert await store.events(job.id) == ()
    assert (await store.write(now, replace(job.status, state=JobState.RUNNING), flush=False)).version == 3


async def test_what_the_writer_read_before_and_tells_after_it_is_not_taken_for_the_latest(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
):
    """As when many send the same key at once: the later ones are told of the job as it was."""
    job = await store.insert(a_job(), (), "key")
    told, tell = threading.Event(), Writer._report

    def tell_and_say_so(self: Writer, then: Callable[[], None]) -> None:
        tell(self, then)
        told.set()

    monkeypatch.setattr(Writer, "_report", tell_and_say_so)
    again = asyncio.create_task(store.insert(a_job(), (), "key"))
    await asyncio.sleep(0)
    assert told.wait(60)  # the loop's own thread: what the writer tells cannot be heard yet
    pending = await store.write(job, replace(job.status, state=JobState.PENDING), flush=False)
    assert (await again).id == job.id
    assert await store.load(job.id) == pending
    assert await store.active() == (pending,)

"""A home with many ended jobs, as a server would have left them: much quicker than to run them."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from trainshed.core.jobs.job import Job, JobSpec, JobState, Pool, Status
from trainshed.store.codec import write_time
from trainshed.store.connection import insert_into
from trainshed.store.rows import job_values
from trainshed.store.sql import SqlStore
from trainshed.store.tables import JOBS

_SPEC = JobSpec(pools=(Pool(machine_type="n1-standard-1", replicas=1, image="trainshed/python:3"),))


def keep_ended_jobs(
    home: Path, number: int, project: str = "old", *, age: timedelta = timedelta(days=90)
) -> None:
    """Jobs "old 000", "old 001", …, a second apart; one of ten has failed. For a home without a database."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "trainshed.db"
    with ThreadPoolExecutor(1) as thread:  # a test of a page has a loop of its own in this one
        thread.submit(lambda: asyncio.run(_make(path))).result()
    began = datetime.now(UTC) - age
    rows = _rows(number, project, began)
    connection = sqlite3.connect(path)
    with connection:
        connection.executemany(insert_into("jobs", JOBS), rows)
    connection.close()


async def _make(path: Path) -> None:
    store = SqlStore(f"sqlite:///{path}")
    await store.start()
    await store.close()


def _rows(number: int, project: str, began: datetime) -> list[dict[str, object]]:
    """Two are made as the store makes them, and the others from these: ten times as fast."""
    good, failed = (job_values(_job(kind, project, began), "") for kind in (0, 9))
    first, last = str(good["created_at"]), str(good["ended_at"])
    rows: list[dict[str, object]] = []
    for at in range(number):
        like = failed if at % 10 == 9 else good
        start = write_time(began + timedelta(seconds=at))
        end = write_time(began + timedelta(seconds=at + 60))
        times = {"created_at": start, "updated_at": start, "started_at": start, "ended_at": end}
        status = str(like["status"]).replace(last, "\0").replace(first, start).replace("\0", end)
        own = {"id": f"{at:019d}", "display_name": f"old {at:03d}", "labels": f'{{"seed":"{at % 50}"}}'}
        rows.append({**like, **own, **times, "status": status})
    for at in range(number)[-11:]:
        assert rows[at] == job_values(_job(at, project, began + timedelta(seconds=at)), "")
    return rows


def _job(number: int, project: str, at: datetime) -> Job:
    state = JobState.FAILED if number % 10 == 9 else JobState.SUCCEEDED
    return Job(
        id=f"{number:019d}",
        project=project,
        location="us-central1",
        display_name=f"old {number:03d}",
        labels={"seed": str(number % 50)},
        spec=_SPEC,
        created_at=at,
        status=Status(state=state, started_at=at, ended_at=at + timedelta(minutes=1), updated_at=at),
    )

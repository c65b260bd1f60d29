"""One row that cannot be read: it is named, and hides no other."""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.image_cache_store import a_cache
from tests.contracts.sql_store import filled, opened
from tests.contracts.store_values import T0, a_job, an_event, ended
from trainshed.core.errors import Unavailable
from trainshed.core.ports import Operation
from trainshed.core.query import OLDEST_FIRST, Compare, JobQuery, Operator, QueryField
from trainshed.store import unreadable


@pytest.mark.parametrize(
    "damage",
    [
        "status = '{'",
        "status = '[]'",
        "status = 'null'",
        "status = x'ff'",
        "spec = '{\"pools\": 5}'",
        "labels = '['",
        "labels = '[]'",
        "extras = '7'",
        "created_at = 'never'",
        "display_name = CAST(x'ff' AS TEXT)",
        "state = 'ODD', status = '{\"state\": \"ODD\"}'",
        "kind = 'pipeline', extras = '{\"pipeline\": 5}', status = '{'",
    ],
)
async def test_a_damaged_record_is_named_and_hides_no_other(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    unreadable._warn.cache_clear()
    await filled(tmp_path / "jobs.db", 3)
    change(tmp_path, f"UPDATE jobs SET {damage} WHERE id = '1001'")
    async with opened(tmp_path / "jobs.db") as store:
        assert {job.id for job in await store.active()} == {"1000", "1002"}
        query = JobQuery(project="p", limit=1, order=OLDEST_FIRST)
        seen: list[str] = []
        while True:
            page = await store.find(query)
            seen += [job.id for job in page.jobs]
            if page.next_cursor is None:
                break
            query = replace(query, cursor=page.next_cursor)
        assert seen[:2] == ["1000", "1002"]
        with_label = Compare(QueryField.LABEL, Operator.LIKE, "*", "team")
        await store.find(JobQuery(project="p", where=with_label))
        assert sum((await store.counts()).values()) >= 2
        with pytest.raises(Unavailable, match=r"record of job 1001 is damaged .*Restore"):
            await store.load("1001")
        assert len([line for line in caplog.messages if "job 1001 is damaged" in line]) == 1
        assert await store.insert(a_job(9), ())


async def test_damaged_events_operations_and_caches_hide_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path / "jobs.db") as store:
        job = await store.insert(a_job(1), [an_event("kept"), an_event("odd"), an_event("kept")])
        await store.insert_cache(a_cache("odd"))
        await store.insert_cache(a_cache("kept"))
        for number in (1, 2):
            over = await store.insert(a_job(10 + number, status=ended()), ())
            name = f"projects/p/locations/us-central1/operations/{number}"
            await store.delete(over, Operation(name=name, kind="delete", target=over.name, created_at=T0))
        change(
            tmp_path,
            "UPDATE events SET reason = 'ODD' WHERE sequence = 2",
            "UPDATE image_caches SET body = '{' WHERE id = 'odd'",
            "UPDATE operations SET created_at = 'never' WHERE name LIKE '%/1'",
        )
        assert [event.message for event in await store.events(job.id)] == ["kept", "kept"]
        assert [cache.id for cache in await store.caches()] == ["kept"]
        with pytest.raises(Unavailable, match="image cache odd is damaged"):
            await store.cache("p", "us-central1", "odd")
        assert [item.name[-1] for item in await store.operations("p", 10)] == ["2"]


def change(folder: Path, *statements: str) -> None:
    """As another program, or a broken disk, might."""
    with contextlib.closing(sqlite3.connect(folder / "jobs.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()

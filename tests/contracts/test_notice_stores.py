"""SQLite, PostgreSQL and the memory store keep the promises about notices."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.contracts.notice_store import NoticeStoreContract, a_channel, end, take
from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite, Reopened, opened
from tests.contracts.store_values import a_job, an_event, ended
from trainshed.core.errors import Unavailable
from trainshed.store import SqlStore
from trainshed.store import notices as rows
from trainshed.testing.store import MemoryStore

__all__ = ["postgres"]


class TestMemoryNotices(NoticeStoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()


class TestSqliteNotices(OnSqlite, NoticeStoreContract):
    async def test_they_are_there_in_the_next_life(self, store: SqlStore, reopen: Reopened) -> None:
        await store.notices.insert_channel(a_channel(labels={}))
        job = await end(store)
        again = await reopen()
        assert dict(again.notices.channels) == {"id-team": a_channel()}
        assert await take(again) == [f"{job}-2-ended"]

    async def test_where_a_notice_cannot_be_kept_the_status_is_not_written(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object) -> None:
            raise Unavailable("no room")

        await store.notices.insert_channel(a_channel())
        job = await store.insert(a_job(), [])
        monkeypatch.setattr(rows, "insert", refuse)
        with pytest.raises(Unavailable):
            await store.write(job, ended(), [an_event()])
        assert await store.load(job.id) == job
        assert await store.events(job.id) == ()

    async def test_a_damaged_notice_keeps_no_other_back(self, store: SqlStore, url: str) -> None:
        await store.notices.insert_channel(a_channel())
        await end(store, 1)
        later = await end(store, 2)
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as other, other:
            other.execute("UPDATE notices SET body = '{' WHERE job = '1001'")
        first = await store.notices.first("id-team")
        assert first is not None and first.notice.job == later


async def test_a_database_from_before_there_were_notices_is_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    async with opened(path) as store:
        job = await store.insert(a_job(), ())
    with contextlib.closing(sqlite3.connect(path)) as older:
        older.executescript(
            "DROP TABLE notices; DROP TABLE notice_channels; "
            "DELETE FROM schema_migrations WHERE name = '0010_notices'"
        )
    async with opened(path) as store:
        assert await store.load(job.id) == job
        await store.notices.insert_channel(a_channel())
        await end(store, 2)
        assert len(await take(store)) == 1


@pytest.mark.needs_postgres
class TestPostgresNotices(OnPostgres, NoticeStoreContract): ...

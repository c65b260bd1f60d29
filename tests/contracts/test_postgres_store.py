"""PostgreSQL keeps the store's promises, and the store survives its restart."""

from dataclasses import replace

import psycopg
import pytest

from tests.contracts.postgres import Server, postgres
from tests.contracts.sql_store import OnPostgres, Reopened
from tests.contracts.store import DurableStoreContract
from tests.contracts.store_values import RUNNING, a_job, an_event, ended
from trainshed.core.errors import Conflict, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.ports import Store
from trainshed.core.query import JobQuery
from trainshed.store import SqlStore

pytestmark = pytest.mark.needs_postgres
__all__ = ["postgres"]


def by_id(job: Job) -> str:
    return job.id


class TestPostgresStore(OnPostgres, DurableStoreContract):
    async def test_a_restart_of_the_database_is_not_noticed_between_two_requests(
        self, store: Store, postgres: Server
    ) -> None:
        job = await store.insert(a_job(), [an_event()])
        postgres.stop()
        postgres.start()
        assert len(await store.events(job.id)) == 1
        changed = await store.write(job, RUNNING, [an_event()])
        assert await store.load(job.id) == changed
        assert len(await store.events(job.id)) == 2

    async def test_while_the_database_is_away_requests_are_refused_and_it_recovers_by_itself(
        self, store: Store, postgres: Server
    ) -> None:
        job = await store.insert(a_job(), ())
        postgres.stop()
        try:
            with pytest.raises(Unavailable, match="cannot be used"):
                await store.write(job, RUNNING)
            with pytest.raises(Unavailable, match="cannot be used"):
                await store.events(job.id)
        finally:
            postgres.start()
        assert (await store.write(job, RUNNING)).version == 2

    async def test_a_crash_of_a_database_that_does_not_flush_by_itself_loses_nothing(
        self, store: Store, postgres: Server, reopen: Reopened
    ) -> None:
        job = await store.insert(a_job(), [an_event()])
        written = await store.write(job, RUNNING, [an_event()], flush=False)
        postgres.crash()
        postgres.start()
        assert (await store.find(JobQuery(project="p"))).jobs == (written,)
        assert len(await store.events(job.id)) == 2
        assert await (await reopen()).active() == (written,)

    async def test_after_a_crash_that_lost_commits_jobs_go_on_from_what_the_database_has(
        self, store: Store, postgres: Server
    ) -> None:
        job, other, over = [await store.insert(a_job(number), ()) for number in range(3)]
        postgres.stop()
        postgres.save()
        postgres.start()
        lost = await store.write(await store.write(job, RUNNING), replace(RUNNING, attempt=1))
        await store.write(other, RUNNING)
        await store.write(over, ended())
        commits: list[Job] = []
        store.on_commit(lambda job, _: commits.append(job))
        postgres.crash()
        postgres.bring_back()
        postgres.start()
        commits.clear()
        with pytest.raises(Conflict):
            await store.write(lost, ended())
        assert await store.load(job.id) == job
        assert sorted(await store.active(), key=by_id) == sorted((job, other, over), key=by_id)
        assert sorted(set(map(by_id, commits))) == sorted(map(by_id, (job, other, over)))
        # Versions are given a second time: what was read of the lost ones is not taken for them.
        again = await store.write(job, replace(RUNNING, attempt=7))
        assert again.version == 2
        page = (await store.find(JobQuery(project="p"))).jobs
        assert sorted(page, key=by_id) == sorted((again, other, over), key=by_id)

    async def test_the_database_of_another_program_is_refused(self, postgres: Server) -> None:
        url = postgres.new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE schema_migrations (version TEXT)")
        with pytest.raises(Unavailable, match=r"belongs to another program.*--database"):
            await SqlStore(url).start()
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.execute("SELECT to_regclass('jobs')").fetchone() == (None,)

    async def test_a_password_is_never_told(self, url: str) -> None:
        with pytest.raises(Unavailable) as refused:
            await SqlStore("postgresql://someone:secret@127.0.0.1:1/none").start()
        assert "secret" not in str(refused.value)

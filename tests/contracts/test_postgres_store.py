"""PostgreSQL keeps the store's promises, and the store survives its restart."""

import pytest

from tests.contracts.postgres import Server, postgres
from tests.contracts.sql_store import OnPostgres
from tests.contracts.store import DurableStoreContract
from tests.contracts.store_values import RUNNING, a_job, an_event
from trainshed.core.errors import Unavailable
from trainshed.core.ports import Store
from trainshed.store import SqlStore

pytestmark = pytest.mark.needs_postgres
__all__ = ["postgres"]


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

    async def test_a_password_is_never_told(self, url: str) -> None:
        with pytest.raises(Unavailable) as refused:
            await SqlStore("postgresql://someone:secret@127.0.0.1:1/none").start()
        assert "secret" not in str(refused.value)

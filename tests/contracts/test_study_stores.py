"""SQLite and PostgreSQL keep the promises about studies."""

import pytest

from tests.contracts.postgres import postgres
from tests.contracts.sql_store import OnPostgres, OnSqlite, Reopened
from tests.contracts.study_store import StudyStoreContract, a_study, full_trial
from trainshed.core.tuning.study_port import StudyStore
from trainshed.store import SqlStore

__all__ = ["postgres"]


class OnSqlStudies(StudyStoreContract):
    """The contract over the studies of a SQL store."""

    @pytest.fixture
    def studies(self, store: SqlStore) -> StudyStore:
        return store.studies


class TestSqliteStudies(OnSqlite, OnSqlStudies):
    async def test_what_was_written_is_there_in_the_next_life(
        self, store: SqlStore, reopen: Reopened
    ) -> None:
        study = await store.studies.insert_study(a_study())
        study = await store.studies.write_study(study, new=(full_trial(1),))
        again = await reopen()
        assert await again.studies.load_study(study.id) == study
        assert await again.studies.trials(study.id) == (full_trial(1),)
        assert await again.studies.active_studies() == (study,)


@pytest.mark.needs_postgres
class TestPostgresStudies(OnPostgres, OnSqlStudies): ...

"""Brings a database to the schema of this version, one named step after the other.

Each step runs in one transaction together with the row that records it, so a crash leaves it done or
undone. Steps are frozen once released: they spell out their SQL and never read `tables.py`, which moves
on. A database that records an unknown step comes from a newer version and is refused.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from trainshed.core.errors import Unavailable
from trainshed.store.codec import write_time
from trainshed.store.connection import SqlConnection, SqlError, insert_into
from trainshed.store.first_day_uses import fill_day_uses
from trainshed.store.tables import SCHEMA_MIGRATIONS


@dataclass(frozen=True, slots=True)
class Migration:
    """A name never used again, and statements in which {text} is the dialect's bytewise text."""

    name: str
    statements: tuple[str, ...]
    fill: Callable[[SqlConnection], None] | None = None  # after the statements: what SQL alone cannot say


_FIRST = Migration(
    "0001_jobs_events_operations",
    (
        """CREATE TABLE jobs (
            id {text} NOT NULL PRIMARY KEY,
            project {text} NOT NULL,
            location {text} NOT NULL,
            display_name {text} NOT NULL,
            state {text} NOT NULL,
            created_at {text} NOT NULL,
            updated_at {text} NOT NULL,
            started_at {text},
            ended_at {text},
            labels {text} NOT NULL,
            spec {text} NOT NULL,
            status {text} NOT NULL,
            extras {text} NOT NULL,
            version INTEGER NOT NULL,
            idempotency_key {text}
        )""",
        "CREATE INDEX jobs_by_age ON jobs (project, created_at, id, location, display_name)",
        "CREATE INDEX jobs_by_state ON jobs (state, project, created_at, id)",
        "CREATE INDEX jobs_by_name ON jobs (project, display_name, created_at, id)",
        "CREATE UNIQUE INDEX jobs_by_key ON jobs (project, idempotency_key)",
        """CREATE TABLE events (
            job_id {text} NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            sequence INTEGER NOT NULL,
            at {text} NOT NULL,
            reason {text} NOT NULL,
            message {text} NOT NULL,
            severity {text} NOT NULL,
            attempt INTEGER NOT NULL,
            task {text} NOT NULL,
            PRIMARY KEY (job_id, sequence)
        ){without_rowid}""",
        """CREATE TABLE operations (
            name {text} NOT NULL PRIMARY KEY,
            kind {text} NOT NULL,
            target {text} NOT NULL,
            created_at {text} NOT NULL
        )""",
    ),
)

_CODE = Migration(
    "0002_code_of_jobs",
    (
        "ALTER TABLE jobs ADD COLUMN code {text}",
        "CREATE INDEX jobs_by_code ON jobs (code) WHERE code IS NOT NULL",
    ),
)

_KINDS = Migration(
    "0003_kinds_of_jobs_and_models",
    (
        "ALTER TABLE jobs ADD COLUMN kind {text}",
        "CREATE INDEX jobs_by_kind ON jobs (project, kind, created_at, id) WHERE kind IS NOT NULL",
        """CREATE TABLE models (
            project {text} NOT NULL,
            location {text} NOT NULL,
            id {text} NOT NULL,
            display_name {text} NOT NULL,
            created_at {text},
            labels {text} NOT NULL,
            artifact {text} NOT NULL,
            job {text} NOT NULL,
            said {text} NOT NULL,
            PRIMARY KEY (project, location, id)
        )""",
        "CREATE INDEX models_by_job ON models (job)",
        "CREATE INDEX models_by_age ON models (project, created_at, id)",
    ),
)

_CACHES = Migration(
    "0004_image_caches",
    (
        """CREATE TABLE image_caches (
            project {text} NOT NULL,
            location {text} NOT NULL,
            id {text} NOT NULL,
            created_at {text} NOT NULL,
            body {text} NOT NULL,
            PRIMARY KEY (project, location, id)
        )""",
    ),
)

# No reference to the jobs: intervals outlive them.
_LEDGER = Migration(
    "0005_ledger",
    (
        """CREATE TABLE intervals (
            job_id {text} NOT NULL,
            attempt INTEGER NOT NULL,
            pool INTEGER NOT NULL,
            replica INTEGER NOT NULL,
            run INTEGER NOT NULL,
            spent_on {text} NOT NULL,
            from_at {text} NOT NULL,
            to_at {text} NOT NULL,
            project {text} NOT NULL,
            location {text} NOT NULL,
            node {text} NOT NULL,
            cpus FLOAT NOT NULL,
            memory BIGINT NOT NULL,
            gpus INTEGER NOT NULL,
            devices {text} NOT NULL,
            exit {text},
            PRIMARY KEY (job_id, attempt, pool, replica, run, spent_on, from_at)
        ){without_rowid}""",
    ),
)

_OWNERS = Migration(
    "0006_owners_of_jobs",
    (
        "ALTER TABLE jobs ADD COLUMN owner {text}",
        "UPDATE jobs SET owner = 'pipeline/' || id WHERE kind = 'pipeline'",
        "CREATE INDEX jobs_by_owner ON jobs (project, owner, created_at, id) WHERE owner IS NOT NULL",
    ),
)

# `jobs_listed` has every column that a filter may look into: a search reads it instead of the wide rows. The
# others are the orders of lists; counts read the last.
_LISTS = Migration(
    "0007_orders_and_submitters_of_jobs",
    (
        "ALTER TABLE jobs ADD COLUMN submitter {text}",
        """CREATE INDEX jobs_listed ON jobs
            (created_at, id, project, location, state, display_name, kind, submitter{searched})""",
        "CREATE INDEX jobs_by_any_name ON jobs (display_name, id, project, location)",
        "CREATE INDEX jobs_by_update ON jobs (updated_at, id, project, location)",
        "CREATE INDEX jobs_by_start ON jobs ((COALESCE(started_at, '')), id, project, location)",
        "CREATE INDEX jobs_by_end ON jobs ((COALESCE(ended_at, '')), id, project, location)",
        "CREATE INDEX jobs_by_state_and_id ON jobs (state, id, project, location)",
    ),
)

_STUDIES = Migration(
    "0008_studies_and_trials",
    (
        """CREATE TABLE studies (
            id {text} NOT NULL PRIMARY KEY,
            project {text} NOT NULL,
            location {text} NOT NULL,
            display_name {text} NOT NULL,
            state {text} NOT NULL,
            kind {text} NOT NULL,
            created_at {text} NOT NULL,
            updated_at {text} NOT NULL,
            started_at {text},
            ended_at {text},
            labels {text} NOT NULL,
            submitter {text} NOT NULL,
            body {text} NOT NULL,
            version INTEGER NOT NULL,
            idempotency_key {text}
        )""",
        "CREATE INDEX studies_by_age ON studies (created_at, id)",
        "CREATE UNIQUE INDEX studies_by_key ON studies (project, idempotency_key)",
        """CREATE TABLE trials (
            study {text} NOT NULL,
            number INTEGER NOT NULL,
            state {text} NOT NULL,
            client {text} NOT NULL,
            job {text} NOT NULL,
            value DOUBLE PRECISION,
            started_at {text},
            ended_at {text},
            seconds DOUBLE PRECISION,
            outline {text} NOT NULL,
            body {text} NOT NULL,
            PRIMARY KEY (study, number)
        ){without_rowid}""",
        # All that lists sort and count by: no body is read for it.
        "CREATE INDEX trials_listed ON trials (study, state, value, started_at, seconds, number)",
    ),
)

_DAY_USES = Migration(
    "0009_day_uses",
    (
        """CREATE TABLE day_uses (
            day {text} NOT NULL,
            project {text} NOT NULL,
            location {text} NOT NULL,
            job_id {text} NOT NULL,
            spent_on {text} NOT NULL,
            node {text} NOT NULL,
            machine_type {text} NOT NULL,
            cpus DOUBLE PRECISION NOT NULL,
            memory BIGINT NOT NULL,
            gpus INTEGER NOT NULL,
            accelerator {text} NOT NULL,
            is_spot INTEGER NOT NULL,
            micros BIGINT NOT NULL,
            PRIMARY KEY (day, project, location, job_id, spent_on, node, machine_type, cpus, memory, gpus,
                accelerator, is_spot)
        ){without_rowid}""",
        "CREATE INDEX day_uses_by_job ON day_uses (job_id)",
        """CREATE TABLE day_totals (
            day {text} NOT NULL,
            project {text} NOT NULL,
            location {text} NOT NULL,
            spent_on {text} NOT NULL,
            node {text} NOT NULL,
            machine_type {text} NOT NULL,
            cpus DOUBLE PRECISION NOT NULL,
            memory BIGINT NOT NULL,
            gpus INTEGER NOT NULL,
            accelerator {text} NOT NULL,
            is_spot INTEGER NOT NULL,
            micros BIGINT NOT NULL,
            PRIMARY KEY (day, project, location, spent_on, node, machine_type, cpus, memory, gpus,
                accelerator, is_spot)
        ){without_rowid}""",
        """CREATE TABLE deleted_jobs (
            id {text} NOT NULL PRIMARY KEY,
            display_name {text} NOT NULL,
            labels {text} NOT NULL
        ){without_rowid}""",
    ),
    fill_day_uses,
)

_NOTICES = Migration(
    "0010_notices",
    (
        """CREATE TABLE notice_channels (
            id {text} NOT NULL PRIMARY KEY,
            project {text} NOT NULL,
            name {text} NOT NULL,
            created_at {text} NOT NULL,
            body {text} NOT NULL,
            given_up INTEGER NOT NULL,
            last_success_at {text},
            last_error_at {text},
            last_error {text} NOT NULL
        )""",
        "CREATE UNIQUE INDEX notice_channels_by_name ON notice_channels (project, name)",
        """CREATE TABLE notices (
            channel {text} NOT NULL,
            id {text} NOT NULL,
            job {text} NOT NULL,
            at {text} NOT NULL,
            due_at {text} NOT NULL,
            tries INTEGER NOT NULL,
            body {text} NOT NULL,
            PRIMARY KEY (channel, id)
        ){without_rowid}""",
        "CREATE INDEX notices_by_age ON notices (channel, at, id)",
        "CREATE INDEX notices_by_job ON notices (channel, job, at, id)",
    ),
)

_SUBMITTERS_OF_DELETED = Migration(
    "0011_submitters_of_deleted_jobs", ("ALTER TABLE deleted_jobs ADD COLUMN submitter {text}",)
)

_RESOURCES = Migration(
    "0012_persistent_resources",
    (
        """CREATE TABLE persistent_resources (
            project {text} NOT NULL,
            location {text} NOT NULL,
            id {text} NOT NULL,
            created_at {text} NOT NULL,
            body {text} NOT NULL,
            PRIMARY KEY (project, location, id)
        )""",
    ),
)

MIGRATIONS: tuple[Migration, ...] = (
    _FIRST,
    _CODE,
    _KINDS,
    _CACHES,
    _LEDGER,
    _OWNERS,
    _LISTS,
    _STUDIES,
    _DAY_USES,
    _NOTICES,
    _SUBMITTERS_OF_DELETED,
    _RESOURCES,
)

APPLICATION = 0x54725368  # in the header of SQLite files that Trainshed made (see ownership.py)

_NO_SUCH_COLUMN = "42703"  # of PostgreSQL

_WORDS = {
    "sqlite": {
        "text": "TEXT",
        "without_rowid": " WITHOUT ROWID",
        "searched": ", updated_at, started_at, ended_at, labels",
    },
    # An entry of an index in PostgreSQL has at most 2,704 bytes, which labels may exceed.
    "postgresql": {"text": 'TEXT COLLATE "C"', "without_rowid": "", "searched": ""},
}
_HAS_MIGRATIONS = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'",
    "postgresql": "SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL",
}


def migrate(
    connection: SqlConnection,
    begin: Callable[[SqlConnection], None],
    where: str,
    migrations: Iterable[Migration] = MIGRATIONS,
) -> None:
    """Apply what is missing. `where` names the database in the sentence of a refusal."""
    words = _WORDS[connection.dialect]
    wanted = tuple(migrations)
    begin(connection)
    if connection.row(_HAS_MIGRATIONS[connection.dialect]) is None:
        connection.execute(
            "CREATE TABLE schema_migrations (name {text} NOT NULL PRIMARY KEY, "
            "applied_at {text} NOT NULL)".format(**words)
        )
    if connection.dialect == "sqlite" and connection.row("PRAGMA application_id") != (APPLICATION,):
        connection.execute(f"PRAGMA application_id={APPLICATION}")
    applied = _applied(connection, where)
    connection.commit()
    if applied and wanted and wanted[0].name not in applied:
        raise _foreign(where)
    unknown = sorted(applied - {migration.name for migration in wanted})
    if unknown:
        raise Unavailable(
            f"{where} was written by a newer version of Trainshed (it has the migration {unknown[-1]}, "
            "which this version does not know). Start that version again, or restore a backup made before it."
        )
    for migration in wanted:
        if migration.name not in applied:
            _apply(connection, begin, migration, words)


def _applied(connection: SqlConnection, where: str) -> frozenset[str]:
    try:
        return frozenset(name for (name,) in connection.rows("SELECT name FROM schema_migrations"))
    except SqlError as error:
        if getattr(error.reason, "sqlstate", "") != _NO_SUCH_COLUMN:
            raise
        raise _foreign(where) from error


def _foreign(where: str) -> Unavailable:
    return Unavailable(
        f"{where} belongs to another program: its table schema_migrations is not Trainshed's. "
        "Nothing was changed. Name another database with --database."
    )


def _apply(
    connection: SqlConnection,
    begin: Callable[[SqlConnection], None],
    migration: Migration,
    words: dict[str, str],
) -> None:
    begin(connection)
    for statement in migration.statements:
        connection.execute(statement.format(**words))
    if migration.fill is not None:
        migration.fill(connection)
    now = write_time(datetime.now(UTC))
    recorded = {"name": migration.name, "applied_at": now}
    connection.execute(insert_into("schema_migrations", SCHEMA_MIGRATIONS), recorded)
    connection.commit()

"""The tables for SQLAlchemy. `migrations.py` creates them; a test compares the two.

Times are text of fixed width in UTC, JSON is text: both read the same in SQLite and PostgreSQL. Text
compares by bytes in both (PostgreSQL is told so), so that pages and comparisons come out alike whatever
the locale. Only fields that a query uses have a column; the others are in the JSON.
"""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text

metadata = MetaData()

_text = Text().with_variant(Text(collation="C"), "postgresql")

jobs = Table(
    "jobs",
    metadata,
    Column("id", _text, primary_key=True),
    Column("project", _text, nullable=False),
    Column("location", _text, nullable=False),
    Column("display_name", _text, nullable=False),
    Column("state", _text, nullable=False),
    Column("created_at", _text, nullable=False),
    Column("updated_at", _text, nullable=False),
    Column("started_at", _text),
    Column("ended_at", _text),
    Column("labels", _text, nullable=False),
    Column("spec", _text, nullable=False),
    Column("status", _text, nullable=False),
    Column("extras", _text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("idempotency_key", _text),
    Column("code", _text),
    Column("kind", _text),
    Column("owner", _text),
)
# The last two ride along so that a page of another location, or a wildcard, skips rows without touching them.
Index("jobs_by_age", jobs.c.project, jobs.c.created_at, jobs.c.id, jobs.c.location, jobs.c.display_name)
# It begins with the state, so that it also answers "which are active" and "how many of each".
Index("jobs_by_state", jobs.c.state, jobs.c.project, jobs.c.created_at, jobs.c.id)
Index("jobs_by_name", jobs.c.project, jobs.c.display_name, jobs.c.created_at, jobs.c.id)
Index("jobs_by_key", jobs.c.project, jobs.c.idempotency_key, unique=True)
# Only of jobs that have one, as the migrations say: the others pay nothing for it. Said here in PostgreSQL's
# words it would have every server import what speaks to PostgreSQL.
Index("jobs_by_code", jobs.c.code)
Index("jobs_by_kind", jobs.c.project, jobs.c.kind, jobs.c.created_at, jobs.c.id)
Index("jobs_by_owner", jobs.c.project, jobs.c.owner, jobs.c.created_at, jobs.c.id)

models = Table(
    "models",
    metadata,
    Column("project", _text, primary_key=True),
    Column("location", _text, primary_key=True),
    Column("id", _text, primary_key=True),
    Column("display_name", _text, nullable=False),
    Column("created_at", _text),  # NULL during training: the name is reserved, and nobody sees the model
    Column("labels", _text, nullable=False),
    Column("artifact", _text, nullable=False),
    Column("job", _text, nullable=False),
    Column("said", _text, nullable=False),
)
Index("models_by_job", models.c.job)
Index("models_by_age", models.c.project, models.c.created_at, models.c.id)

image_caches = Table(
    "image_caches",
    metadata,
    Column("project", _text, primary_key=True),
    Column("location", _text, primary_key=True),
    Column("id", _text, primary_key=True),
    Column("created_at", _text, nullable=False),
    Column("body", _text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("job_id", _text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("at", _text, nullable=False),
    Column("reason", _text, nullable=False),
    Column("message", _text, nullable=False),
    Column("severity", _text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("task", _text, nullable=False),
    sqlite_with_rowid=False,
)

# Written once and never changed. No reference to the jobs: intervals outlive them.
intervals = Table(
    "intervals",
    metadata,
    Column("job_id", _text, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("pool", Integer, primary_key=True, autoincrement=False),
    Column("replica", Integer, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("spent_on", _text, primary_key=True),
    Column("from_at", _text, primary_key=True),
    Column("to_at", _text, nullable=False),
    Column("project", _text, nullable=False),
    Column("location", _text, nullable=False),
    Column("node", _text, nullable=False),
    Column("cpus", Float, nullable=False),
    Column("memory", BigInteger, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("devices", _text, nullable=False),
    Column("exit", _text),
    sqlite_with_rowid=False,
)

operations = Table(
    "operations",
    metadata,
    Column("name", _text, primary_key=True),
    Column("kind", _text, nullable=False),
    Column("target", _text, nullable=False),
    Column("created_at", _text, nullable=False),
)

schema_migrations = Table(
    "schema_migrations",
    metadata,
    Column("name", _text, primary_key=True),
    Column("applied_at", _text, nullable=False),
)

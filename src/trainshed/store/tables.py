"""The columns of each table, in their order. `migrations.py` creates them; a test compares the two.

Times are text of fixed width in UTC, JSON is text: both read the same in SQLite and PostgreSQL. Text
compares by bytes in both (PostgreSQL is told so), so that pages and comparisons come out alike whatever
the locale. Only fields that a query uses have a column; the others are in the JSON.
"""

JOBS = (
    "id",
    "project",
    "location",
    "display_name",
    "state",
    "created_at",
    "updated_at",
    "started_at",
    "ended_at",
    "labels",
    "spec",
    "status",
    "extras",
    "version",
    "idempotency_key",
    "code",
    "kind",
    "owner",
    "submitter",
)
# `created_at` is NULL during training: the name is reserved, and nobody sees the model.
MODELS = (
    "project",
    "location",
    "id",
    "display_name",
    "created_at",
    "labels",
    "artifact",
    "job",
    "said",
)
STUDIES = (
    "id",
    "project",
    "location",
    "display_name",
    "state",
    "kind",
    "created_at",
    "updated_at",
    "started_at",
    "ended_at",
    "labels",
    "submitter",
    "body",
    "version",
    "idempotency_key",
)
# The body comes last: whoever reads the others does not touch its pages.
TRIALS = (
    "study",
    "number",
    "state",
    "client",
    "job",
    "value",
    "started_at",
    "ended_at",
    "seconds",
    "outline",
    "body",
)
PERSISTENT_RESOURCES = ("project", "location", "id", "created_at", "body")
IMAGE_CACHES = ("project", "location", "id", "created_at", "body")
EVENTS = ("job_id", "sequence", "at", "reason", "message", "severity", "attempt", "task")
# Written once and never changed. No reference to the jobs: intervals outlive them.
INTERVALS = (
    "job_id",
    "attempt",
    "pool",
    "replica",
    "run",
    "spent_on",
    "from_at",
    "to_at",
    "project",
    "location",
    "node",
    "cpus",
    "memory",
    "gpus",
    "devices",
    "exit",
)
# Intervals summed up by day (core.day_use), in the same write.
DAY_USES = (
    "day",
    "project",
    "location",
    "job_id",
    "spent_on",
    "node",
    "machine_type",
    "cpus",
    "memory",
    "gpus",
    "accelerator",
    "is_spot",
    "micros",
)
DAY_TOTALS = tuple(name for name in DAY_USES if name != "job_id")  # of all jobs together
DELETED_JOBS = (
    "id",
    "display_name",
    "labels",
    "submitter",
)  # what costs are told by, also of jobs that are gone
NOTICE_CHANNELS = (
    "id",
    "project",
    "name",
    "created_at",
    "body",
    "given_up",
    "last_success_at",
    "last_error_at",
    "last_error",
)
# What channels have not taken yet. No reference to the jobs: a notice outlives its job.
NOTICES = ("channel", "id", "job", "at", "due_at", "tries", "body")
OPERATIONS = ("name", "kind", "target", "created_at")
SCHEMA_MIGRATIONS = ("name", "applied_at")

TABLES = {
    "jobs": JOBS,
    "models": MODELS,
    "image_caches": IMAGE_CACHES,
    "persistent_resources": PERSISTENT_RESOURCES,
    "studies": STUDIES,
    "trials": TRIALS,
    "events": EVENTS,
    "intervals": INTERVALS,
    "day_uses": DAY_USES,
    "day_totals": DAY_TOTALS,
    "deleted_jobs": DELETED_JOBS,
    "notice_channels": NOTICE_CHANNELS,
    "notices": NOTICES,
    "operations": OPERATIONS,
    "schema_migrations": SCHEMA_MIGRATIONS,
}

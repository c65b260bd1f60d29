"""Conditions and orders of jobs, evaluated in Python: the second opinion on the translation to SQL."""

import json
from datetime import UTC, datetime
from typing import assert_never

from trainshed.core import query
from trainshed.core.jobs.job import Job
from trainshed.core.query import (
    CUSTOM_JOB,
    Compare,
    Condition,
    JobQuery,
    Operator,
    QueryField,
    contains,
    is_like,
    stored_text,
)


def place(job: Job, field: QueryField = QueryField.CREATED) -> tuple[str, str]:
    """Where a job stands in an order of pages."""
    return value_of(job, Compare(field, Operator.EQ, "")) or "", job.id


def matches(job: Job, condition: Condition) -> bool:
    """Whether a job meets a condition. What it does not have equals nothing."""
    match condition:
        case query.AllOf(parts):
            return all(matches(job, part) for part in parts)
        case query.AnyOf(parts):
            return any(matches(job, part) for part in parts)
        case query.NotOf(part):
            return not matches(job, part)
        case Compare():
            return _compare(job, condition)
    assert_never(condition)


def is_asked(job: Job, query: JobQuery) -> bool:
    """Whether a job is on one of the pages of the query."""
    if query.kind and job.kind != query.kind:
        return False
    if query.owner and job.owner != query.owner:
        return False
    if query.project not in ("-", job.project) or query.location not in ("-", job.location):
        return False
    return query.where is None or matches(job, query.where)


def _compare(job: Job, wanted: Compare) -> bool:
    if wanted.field is QueryField.TEXT:
        texts = (job.display_name, job.id, job.submitter)
        labels = json.dumps(dict(job.labels), separators=(",", ":"))
        text = str(wanted.value)
        return any(contains(each, text) for each in texts) or contains(labels, stored_text(text))
    actual = value_of(job, wanted)
    value = stored_time(wanted.value) if isinstance(wanted.value, datetime) else wanted.value
    if actual is None:
        return wanted.op is Operator.NE
    match wanted.op:
        case Operator.EQ:
            return actual == value
        case Operator.NE:
            return actual != value
        case Operator.LT:
            return actual < value
        case Operator.LE:
            return actual <= value
        case Operator.GT:
            return actual > value
        case Operator.GE:
            return actual >= value
        case Operator.LIKE:
            return is_like(actual, value)
    assert_never(wanted.op)


def value_of(job: Job, wanted: Compare) -> str | None:
    """What a job has of the field asked about, as it is stored; None where it has nothing."""
    match wanted.field:
        case QueryField.DISPLAY_NAME:
            return job.display_name
        case QueryField.STATE:
            return job.status.state.value
        case QueryField.CREATED:
            return stored_time(job.created_at)
        case QueryField.UPDATED:
            return stored_time(job.status.updated_at or job.created_at)
        case QueryField.STARTED:
            return stored_time(job.status.started_at) if job.status.started_at else None
        case QueryField.ENDED:
            return stored_time(job.status.ended_at) if job.status.ended_at else None
        case QueryField.ID:
            return job.id
        case QueryField.PROJECT:
            return job.project
        case QueryField.LOCATION:
            return job.location
        case QueryField.KIND:
            return job.kind or CUSTOM_JOB
        case QueryField.SUBMITTER:
            return job.submitter or None
        case QueryField.LABEL:
            return job.labels.get(wanted.label)
        case QueryField.TEXT:
            return None
    assert_never(wanted.field)


def stored_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

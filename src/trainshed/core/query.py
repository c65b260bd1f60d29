"""A query for jobs: a small condition tree. Stores translate it to SQL; the fake store evaluates it."""

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from trainshed.core.jobs.job import Owner


class QueryField(StrEnum):
    DISPLAY_NAME = "display_name"
    STATE = "state"
    CREATED = "created_at"
    UPDATED = "updated_at"
    STARTED = "started_at"
    ENDED = "ended_at"
    LABEL = "label"
    ID = "id"
    PROJECT = "project"
    LOCATION = "location"
    KIND = "kind"  # `Job.kind`, or CUSTOM_JOB
    SUBMITTER = "submitter"
    TEXT = "text"  # display name, id, submitter, keys and values of labels together


CUSTOM_JOB = "custom"  # the kind of jobs without an origin, in queries and lists


class Operator(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    LIKE = ":"  # a wildcard match; for a label, `*` means it exists


def is_like(text: str, pattern: str) -> bool:
    """Whether the whole text fits the pattern, in which each `*` is any text. Never backtracks."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    *middle, last = rest
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        start = text.find(piece, at, end)
        if start < 0:
            return False
        at = start + len(piece)
    return True


def contains(text: str, pattern: str) -> bool:
    """Whether the pattern, in which each `*` is any text, is somewhere in the text.

    Only ASCII letters are compared without case, as databases do it.
    """
    return is_like(_lowered(text), f"*{_lowered(pattern)}*")


def stored_text(text: str) -> str:
    """The text as it is inside of JSON, as labels are stored."""
    return json.dumps(text)[1:-1]


def _lowered(text: str) -> str:
    return text.translate(_LOWER)


_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True, slots=True)
class Compare:
    field: QueryField
    op: Operator
    value: str | datetime
    label: str = ""  # which label, where field is LABEL


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class NotOf:
    part: "Condition"


Condition: TypeAlias = Compare | AllOf | AnyOf | NotOf


@dataclass(frozen=True, slots=True)
class JobOrder:
    """By a time, the display name or the state, then by id. A time that a job lacks is the earliest."""

    field: QueryField = QueryField.CREATED
    is_descending: bool = True


NEWEST_FIRST = JobOrder()
OLDEST_FIRST = JobOrder(is_descending=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    """Jobs of a project and location ("-": of all), newest first unless said otherwise."""

    project: str
    location: str = "-"
    where: Condition | None = None
    limit: int = 100
    cursor: tuple[str, str] | None = None  # from the page before
    order: JobOrder = NEWEST_FIRST
    kind: str = ""  # only jobs of this kind (`Job.kind`)
    owner: Owner | None = None  # only jobs that belong to it


def is_searching(condition: Condition) -> bool:
    """Whether the condition looks into texts, so that a store can only answer it by reading every job."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return any(is_searching(part) for part in parts)
        case NotOf(part):
            return is_searching(part)
        case Compare():
            return condition.op is Operator.LIKE or condition.field in _SEARCHED


_SEARCHED = frozenset({QueryField.LABEL, QueryField.TEXT, QueryField.KIND, QueryField.SUBMITTER})

"""A query for jobs: a small condition tree. Stores translate it to SQL; the fake store evaluates it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from trainshed.core.job import Owner


class QueryField(StrEnum):
    DISPLAY_NAME = "display_name"
    STATE = "state"
    CREATED = "created_at"
    UPDATED = "updated_at"
    STARTED = "started_at"
    ENDED = "ended_at"
    LABEL = "label"
    ID = "id"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQuery:
    """Jobs of a project (and location, unless "-"), newest first unless said otherwise."""

    project: str
    location: str = "-"
    where: Condition | None = None
    limit: int = 100
    cursor: tuple[str, str] | None = None  # from the page before
    oldest_first: bool = False
    kind: str = ""  # only jobs of this kind (`Job.kind`)
    owner: Owner | None = None  # only jobs that belong to it

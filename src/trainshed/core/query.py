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

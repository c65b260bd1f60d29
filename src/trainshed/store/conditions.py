"""A condition on jobs as a SQL expression, the same for SQLite and PostgreSQL.

Every comparison is true or false, never unknown: what a job does not have (a label, a time) equals
nothing and is neither before nor after anything, so `!=` is exactly the opposite of `=`. Wildcards match
the whole text and mind the case. Values are always bound, never written into the SQL text.
"""

import json
from datetime import datetime
from typing import Any, assert_never

from trainshed.core import query
from trainshed.core.query import Compare, Condition, Operator, QueryField
from trainshed.store.codec import write_time

_SIGNS = {
    Operator.EQ: "=",
    Operator.NE: "<>",
    Operator.LT: "<",
    Operator.LE: "<=",
    Operator.GT: ">",
    Operator.GE: ">=",
}


def to_sql(condition: Condition, dialect: str, values: dict[str, Any]) -> str:
    """The expression over a table that has a column for each field asked about. Its values join `values`."""
    match condition:
        case query.AllOf(parts):
            return f"({' AND '.join(['TRUE', *(to_sql(part, dialect, values) for part in parts)])})"
        case query.AnyOf(parts):
            return f"({' OR '.join(['FALSE', *(to_sql(part, dialect, values) for part in parts)])})"
        case query.NotOf(part):
            return f"(NOT {to_sql(part, dialect, values)})"
        case Compare():
            return _compare(condition, dialect, values)
    assert_never(condition)


def _compare(wanted: Compare, dialect: str, values: dict[str, Any]) -> str:
    if wanted.field is QueryField.TEXT:
        return _search(str(wanted.value), dialect, values)
    if wanted.field is QueryField.LABEL and dialect == "sqlite" and wanted.op in (Operator.EQ, Operator.NE):
        return _stored_label(wanted, values)
    column, nullable = _column(wanted, dialect, values)
    result = _apply(wanted, column, dialect, values)
    if not nullable:
        return result
    # A missing value makes SQL answer NULL, which `NOT` would keep.
    return f"COALESCE({result}, {'TRUE' if wanted.op is Operator.NE else 'FALSE'})"


def _apply(wanted: Compare, column: str, dialect: str, values: dict[str, Any]) -> str:
    value = write_time(wanted.value) if isinstance(wanted.value, datetime) else wanted.value
    if wanted.op is not Operator.LIKE:
        return f"({column} {_SIGNS[wanted.op]} {_bound(value, values)})"
    if wanted.field is QueryField.LABEL and value == "*":
        return f"({column} IS NOT NULL)"
    if dialect == "sqlite":
        # SQLite's LIKE ignores the case of ASCII letters; GLOB does not. The plus keeps it from walking the
        # index of names for a short prefix and sorting thousands of jobs, where one page was asked for.
        return f"(+{column} GLOB {_bound(glob_pattern(value), values)})"
    return f"({column} LIKE {_bound(like_pattern(value), values)} ESCAPE '\\')"


def _bound(value: str, values: dict[str, Any]) -> str:
    """Add the value under a new name; how SQL names it."""
    name = f"condition_{len(values)}"
    values[name] = value
    return f":{name}"


def glob_pattern(pattern: str) -> str:
    return pattern.replace("[", "[[]").replace("?", "[?]")


def like_pattern(pattern: str) -> str:
    for special in "\\%_":
        pattern = pattern.replace(special, f"\\{special}")
    return pattern.replace("*", "%")


def _column(wanted: Compare, dialect: str, values: dict[str, Any]) -> tuple[str, bool]:
    """The column asked about, and whether a row may lack it."""
    match wanted.field:
        case QueryField.DISPLAY_NAME:
            return "display_name", False
        case QueryField.STATE:
            return "state", False
        case QueryField.CREATED:
            return "created_at", False
        case QueryField.UPDATED:
            return "updated_at", False
        case QueryField.STARTED:
            return "started_at", True
        case QueryField.ENDED:
            return "ended_at", True
        case QueryField.ID:
            return "id", False
        case QueryField.PROJECT:
            return "project", False
        case QueryField.LOCATION:
            return "location", False
        case QueryField.KIND:
            return f"COALESCE(kind, '{query.CUSTOM_JOB}')", False
        case QueryField.SUBMITTER:
            return "submitter", True
        case QueryField.LABEL:
            return label_value(wanted.label, dialect, values), True
        case QueryField.TEXT:
            raise AssertionError("a text is in several columns")
    assert_never(wanted.field)


def _search(text: str, dialect: str, values: dict[str, Any]) -> str:
    """Whether the text is in name, id, submitter or the stored text of labels, ASCII letters without case.

    The fewer texts are compared, the sooner all jobs are: an id has digits only.
    """
    like = "LIKE" if dialect == "sqlite" else "ILIKE"
    wanted = f"{like} {_bound(like_pattern(f'*{text}*'), values)} ESCAPE '\\'"
    stored = f"{like} {_bound(like_pattern(f'*{query.stored_text(text)}*'), values)} ESCAPE '\\'"
    parts = [f"display_name {wanted}", f"COALESCE(submitter {wanted}, FALSE)", f"labels {stored}"]
    if not text.strip("0123456789*"):
        parts.append(f"id {wanted}")
    return f"({' OR '.join(parts)})"


def _stored_label(wanted: Compare, values: dict[str, Any]) -> str:
    """Whether the stored text of labels has this one, which is much quicker than to unfold it.

    A quotation mark behind a brace or comma begins a key: inside of texts they are escaped.
    """
    pair = json.dumps({wanted.label: wanted.value}, separators=(",", ":"))[1:-1]
    has_it = " OR ".join(f"instr(labels, {_bound(sign + pair, values)})" for sign in "{,")
    return f"(NOT ({has_it}))" if wanted.op is Operator.NE else f"({has_it})"


def label_value(name: str, dialect: str, values: dict[str, Any]) -> str:
    """The value of one label. It unfolds the JSON object, because SQLite cannot quote a path."""
    key = _bound(name, values)
    if dialect == "sqlite":
        # A damaged row has no labels: SQLite would fail the whole query.
        labels = "CASE WHEN json_valid(labels) THEN labels ELSE '{}' END"
        return f"(SELECT CAST(value AS TEXT) FROM json_each({labels}) WHERE key = {key})"
    unfolded = "json_each_text(CAST(labels AS JSON)) AS label"
    return f'(SELECT label.value FROM {unfolded} WHERE label.key = {key}) COLLATE "C"'

"""A condition on jobs as a SQL expression, the same for SQLite and PostgreSQL.

Every comparison is true or false, never unknown: what a job does not have (a label, a time) equals
nothing and is neither before nor after anything, so `!=` is exactly the opposite of `=`. Wildcards match
the whole text and mind the case. Values are always bound, never written into the SQL text.
"""

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
        case QueryField.LABEL:
            return _label(wanted.label, dialect, values), True
    assert_never(wanted.field)


def _label(name: str, dialect: str, values: dict[str, Any]) -> str:
    """The value of one label. It unfolds the JSON object, because SQLite cannot quote a path."""
    key = _bound(name, values)
    if dialect == "sqlite":
        # A damaged row has no labels: SQLite would fail the whole query.
        labels = "CASE WHEN json_valid(labels) THEN labels ELSE '{}' END"
        return f"(SELECT CAST(value AS TEXT) FROM json_each({labels}) WHERE key = {key})"
    unfolded = "json_each_text(CAST(labels AS JSON)) AS label"
    return f'(SELECT label.value FROM {unfolded} WHERE label.key = {key}) COLLATE "C"'

"""A condition on jobs as a SQL expression, the same for SQLite and PostgreSQL.

Every comparison is true or false, never unknown: what a job does not have (a label, a time) equals
nothing and is neither before nor after anything, so `!=` is exactly the opposite of `=`. Wildcards match
the whole text and mind the case. Values are always bound, never written into the SQL text.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, assert_never

from sqlalchemy import JSON as Json
from sqlalchemy import ColumnElement, Table, Text, and_, cast, false, func, literal, not_, or_, select, true
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import UnaryExpression

from trainshed.core import query
from trainshed.core.query import Compare, Condition, Operator, QueryField
from trainshed.store.codec import write_time
from trainshed.store.tables import jobs

Expression = ColumnElement[bool]


def to_sql(condition: Condition, dialect: str, table: Table = jobs) -> Expression:
    """The expression over jobs, or another table that has a column for each field asked about."""
    match condition:
        case query.AllOf(parts):
            return and_(true(), *(to_sql(part, dialect, table) for part in parts))
        case query.AnyOf(parts):
            return or_(false(), *(to_sql(part, dialect, table) for part in parts))
        case query.NotOf(part):
            return not_(to_sql(part, dialect, table))
        case Compare():
            return _compare(condition, dialect, table)
    assert_never(condition)


def _compare(wanted: Compare, dialect: str, table: Table) -> Expression:
    column, nullable = _column(wanted, dialect, table)
    value = write_time(wanted.value) if isinstance(wanted.value, datetime) else wanted.value
    result = _apply(wanted, column, value, dialect)
    if not nullable:
        return result
    # A missing value makes SQL answer NULL, which `NOT` would keep.
    return func.coalesce(result, literal(wanted.op is Operator.NE))


def _apply(wanted: Compare, column: ColumnElement[Any], value: str, dialect: str) -> Expression:
    match wanted.op:
        case Operator.EQ:
            return column == value
        case Operator.NE:
            return column != value
        case Operator.LT:
            return column < value
        case Operator.LE:
            return column <= value
        case Operator.GT:
            return column > value
        case Operator.GE:
            return column >= value
        case Operator.LIKE:
            if wanted.field is QueryField.LABEL and value == "*":
                return column.is_not(None)
            return _wildcard(column, value, dialect)
    assert_never(wanted.op)


def _wildcard(column: ColumnElement[Any], pattern: str, dialect: str) -> Expression:
    if dialect == "sqlite":
        # SQLite's LIKE ignores the case of ASCII letters; GLOB does not. The plus keeps it from walking the
        # index of names for a short prefix and sorting thousands of jobs, where one page was asked for.
        plus: operators.custom_op[Any] = operators.custom_op("+")
        plain: UnaryExpression[Any] = UnaryExpression(column, operator=plus)
        return plain.op("GLOB", is_comparison=True)(glob_pattern(pattern))
    return column.like(like_pattern(pattern), escape="\\")


def glob_pattern(pattern: str) -> str:
    return pattern.replace("[", "[[]").replace("?", "[?]")


def like_pattern(pattern: str) -> str:
    for special in "\\%_":
        pattern = pattern.replace(special, f"\\{special}")
    return pattern.replace("*", "%")


def _column(wanted: Compare, dialect: str, table: Table) -> tuple[ColumnElement[Any], bool]:
    """The column asked about, and whether a row may lack it."""
    match wanted.field:
        case QueryField.DISPLAY_NAME:
            return table.c.display_name, False
        case QueryField.STATE:
            return table.c.state, False
        case QueryField.CREATED:
            return table.c.created_at, False
        case QueryField.UPDATED:
            return table.c.updated_at, False
        case QueryField.STARTED:
            return table.c.started_at, True
        case QueryField.ENDED:
            return table.c.ended_at, True
        case QueryField.ID:
            return table.c.id, False
        case QueryField.LABEL:
            return _label(wanted.label, dialect, table), True
    assert_never(wanted.field)


def _label(name: str, dialect: str, table: Table) -> ColumnElement[Any]:
    """The value of one label. It unfolds the JSON object, because SQLite cannot quote a path."""
    unfold: Callable[..., Any] = func.json_each if dialect == "sqlite" else func.json_each_text
    source: Any = table.c.labels if dialect == "sqlite" else cast(table.c.labels, Json)
    pairs = unfold(source).table_valued("key", "value").alias("label")
    value = select(cast(pairs.c.value, Text)).where(pairs.c.key == name)
    label = value.correlate(table).scalar_subquery()
    return label if dialect == "sqlite" else label.collate("C")

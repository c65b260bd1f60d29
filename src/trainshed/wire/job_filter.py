"""Parses the filter and the order of a list of jobs (AIP-160, as in Google's lists) into a Condition.

    display_name = "my_job"        display_name: "my_job_*"       (`*` is any text; also with = and !=)
    state = "JOB_STATE_RUNNING"    state != SUCCEEDED
    create_time >= "2026-01-31T12:00:00Z"                          (update_, start_ and end_time too)
    labels.team = vision           labels.team: *                  labels."team" != "vision"
    name = "projects/p/locations/l/customJobs/123"
    NOT (a OR b) AND -c            a b

Our own lists have more fields, and words that are compared with nothing: those are searched for in display
name, id, submitter and labels, ASCII letters without case.

    kind = pipeline                submitter = ada                 project = p        location = l
    digits                         "two words"                     -digits

Names are accepted in snake_case and camelCase. NOT binds tighter than OR, OR tighter than AND. Two adjacent
terms mean AND. A refusal says what would be accepted. Only Invalid is raised.
"""

from collections.abc import Mapping
from datetime import datetime

from trainshed.core.errors import Violation
from trainshed.core.query import (
    NEWEST_FIRST,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    JobOrder,
    NotOf,
    Operator,
    QueryField,
    is_like,
)
from trainshed.wire import enums
from trainshed.wire.base import camel
from trainshed.wire.faults import invalid
from trainshed.wire.filter_tokens import Token, TokenKind, path_at, refuse, tokens
from trainshed.wire.scalars import read_time

DEEPEST = 50  # parentheses and NOTs within each other
MOST_TERMS = 200  # databases limit how large an expression may be

_NAMES: Mapping[str, QueryField] = {
    "display_name": QueryField.DISPLAY_NAME,
    "state": QueryField.STATE,
    "create_time": QueryField.CREATED,
    "update_time": QueryField.UPDATED,
    "start_time": QueryField.STARTED,
    "end_time": QueryField.ENDED,
    "labels": QueryField.LABEL,
    "name": QueryField.ID,
}
_FIELDS = {spelled: field for name, field in _NAMES.items() for spelled in (name, camel(name))}
_OWN_FIELDS = {
    **_FIELDS,
    "kind": QueryField.KIND,
    "submitter": QueryField.SUBMITTER,
    "project": QueryField.PROJECT,
    "location": QueryField.LOCATION,
}
_ORDERS = {
    name: _NAMES[name]
    for name in ("create_time", "update_time", "start_time", "end_time", "display_name", "state")
}
_EQUAL = (Operator.EQ, Operator.NE)
_TEXT = (*_EQUAL, Operator.LIKE)
_ORDERED = (*_EQUAL, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
_TEXTS = frozenset(
    {
        QueryField.DISPLAY_NAME,
        QueryField.KIND,
        QueryField.SUBMITTER,
        QueryField.PROJECT,
        QueryField.LOCATION,
    }
)
_TIMES = frozenset({QueryField.CREATED, QueryField.UPDATED, QueryField.STARTED, QueryField.ENDED})
_KNOWN = "display_name, state, create_time, update_time, start_time, end_time, labels.KEY and name are"
_OWN_KNOWN = f"kind, submitter, project, location, {_KNOWN}"
_KEYWORDS = ("AND", "OR", "NOT")


def parse_filter(
    text: str, fixed: Mapping[str, str] | None = None, *, is_own: bool = False
) -> Condition | None:
    """The condition; None where the filter is empty. `fixed`: fields with the same value in every job.

    With `is_own` the fields and words of our own lists are understood too.
    """
    return parse_tokens(tokens(text), fixed, is_own=is_own)


def parse_tokens(
    all_tokens: list[Token], fixed: Mapping[str, str] | None = None, *, is_own: bool = False
) -> Condition | None:
    if len(all_tokens) == 1:
        return None
    return _JobFilterParser(all_tokens, fixed or {}, is_own=is_own).whole()


def parse_order_by(text: str, *, is_own: bool = False) -> JobOrder:
    """The order. The default, as in Google's lists, is newest first. With `is_own` there are more fields."""
    names = tuple(_ORDERS) if is_own else ("create_time",)
    match [{camel(name): name for name in names}.get(word, word) for word in text.split()]:
        case []:
            return NEWEST_FIRST
        case [name, *direction] if name in names and direction in ([], ["asc"], ["desc"]):
            return JobOrder(_ORDERS[name], is_descending=direction == ["desc"])
        case _:
            known = " or ".join(f'"{name}" or "{name} desc"' for name in names)
            raise invalid((Violation("order_by", f'must be {known}, not "{text[:100]}".'),))


class _JobFilterParser:
    def __init__(self, all_tokens: list[Token], fixed: Mapping[str, str], *, is_own: bool) -> None:
        self._is_own = is_own
        self._tokens = all_tokens
        self._fixed = {spelled: value for name, value in fixed.items() for spelled in (name, camel(name))}
        self._at = 0
        self._terms = 0

    def whole(self) -> Condition:
        condition = self._all(0)
        if self._next.kind is not TokenKind.END:
            raise refuse(f'"{self._next.text}" is not expected here', self._next.position)
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take_word(self, word: str) -> bool:
        if self._next.is_word(word):
            self._at += 1
            return True
        return False

    def _all(self, depth: int) -> Condition:
        parts = [self._any(depth)]
        while self._take_word("AND") or self._next.kind not in (TokenKind.END, TokenKind.CLOSE):
            parts.append(self._any(depth))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _any(self, depth: int) -> Condition:
        parts = [self._term(depth)]
        while self._take_word("OR"):
            parts.append(self._term(depth))
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _term(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise refuse(f"More than {DEEPEST} levels are nested here", self._next.position)
        token = self._next
        if token.kind is TokenKind.MINUS or token.is_word("NOT"):
            self._at += 1
            return NotOf(self._term(depth + 1))
        if token.kind is TokenKind.OPEN:
            self._at += 1
            condition = self._all(depth + 1)
            if self._next.kind is not TokenKind.CLOSE:
                raise refuse("A parenthesis is not closed", token.position)
            self._at += 1
            return condition
        return self._compare()

    def _compare(self) -> Condition:
        start = self._next
        if self._is_own and self._is_bare(start):
            self._count(start)
            self._at += 1
            return Compare(QueryField.TEXT, Operator.LIKE, start.text.rpartition("/customJobs/")[2])
        if start.kind is not TokenKind.WORD or start.text in _KEYWORDS:
            what = f'not "{start.text}"' if start.text else "but the filter ends"
            raise refuse(f'A comparison such as state="RUNNING" is expected here, {what}', start.position)
        self._count(start)
        path, self._at = path_at(self._tokens, self._at)
        operator = self._next
        if operator.kind is not TokenKind.OPERATOR:
            raise refuse(f'"{".".join(path)}" must be compared with something', start.position)
        self._at += 1
        value = self._next
        if value.kind not in (TokenKind.WORD, TokenKind.STRING):
            raise refuse(f"A value is expected behind {operator.text}", value.position)
        self._at += 1
        if len(path) == 1 and path[0] in self._fixed:
            return _constant(self._fixed[path[0]], operator, value.text)
        field = (_OWN_FIELDS if self._is_own else _FIELDS).get(path[0])
        if field is None or (len(path) != 1 and field is not QueryField.LABEL) or len(path) > 2:
            known = _OWN_KNOWN if self._is_own else _KNOWN
            raise refuse(f'"{".".join(path)}" is not known here; {known}', start.position)
        return _condition(field, path, operator, value, start.position)

    def _is_bare(self, start: Token) -> bool:
        """Whether this is a word or a text that is compared with nothing."""
        if start.kind is TokenKind.STRING:
            return self._tokens[self._at + 1].kind is not TokenKind.OPERATOR
        if start.kind is not TokenKind.WORD or start.text in _KEYWORDS:
            return False
        return self._tokens[path_at(self._tokens, self._at)[1]].kind is not TokenKind.OPERATOR

    def _count(self, start: Token) -> None:
        self._terms += 1
        if self._terms > MOST_TERMS:
            raise refuse(f"The filter has more than {MOST_TERMS} comparisons", start.position)


def _condition(
    field: QueryField, path: tuple[str, ...], operator: Token, value: Token, position: int
) -> Condition:
    if operator.text not in {op.value for op in Operator}:
        raise refuse(f"{operator.text} is not known here", operator.position)
    op = Operator(operator.text)
    if field is QueryField.LABEL:
        return _label(path, op, value, position)
    if field in _TIMES:
        return Compare(field, _only(op, _ORDERED, operator), _time(value))
    if field in _TEXTS:
        return _text(field, _only(op, _TEXT, operator), value.text)
    _only(op, _EQUAL, operator)
    if field is QueryField.STATE:
        return Compare(field, op, _state(value))
    return Compare(field, op, value.text.rsplit("/", 1)[-1])


def _constant(fixed: str, operator: Token, value: str) -> Condition:
    """A condition that is always or never true, since the field has the same value in every job."""
    if operator.text not in {op.value for op in _TEXT}:
        raise refuse(f"{operator.text} cannot be used here; = != : can", operator.position)
    pattern = f"*{value}*" if operator.text == Operator.LIKE.value and "*" not in value else value
    meets = is_like(fixed, pattern)
    return AllOf(()) if meets != (operator.text == Operator.NE.value) else AnyOf(())


def _only(op: Operator, allowed: tuple[Operator, ...], operator: Token) -> Operator:
    if op not in allowed:
        known = " ".join(item.value for item in allowed)
        raise refuse(f"{op.value} cannot be used here; {known} can", operator.position)
    return op


def _label(path: tuple[str, ...], op: Operator, value: Token, position: int) -> Condition:
    if len(path) == 1:
        if op is not Operator.LIKE:
            raise refuse('A label is compared as labels.KEY = "value"', position)
        return Compare(
            QueryField.LABEL, Operator.LIKE, "*", value.text
        )  # labels:key asks whether there is such a label
    if op not in _TEXT:
        raise refuse(f"{op.value} cannot be used with labels; = != : can", position)
    return _text(QueryField.LABEL, op, value.text, path[1])


def _text(field: QueryField, op: Operator, value: str, label: str = "") -> Condition:
    """A `*` makes any comparison a wildcard match. `:` without a `*` searches for the text anywhere."""
    if op is Operator.LIKE:
        return Compare(field, Operator.LIKE, value if "*" in value else f"*{value}*", label)
    if "*" not in value:
        return Compare(field, op, value, label)
    like = Compare(field, Operator.LIKE, value, label)
    return like if op is Operator.EQ else NotOf(like)


def _time(value: Token) -> datetime:
    try:
        return read_time(value.text)
    except ValueError as error:
        raise refuse(f"A time to compare with {error}".rstrip("."), value.position) from error


def _state(value: Token) -> str:
    name = value.text.removeprefix("PIPELINE_STATE_").removeprefix("JOB_STATE_")
    if f"JOB_STATE_{name}" not in enums.JOB_STATES:
        known = ", ".join(state.removeprefix("JOB_STATE_") for state in list(enums.JOB_STATES)[1:])
        raise refuse(f'"{value.text[:100]}" is not a state; {known} are', value.position)
    return name

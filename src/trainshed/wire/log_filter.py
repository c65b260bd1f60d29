"""The filter language of Cloud Logging, as far as its clients use it: parses a filter and matches entries.

NOT (or a leading `-`) binds tighter than OR, OR tighter than AND, and two adjacent terms mean AND. Keywords
are upper case. Text compares without regard to case, except in regular expressions and in identifiers
(`resource`, `labels`, `insertId`, `logName`). A comparison with a field that the entry lacks is false, also
with `!=`; `NOT a=b` is then true. A term without an operator is searched in the message.

An entry must be the JSON form of a LogEntry. Only `Invalid` is raised. Recursion is no deeper than the
allowed nesting. Time and memory of a match grow with the entry only. Functions (`log_id(...)`,
`SEARCH(...)`) are refused.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never, cast

from trainshed.wire.filter_tokens import Token, TokenKind, path_at, refuse, tokens
from trainshed.wire.log_bounds import Bounds, bounds
from trainshed.wire.log_terms import (
    SEVERITIES,
    AllTerms,
    AnyTerm,
    CompareTerm,
    Filter,
    NotTerm,
    SearchTerm,
    TermOperator,
    expression,
    instant,
    severity,
)

__all__ = ["Bounds", "Filter", "bounds", "instant", "matches", "parse"]

DEEPEST = 50  # parentheses within parentheses
MOST_EXPRESSIONS = 20  # each takes memory of its own

_NAMES = (
    *(
        "logName",
        "resource",
        "timestamp",
        "receiveTimestamp",
        "severity",
        "insertId",
        "httpRequest",
        "labels",
    ),
    *("metadata", "operation", "trace", "spanId", "traceSampled", "sourceLocation", "split"),
    *("textPayload", "jsonPayload", "protoPayload"),
)
_FIELDS = {name.lower(): name for name in _NAMES}
_TIMES = (("timestamp",), ("receiveTimestamp",))
_EXACT = ("resource", "labels", "insertId", "logName")


def parse(text: str) -> Filter:
    """The parsed filter. An empty text matches everything."""
    return _LogFilterParser(tokens(text)).whole()


class _LogFilterParser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.expressions = 0

    def next(self) -> Token:
        return self.tokens[self.at]

    def whole(self) -> Filter:
        if self.next().kind is TokenKind.END:
            return AllTerms(())
        parsed = self.conjunction(None)
        if self.next().kind is not TokenKind.END:
            raise refuse(f"{self.next().text!r} was not expected here", self.next().position)
        return parsed

    def conjunction(self, field: tuple[tuple[str, ...], TermOperator] | None) -> Filter:
        parts = [self.disjunction(field)]
        while self.next().kind not in (TokenKind.END, TokenKind.CLOSE):
            if self.next().is_word("AND"):
                self.at += 1
            parts.append(self.disjunction(field))
        return parts[0] if len(parts) == 1 else AllTerms(tuple(parts))

    def disjunction(self, field: tuple[tuple[str, ...], TermOperator] | None) -> Filter:
        parts = [self.term(field)]
        while self.next().is_word("OR"):
            self.at += 1
            parts.append(self.term(field))
        return parts[0] if len(parts) == 1 else AnyTerm(tuple(parts))

    def term(self, field: tuple[tuple[str, ...], TermOperator] | None) -> Filter:
        denied = False
        while self.next().kind is TokenKind.MINUS or self.next().is_word("NOT"):
            denied = not denied
            self.at += 1
        if self.next().kind is TokenKind.OPEN:
            part = self.group(field)
        elif field is not None:
            part = self.value(*field)
        else:
            part = self.restriction()
        return NotTerm(part) if denied else part

    def group(self, field: tuple[tuple[str, ...], TermOperator] | None) -> Filter:
        opened = self.next()
        self.depth += 1
        if self.depth > DEEPEST:
            raise refuse(f"More than {DEEPEST} parentheses stand within one another", opened.position)
        self.at += 1
        inner = self.conjunction(field)
        if self.next().kind is not TokenKind.CLOSE:
            raise refuse("This parenthesis is never closed", opened.position)
        self.at += 1
        self.depth -= 1
        return inner

    def restriction(self) -> Filter:
        start = self.next()
        self.check_term(start)
        path, behind = path_at(self.tokens, self.at)
        following = self.tokens[behind]
        if following.kind is not TokenKind.OPERATOR:
            if following.kind is TokenKind.OPEN and following.position == self.tokens[behind - 1].end:
                raise refuse(f"The function {start.text!r} is not supported", start.position)
            self.at = behind
            return SearchTerm(
                start.text if start.kind is TokenKind.STRING and len(path) == 1 else ".".join(path)
            )
        top = _FIELDS.get(path[0].replace("_", "").lower())
        if top is None or "" in path[1:]:
            shown = ".".join(path)
            raise refuse(f"A log entry has no field {shown!r}; quote it to search for a text", start.position)
        op = TermOperator(following.text)
        self.at = behind + 1
        named = (top, *path[1:])
        return self.group((named, op)) if self.next().kind is TokenKind.OPEN else self.value(named, op)

    def value(self, path: tuple[str, ...], op: TermOperator) -> Filter:
        token = self.next()
        self.check_term(token)
        self.at += 1
        if op is TermOperator.HAS and token.is_word("*"):
            return CompareTerm(path, op, "*", rank=0)
        rank, pattern = None, None
        if op in (TermOperator.MATCH, TermOperator.NO_MATCH):
            self.expressions += 1
            if self.expressions > MOST_EXPRESSIONS:
                sentence = f"The filter has more than {MOST_EXPRESSIONS} regular expressions"
                raise refuse(sentence, token.position)
            pattern = expression(token)
        elif op is not TermOperator.HAS and path in _TIMES:
            rank = instant(token.text)
            if rank is None:
                raise refuse(f"{token.text!r} is not a time such as 2024-05-01T12:00:00Z", token.position)
        elif op is not TermOperator.HAS and path == ("severity",):
            rank = severity(token.text)
            if rank is None:
                raise refuse(f"{token.text!r} is none of {', '.join(SEVERITIES)}", token.position)
        return CompareTerm(path, op, token.text, rank, pattern)

    def check_term(self, token: Token) -> None:
        if token.kind is TokenKind.END:
            raise refuse("The filter ends where a term was expected", token.position)
        keyword = any(token.is_word(word) for word in ("AND", "OR", "NOT"))
        if keyword or token.kind not in (TokenKind.WORD, TokenKind.STRING):
            raise refuse(f"A term was expected, not {token.text!r}", token.position)


def matches(condition: Filter, entry: Mapping[str, object]) -> bool:
    match condition:
        case CompareTerm():
            return _compare(condition, entry)
        case SearchTerm(text):
            payload = [entry.get("textPayload"), entry.get("jsonPayload")]
            return any(text.lower() in leaf.lower() for leaf in _leaves(payload))
        case AllTerms(parts):
            return all(matches(part, entry) for part in parts)
        case AnyTerm(parts):
            return any(matches(part, entry) for part in parts)
        case NotTerm(part):
            return not matches(part, entry)
        case _:
            assert_never(condition)


def _compare(condition: CompareTerm, entry: Mapping[str, object]) -> bool:
    value = _value(entry, condition.path)
    if value is None:
        return False
    if condition.op is TermOperator.HAS and condition.rank is not None:
        return True
    leaves = list(_leaves(value))
    if condition.op is TermOperator.HAS and isinstance(value, Mapping):
        leaves += cast("Iterable[str]", value)  # a key counts as a value does
    return any(_holds(condition, leaf) for leaf in leaves)


def _value(entry: Mapping[str, object], path: tuple[str, ...]) -> object:
    value = entry.get(path[0], "DEFAULT" if path == ("severity",) else None)
    for part in path[1:]:
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(part)
    return value


def _leaves(value: object) -> Iterable[str]:
    """All scalars within a JSON value, as text. Iterative, since an entry may be nested to any depth."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting.extend(cast("Mapping[str, object]", item).values())
        elif isinstance(item, list | tuple):
            waiting.extend(cast("Iterable[object]", item))
        elif isinstance(item, bool):
            yield "true" if item else "false"
        elif item is not None:
            yield str(item)


def _holds(condition: CompareTerm, leaf: str) -> bool:
    if condition.pattern is not None:
        is_match = condition.pattern.search(leaf.encode(errors="replace")) is not None
        return is_match is (condition.op is TermOperator.MATCH)
    exact = condition.path[0] in _EXACT
    mine, asked = (leaf, condition.value) if exact else (leaf.lower(), condition.value.lower())
    if condition.op is TermOperator.HAS:
        return asked in mine
    if condition.rank is not None:
        rank = severity(leaf) if condition.path == ("severity",) else instant(leaf)
        return rank is not None and _ordered(condition.op, (rank > condition.rank) - (rank < condition.rank))
    try:
        # Ids look like numbers but are text: only payloads compare by value.
        difference = 0.0 if exact else float(mine) - float(asked)
    except ValueError:
        return _ordered(condition.op, (mine > asked) - (mine < asked))
    return _ordered(condition.op, (mine > asked) - (mine < asked) if exact else difference)


def _ordered(op: TermOperator, sign: float) -> bool:
    match op:
        case TermOperator.EQ:
            return sign == 0
        case TermOperator.NE:
            return sign != 0
        case TermOperator.GT:
            return sign > 0
        case TermOperator.GE:
            return sign >= 0
        case TermOperator.LT:
            return sign < 0
        case TermOperator.LE:
            return sign <= 0
        case TermOperator.HAS | TermOperator.MATCH | TermOperator.NO_MATCH:
            raise AssertionError(f"{op} has no order")
        case _:
            assert_never(op)

"""gcloud's --filter: from its text to a yes or no about a job. Pure; times are compared as times.

    state=JOB_STATE_RUNNING AND (labels.team=vision OR displayName~^digits)
    NOT state:(SUCCEEDED, FAILED)      createTime>-P1D      labels.owner:*

Terms side by side are both needed, and bind weaker than OR, which binds weaker than AND.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, cast

from trainshed.cli.ai.path import Path
from trainshed.cli.failure import Misuse
from trainshed.cli.words import moment
from trainshed.client import Json

Condition: TypeAlias = Callable[[Json], bool]

_TOKEN = re.compile(
    r"\s*(?:(?P<paren>[()])|(?P<op>!=|<=|>=|!~|=|:|<|>|~)|(?P<comma>,)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|(?P<word>[^\s()=:<>~!,\"']+(?:\(\))?))"
)
_PERIOD = re.compile(r"-?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.IGNORECASE)
_KEYWORDS = ("AND", "OR", "NOT")


def parse(text: str) -> Condition:
    """Raises Misuse where the text is no filter."""
    reader = _Reader(text, _tokens(text))
    result = reader.together()
    if reader.peek():
        raise reader.wrong()
    return result


def _tokens(text: str) -> list[tuple[str, str]]:
    result: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    operand_next = False
    while at < len(text):
        if operand_next and (value := re.compile(r"\s*([^\s()\"',][^\s()]*)").match(text, at)):
            # What stands behind an operator is a value up to the next blank, whatever characters it has.
            result.append(("text", value[1]))
            at, operand_next = value.end(), False
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            raise Misuse(f"--filter: [{text}] cannot be read from [{text[at:]}] on")
        kind = str(token.lastgroup)
        word = token[kind]
        if kind == "text":
            word = re.sub(r"\\(.)", r"\1", word[1:-1])
        result.append((kind, word))
        at, operand_next = token.end(), kind == "op"
    return result


class _Reader:
    def __init__(self, text: str, tokens: list[tuple[str, str]]) -> None:
        self._text = text
        self._left = tokens

    def peek(self) -> tuple[str, str] | None:
        return self._left[0] if self._left else None

    def wrong(self) -> Misuse:
        near = f"at [{self._left[0][1]}]" if self._left else "at its end"
        return Misuse(
            f"--filter: [{self._text}] cannot be read {near}; one reads like state=JOB_STATE_FAILED"
        )

    def together(self) -> Condition:
        parts = [self.either()]
        while self._left and self._left[0] != ("paren", ")"):
            parts.append(self.either())
        return _all(parts)

    def either(self) -> Condition:
        parts = [self.both()]
        while self._take("word", "OR"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else lambda job: any(part(job) for part in parts)

    def both(self) -> Condition:
        parts = [self.negated()]
        while self._take("word", "AND"):
            parts.append(self.negated())
        return _all(parts)

    def negated(self) -> Condition:
        if self._take("word", "NOT"):
            inner = self.negated()
            return lambda job: not inner(job)
        if self._take("paren", "("):
            inner = self.together()
            if not self._take("paren", ")"):
                raise self.wrong()
            return inner
        return self.term()

    def term(self) -> Condition:
        kind, key = self.peek() or ("", "")
        if kind not in ("word", "text") or key in _KEYWORDS:
            raise self.wrong()
        self._left.pop(0)
        if (self.peek() or ("", ""))[0] != "op":
            return lambda job: key.casefold() in str(job).casefold()  # a word by itself: anywhere in the job
        _, op = self._left.pop(0)
        turned = key.startswith("-")
        path = Path.parse(key.lstrip("-"))
        tests = [_test(op, value) for value in self._values()]
        return lambda job: any(test(path.get(job)) for test in tests) is not turned

    def _values(self) -> list[str]:
        if not self._take("paren", "("):
            if not self._left or self._left[0][0] not in ("word", "text"):
                raise self.wrong()
            return [self._left.pop(0)[1]]
        values: list[str] = []
        while not self._take("paren", ")"):
            if not self._left:
                raise self.wrong()
            kind, word = self._left.pop(0)
            if kind in ("word", "text") and not (kind == "word" and word == "OR"):
                values.append(word)
            elif kind not in ("comma", "word"):
                raise self.wrong()
        return values

    def _take(self, kind: str, word: str) -> bool:
        if self._left and self._left[0] == (kind, word):
            self._left.pop(0)
            return True
        return False


def _all(parts: Sequence[Condition]) -> Condition:
    return parts[0] if len(parts) == 1 else lambda job: all(part(job) for part in parts)


def _test(op: str, wanted: str) -> Callable[[Any], bool]:
    """One operator and value as a question about what is there; of a list, one element is enough."""
    if op.startswith("!"):
        inner = _test(op[1:], wanted)
        return lambda value: not inner(value)
    if op == "~":
        try:
            pattern = re.compile(wanted)
        except re.error as error:
            raise Misuse(f"--filter: [{wanted}] is not a regular expression: {error}") from error
        return _of_any(lambda value: pattern.search(_plain(value)) is not None)
    if op == ":":
        if wanted == "*":
            return lambda value: value not in (None, "", [], {})
        start = wanted.removesuffix("*").casefold()
        end = "" if wanted.endswith("*") else r"(?=[\W_]|$)"
        words = re.compile(rf"(?:^|(?<=[\W_])){re.escape(start)}{end}")
        return _of_any(lambda value: words.search(_plain(value).casefold()) is not None)
    compare = _ORDERS[op]
    return _of_any(lambda value: _compared(compare, value, wanted))


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _of_any(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def asked(value: Any) -> bool:
        if isinstance(value, list):
            return any(map(asked, cast(list[Any], value)))
        if isinstance(value, dict):
            return any(map(asked, (*cast(Json, value), *cast(Json, value).values())))
        return value is not None and test(value)

    return asked


def _compared(compare: Callable[[Any, Any], bool], value: Any, wanted: str) -> bool:
    """As numbers, as times, or as text without regard to case, whatever both can be."""
    try:
        return compare(float(_plain(value)), float(wanted))
    except ValueError:
        pass
    at, then = moment(value), _time(wanted)
    if at and then:
        return compare(at, then)
    return compare(_plain(value).casefold(), wanted.casefold())


def _time(text: str) -> datetime | None:
    """A moment as people write it, or a period back from now, such as -P1D."""
    period = _PERIOD.fullmatch(text)
    if period and any(period.groups()):
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in period.groups())
        length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        return datetime.now(UTC) + (-length if text.startswith("-") else length)
    return moment(text)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""The terms of the log filter language as a tree, and the values they compare with. For `log_filter`.

It reads no entry. A regular expression that could take exponential time is refused here, before it runs.
"""

import re
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import TypeAlias

from trainshed.wire.filter_tokens import Token, refuse

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")

_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(?:[Zz]|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)
_MANY = re.compile(r"[*+]|\{(?!(?:\d*,)?[0-4]\})")  # a few repetitions are harmless


class TermOperator(StrEnum):
    EQ = "="
    NE = "!="
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="
    HAS = ":"
    MATCH = "=~"
    NO_MATCH = "!~"


@dataclass(frozen=True, slots=True)
class CompareTerm:
    path: tuple[str, ...]
    op: TermOperator
    value: str
    rank: int | None = None  # a time in nanoseconds, or the index of a severity
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A term without a field: searched in the message."""

    text: str


@dataclass(frozen=True, slots=True)
class AllTerms:
    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class AnyTerm:
    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class NotTerm:
    part: "Filter"


Filter: TypeAlias = CompareTerm | SearchTerm | AllTerms | AnyTerm | NotTerm


def instant(text: str) -> int | None:
    """Nanoseconds since the epoch of an RFC 3339 time of any precision, or None where it is none."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    day, hour, minute, second, fraction, sign, off_hours, off_minutes = match.groups()
    zone = UTC
    try:
        if sign:
            offset = timedelta(hours=int(off_hours), minutes=int(off_minutes))
            zone = timezone(-offset if sign == "-" else offset)
        clock = f"{hour or '00'}:{minute or '00'}:{second or '00'}"
        moment = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=zone)
    except ValueError:
        return None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * 10**9 + int((fraction or "")[:9].ljust(9, "0"))


def severity(text: str) -> int | None:
    if text.upper() in SEVERITIES:
        return SEVERITIES.index(text.upper())
    return int(text) // 100 if re.fullmatch(r"[0-8]00|0", text) else None


def expression(token: Token) -> re.Pattern[str]:
    if len(token.text) > 1000:
        raise refuse("The regular expression is longer than 1000 characters", token.position)
    if explodes(token.text):
        raise refuse(
            "The regular expression repeats something that repeats or chooses (as `(a+)+` does) or refers "
            "back to a group; that could take forever",
            token.position,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile(token.text)
        except (re.error, OverflowError, RecursionError, Warning) as error:
            sentence = f"The regular expression {token.text!r} cannot be understood: {error}"
            raise refuse(sentence, token.position) from error


def explodes(pattern: str) -> bool:
    """Whether a repeated group repeats or chooses within itself, or the pattern refers back to a group."""
    plain = re.sub(r"\\[^1-9]|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", pattern, flags=re.DOTALL)
    if "\\" in plain or "(?P=" in plain or "(?(" in plain:
        return True
    wild = [False]  # per open group: does it repeat or choose?
    for part in re.finditer(r"\(\?[a-zA-Z-]+[:)]|\(\?P<\w+>|\(\?<?[=!:]|[()|]|[*+?]|\{\d*,?\d*\}", plain):
        text = part[0]
        if text.startswith("(") and not text.endswith(")"):
            wild.append(False)
        elif text == ")" and len(wild) > 1:
            inner = wild.pop()
            if inner and _MANY.match(plain, part.end()):
                return True
            wild[-1] = wild[-1] or inner
        elif text[0] in "|*+?{":
            wild[-1] = True
    return False

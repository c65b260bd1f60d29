"""The terms of the log filter language as a tree, and the values they compare with. For `log_filter`.

It reads no entry. A client's regular expression is compiled by RE2, the engine of Cloud Logging, which never
backtracks.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from trainshed.wire.filter_tokens import Token, refuse

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")

_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(?:[Zz]|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)
MOST_MEMORY = 1024 * 1024  # bytes for one regular expression


class Pattern(Protocol):
    def search(self, text: bytes) -> object | None: ...


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
    pattern: Pattern | None = None


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


def expression(token: Token) -> Pattern:
    """A compiled regular expression whose search takes time in proportion to the text, whatever it says."""
    try:
        re2: Any = import_module("re2")  # here, since few filters need it and it takes memory
    except ImportError as error:
        sentence = "Regular expressions need the package google-re2, which this server has not installed"
        raise refuse(sentence, token.position) from error
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MOST_MEMORY
    try:
        return re2.compile(token.text.encode(), options)
    except UnicodeEncodeError as error:
        raise refuse("The regular expression holds half of a character", token.position) from error
    except re2.error as error:
        reason: str = error.args[0].decode(errors="replace")
        sentence = f"The regular expression {token.text[:100]!r} cannot be understood: {reason[:200]}"
        raise refuse(sentence, token.position) from error

"""Reads and writes single JSON values as protocol buffers do: 64-bit numbers, durations, times, enumerations.

Reading accepts what Google's own parser accepts (`"1"`, `1` and `1.0` are the same number). A value that
would lose precision is refused. A refusal is a ValueError with a sentence for users. Times are written with
a fixed width, because clients compare them as text.
"""

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

INT32_MOST = 2**31 - 1
INT64_MOST = 2**63 - 1
DEEPEST = 100  # objects and lists within each other

_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
_DIGITS = re.compile(r"-?[0-9]{1,19}")
_DURATION = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2}))?"
)


def read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {kind_of(value)}.")
    if "\0" in value:
        raise ValueError("must not contain a NUL character.")  # neither programs nor databases accept one
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode: it holds half of a surrogate pair.") from None
    return value


def read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {kind_of(value)}.")
    return value


def read_int(value: object, most: int) -> int:
    """A whole number between -most - 1 and most, given as a number or as text."""
    if isinstance(value, bool):
        raise ValueError("must be a whole number, not true or false.")
    match value:
        case int():
            number = value
        case float() if math.isfinite(value) and value.is_integer():
            number = int(value)
        case str() if _DIGITS.fullmatch(value):
            number = int(value)
        case _:
            raise ValueError(f"must be a whole number, not {shown(value)}.")
    if not -most - 1 <= number <= most:
        raise ValueError(f"must be a number of {32 if most == INT32_MOST else 64} bits, not {shown(value)}.")
    return number


def read_number(value: object) -> float:
    """Any finite number, given as one or as text."""
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"must be a number, not {shown(value)}.")
    return number


def read_double(value: object) -> float:
    """Any number, also one that is not a number or infinite, which JSON has as text."""
    if isinstance(value, str) and value in _NO_NUMBERS:
        return float(value)
    if value is None:
        raise ValueError('must be a number, or "NaN" where there is none, not null.')
    return read_number(value)


def double_json(number: float) -> float | str:
    """The number as JSON has it."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def read_duration(value: object) -> timedelta:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'must be a duration in seconds such as "3600s" or "0.5s", not {shown(value)}.')
    sign, seconds, fraction = match.groups()
    micros = int((fraction or "").ljust(9, "0")[:6])
    length = timedelta(seconds=int(seconds), microseconds=micros)
    return -length if sign else length


def read_time(value: object) -> datetime:
    """A time in RFC 3339, or a date alone for its first moment in UTC."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        try:
            at = datetime.fromisoformat(value.upper())
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise ValueError(f'must be a time such as "2026-01-31T12:00:00Z", not {shown(value)}.')


def read_name(value: object, numbers: Mapping[str, int]) -> str:
    """The first name of an enumeration's value, given by name or number."""
    if isinstance(value, str) and value in numbers:
        return first_name(numbers, numbers[value])
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # SDKs send numbers in free-form values as doubles
    if isinstance(value, int) and not isinstance(value, bool) and value in numbers.values():
        return first_name(numbers, value)
    known = ", ".join(name for name, number in numbers.items() if number)
    raise ValueError(f"must be one of {known}, not {shown(value)}.")


def first_name(numbers: Mapping[str, int], number: int) -> str:
    return next(name for name, known in numbers.items() if known == number)


def duration_text(length: timedelta) -> str:
    seconds, rest = divmod(length, timedelta(seconds=1))
    if not rest:
        return f"{seconds}s"
    return f"{seconds}.{rest.microseconds:06d}".rstrip("0") + "s"


def time_text(at: datetime) -> str:
    """RFC 3339 in UTC, always with six digits, so that texts sort as times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def nanos_text(at_ns: int) -> str:
    """RFC 3339 with nine digits, for log entries."""
    seconds, nanos = divmod(at_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{nanos:09d}Z"


def kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"


def shown(value: object) -> str:
    """The value where it is short, else its kind. For messages."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and abs(value) < 1e21:
        return repr(value)
    return kind_of(value)


def plain_faults(value: object, path: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The path of what JSON cannot represent, and why: invalid Unicode, NaN, infinities, excessive depth."""
    if depth > DEEPEST:
        yield path, f"must not be nested deeper than {DEEPEST} levels."
        return
    match value:
        case str():
            yield from _text_fault(value, path)
        case float() if not math.isfinite(value):
            yield path, "must hold no number that is infinite or not a number."
        case Mapping():
            for key, item in cast("Mapping[str, object]", value).items():
                yield from _text_fault(key, path)
                yield from plain_faults(item, f"{path}.{key}", depth + 1)
        case list():
            for number, item in enumerate(cast("list[object]", value)):
                yield from plain_faults(item, f"{path}[{number}]", depth + 1)
        case _:
            pass


def _text_fault(text: str, path: str) -> Iterator[tuple[str, str]]:
    try:
        read_text(text)
    except ValueError as error:
        yield path, str(error)

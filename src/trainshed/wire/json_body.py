"""Reads the JSON of a request. Whatever sends JSON to the server is read here, once and strictly.

It refuses what the parsers and stores behind it could not keep: a name that is given twice, of which one
would be lost; half of a surrogate pair, which is not UTF-8; numbers that no double holds; bytes that are not
UTF-8; nesting without end. Each refusal is an Invalid that says what to change.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn, cast

from trainshed.core.errors import Invalid, Violation

MOST_DIGITS = 300  # of a whole number: any more is beyond a double
DEEPEST = 250  # objects and lists inside each other: the functions behind call themselves for each
_HALF = re.compile("[\ud800-\udfff]")


def parse_object(data: bytes | str, what: str = "The request body") -> dict[str, Any]:
    """The JSON object. `what` begins the sentences of refusals."""
    body = parse_json(data, what)
    if not isinstance(body, dict):
        raise Invalid((Violation("", f"{what} must be a JSON object."),))
    return cast("dict[str, Any]", body)


def parse_json(data: bytes | str, what: str = "The request body") -> object:
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        body: object = _DECODER.decode(text)
        if text.count("{") + text.count("[") > DEEPEST and _is_deeper(body, DEEPEST):
            raise RecursionError
        broken = _broken(body) if "\\u" in text else None
    except RecursionError as error:
        raise Invalid(
            (Violation("", f"{what} is nested too deep: use at most {DEEPEST} levels."),)
        ) from error
    except ValueError as error:
        raise Invalid((Violation("", f"{what} is not JSON: {error}"),)) from error
    if broken is not None:
        sentence = "must be valid Unicode: it holds half of a surrogate pair."
        raise Invalid((Violation(broken, sentence if broken else f"{what} {sentence}"),))
    return body


def _is_deeper(body: object, most: int) -> bool:
    """Looks level by level, because a function that calls itself is what deep bodies break."""
    level: list[Any] = [body]
    for _ in range(most):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in cast("Iterable[Any]", item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen = set[str]()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        shown = _HALF.sub("\ufffd", twice[:100])
        raise Invalid((Violation(shown, f'The name "{shown}" is given twice: leave one of them out.'),))
    return result


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large.")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the number {text[:40]}… has more than {MOST_DIGITS} digits.")
    return int(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON.")


def _broken(value: object, path: str = "") -> str | None:
    """The path of a text that is no Unicode; empty for the name of a field; None where all texts are."""
    match value:
        case str():
            return path if _HALF.search(value) else None
        case dict():
            fields = cast("dict[str, object]", value)
            if any(map(_HALF.search, fields)):
                return path
            items = ((f"{path}.{name}" if path else name, item) for name, item in fields.items())
        case list():
            items = ((f"{path}[{at}]", item) for at, item in enumerate(cast("list[object]", value)))
        case _:
            return None
    return next((place for where, item in items if (place := _broken(item, where)) is not None), None)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_whole, parse_constant=_no_number
)

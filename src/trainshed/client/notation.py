"""JSON by the C parts below the module `json`, whose own import is most of what a short command spends.

What it reads and writes is what `json` reads and writes: in doubt, and for all errors, it asks `json` itself.
"""

import _json

TYPE_CHECKING = False  # the module typing takes longer to import than a job takes to submit
if TYPE_CHECKING:
    from typing import Any


class _Rules:
    """What the scanner wants to know; the same as `json.loads` with nothing said."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # NaN and the infinities, by their names
    memo: "dict[str, str]" = {}  # noqa: RUF012 - the scanner's own


def loads(data: "bytes | str") -> "Any":
    text = data.decode() if isinstance(data, bytes) else data
    text = text.strip(" \t\r\n")
    try:
        value, end = _json.make_scanner(_Rules)(text, 0)  # pyright: ignore[reportArgumentType]
        if end == len(text):
            return value
    except (StopIteration, ValueError, TypeError, AttributeError, SystemError):
        pass  # told by json below, in its words
    import json

    return json.loads(text)


def dumps(value: object) -> str:
    """As `json.dumps(value, allow_nan=False)`, for what JSON itself has."""
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int:
        return str(value)
    if isinstance(value, dict):
        pairs: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType]
        if all(isinstance(name, str) for name in pairs):
            return "{" + ", ".join(f"{dumps(name)}: {dumps(item)}" for name, item in pairs.items()) + "}"
    elif isinstance(value, list | tuple):
        items: list[object] | tuple[object, ...] = value  # pyright: ignore[reportUnknownVariableType]
        return "[" + ", ".join(map(dumps, items)) + "]"
    import json

    return json.dumps(value, allow_nan=False)

"""Values that broke some server once, and JSON that `json.dumps` would not write."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any, cast

from trainshed.wire.base import Message


class Token(str):
    """Written into JSON as it is, without quotes."""


AMOUNTS = (
    "1e400", "-1e400", "1e-400", "9" * 4400, "1" * 400, "1e300Gi", "1e400Gi", "1.5Gi", "500m", "0", "-1",
    "0x10", "NaN", "inf", "²", "٣", "1_0", "1" * 19, "1" * 25, "9999999999999999999", "9" * 18, "1e18",
    "2.5", "1e3", ".",
)  # fmt: skip
TIMES = (
    "3600s", "1e9s", "999999999999s", "-5s", "0.1234567890123s", "9999-12-31T23:59:59Z",
    "0000-00-00T00:00:00Z", "0s", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456789Z", "1d", "9" * 30 + "s", "0001-01-01T00:00:00+23:59", "1970-01-01",
    "0001-01-01",
)  # fmt: skip
LETTERS = (
    "", " ", "\0", "\ud800", "a\udfffb", "\n", "\r\n", "🚀", "ü" * 200, "x" * 300, "x" * 9000, "\ufeff",
    "<a>&b", "'\"\\", "%", "%s", "{}", "true", "null", "*", "=", "a=",
)  # fmt: skip
GRAMMAR = (
    "a.b." * 900, "a(" * 900, "a/" * 900, "((((", "a" + " AND a" * 400, 'state="X" OR (', 'timestamp>="1"',
    "NOT " * 500 + "a", "labels" + ".a" * 1500, "jobSpec" + ".a" * 99, "displayName desc", "create_time",
    "labels.a=b", "(" * 2000 + ")" * 2000, "labels.a:*", "name,labels", 'state=~"(a+)+$"',
    "a=" + "9" * 4400, "bytes=0-", "bytes 0-99/*", "bytes */" + "9" * 19, "bytes=" + "9" * 30 + "-",
    "AAAAAAAAAAAAAAAAAAAAAAAAWyJhIiwgImIiXQ", "WzEsMl0", "Cg==", "Cjk5OTk5OTk5OTk5OTk5OTk5OTk=", "AAo5",
)  # fmt: skip
NAMES = (
    "../../etc/passwd", "gs://", "gs://b/o", "s3://\0", "https://x/../y", "http://[", "projects/p1",
    "n1-standard-4", "custom-1e9-1", "custom-" + "9" * 400 + "-1", "custom-1-" + "9" * 4400,
    "a2-highgpu-1g", "JOB_STATE_RUNNING", "workerpool0-0", "workerpool999999999999999999999-0",
    "workerpool" + "9" * 4400 + "-0", "a:b@sha256:c", "x/y:z", "resumable", "multipart", "media",
)  # fmt: skip
GROUPS = (AMOUNTS, AMOUNTS, TIMES, LETTERS, GRAMMAR, NAMES)
TEXTS = tuple(text for group in GROUPS for text in group)
NUMBERS: tuple[object, ...] = (
    0, 1, -1, 2, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**40, 1.5, -0.0, 1e308, 1e-320,
    Token("1e400"), Token("-1e400"), Token("NaN"), Token("Infinity"), Token("9" * 4400), Token("9" * 299),
    Token("1E5"), Token("1.0"), Token("0.1e-999"),
)  # fmt: skip
PLAIN = (True, False, None, [], {}, [[]], [None], {"": None}, {"a": {"b": []}})


def text(random: Random) -> str:
    """Seldom no Unicode: such a body is refused as a whole, and nothing behind is reached."""
    chosen = random.choice(random.choice(GROUPS))
    return chosen if random.random() < 0.1 or chosen.isascii() else chosen.encode(errors="replace").decode()


def number(random: Random) -> object:
    chosen = random.choice(NUMBERS)
    return chosen if random.random() < 0.2 or not isinstance(chosen, Token) else 7


def odd(random: Random) -> object:
    kind = random.random()
    if kind < 0.55:
        return text(random)
    if kind < 0.8:
        return number(random)
    if kind < 0.97:
        return random.choice(PLAIN)
    depth = random.choice((50, 99, 101, 300, 5000))
    return Token("[" * depth + "]" * depth if random.random() < 0.5 else '{"a":' * depth + "1" + "}" * depth)


def written(value: object) -> str:
    """The value as JSON, with tokens as they are."""
    match value:
        case Token():
            return str(value)
        case dict():
            fields = cast("dict[str, object]", value)
            return (
                "{" + ",".join(f"{json.dumps(name)}:{written(item)}" for name, item in fields.items()) + "}"
            )
        case list() | tuple():
            return "[" + ",".join(map(written, cast("list[object]", value))) + "]"
        case _:
            return json.dumps(value)


def of_schema(random: Random, message: type[Message], depth: int = 0) -> dict[str, Any]:
    """A body with some fields of the message, in either spelling, most of them of the right kind."""
    names = random.sample(sorted(message.fields), min(len(message.fields), random.randint(0, 6)))
    return {name: _of_field(random, message, name, depth) for name in names}


def _of_field(random: Random, message: type[Message], name: str, depth: int) -> object:
    slot = message.fields[name]
    if random.random() < 0.15 or depth > 6:
        return odd(random)
    if slot.kind.inner is not None:
        inner = of_schema(random, slot.kind.inner, depth + 1)
        return [inner] * random.randint(0, 2) if slot.default == () else inner
    match slot.default:
        case bool():
            return random.random() < 0.5
        case int() | float():
            return number(random)
        case str():
            return text(random)
        case tuple():
            return [text(random) for _ in range(random.randint(0, 3))]
        case _:
            return {text(random): odd(random)} if slot.kind.is_open else odd(random)


def mutated(random: Random, value: Any) -> Any:
    """The value with one leaf of it replaced, or a part of it dropped, renamed or repeated."""
    if random.random() < 0.2:
        return _reshaped(random, value)
    path = random.choice(list(_leaves(value)) or [()])
    return _replaced(random, value, path)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict) and value:
        for name, item in cast("dict[str, Any]", value).items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, list) and value:
        for at, item in enumerate(cast("list[Any]", value)):
            yield from _leaves(item, (*path, at))
    else:
        yield path


def _replaced(random: Random, value: Any, path: tuple[Any, ...]) -> Any:
    if path:
        copy = value.copy()
        copy[path[0]] = _replaced(random, value[path[0]], path[1:])
        return copy
    if isinstance(value, str) and random.random() < 0.8:
        return text(random)
    if isinstance(value, int) and random.random() < 0.7:
        return random.choice((number(random), random.choice(AMOUNTS)))
    return odd(random)


def _reshaped(random: Random, value: Any) -> Any:
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        return (
            items * random.choice((2, 200))
            if random.random() < 0.3
            else [_reshaped(random, items[0]), *items[1:]]
        )
    if not isinstance(value, dict) or not value:
        return odd(random)
    fields = dict(cast("dict[str, Any]", value))
    name = random.choice(sorted(fields))
    act = random.random()
    if act < 0.5:
        fields[name] = _reshaped(random, fields[name])
    elif act < 0.7:
        del fields[name]
    else:
        fields[text(random)] = fields[name] if act < 0.85 else odd(random)
    return fields

"""Wrong values, by the kind of field they stand in; and JSON that `json.dumps` would not write."""

import base64
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Any, cast

from trainshed.wire.base import Message


class Token(str):
    """Written into JSON as it is, without quotes."""


HALF = "\ud800"  # of a surrogate pair
DEEP = (
    Token("[" * 5000 + "]" * 5000),
    Token('{"a":' * 5000 + "1" + "}" * 5000),
)
NO_JSON = (Token("1e400"), Token("NaN"), Token("-Infinity"), Token("9" * 4400), *DEEP)
TEXTS = (
    "", " ", "\0", "a\0b", "\n", "a\r\nb", "\x1b[2J", "\x7f", "🚀", "ü" * 200, "x" * 300, "x" * 9000,
    "\ufeff",
    HALF, f"a{HALF}b", "<a>&b", "'\"\\", "%", "%s", "{}", "null", "*", "a=", "../../etc/passwd", "gs://",
    "gs://b/o",
    "s3://\0", "http://[", "projects/p1", f"projects/{HALF}", "custom-1e9-1", "custom-1-" + "9" * 4400,
    "a:b@sha256:c",
    "JOB_STATE_RUNNING", "workerpool0-0", "workerpool" + "9" * 4400 + "-0", "resumable", "multipart",
)  # fmt: skip
# Each kind of field has the values that broke one of its kind somewhere; some more often than others.
WRONG: dict[str, tuple[object, ...]] = {
    "text": TEXTS,
    "variable": ("A\nB", "A\0", "A=B", "", "A\x1b", HALF, "\x85", "A" * 9000),
    "quantity": (
        *["1e400"] * 4, "-1e400", "1e-400", "9" * 4400, "1e300Gi", "1e400Gi", "1.5Gi", "500m", "-1", "NaN",
        "inf", "²", "٣",
        "1_0", ".", "1e19", 2**63, 0, True, Token("1e400"),
    ),
    "number": (
        *["9" * 4400] * 4, "9" * 25, "9" * 19, str(2**63), "-1", "0x10", "²", "1_0", "1.5", "", 0, -1, 1.5,
        1e308, -0.0,
        2**31, 2**63, 2**64, 10**40, True, Token("1e400"), Token("9" * 4400), Token("0.1e-999"),
    ),
    "time": (
        "1e9s", "999999999999s", "-5s", "0.1234567890123s", "9" * 30 + "s", "1d", "9999-12-31T23:59:59Z",
        "0000-00-00T00:00:00Z", "2026-01-01T00:00:00+99:99", "0001-01-01T00:00:00+23:59", "1970-01-01", 7,
    ),
    "mask": (
        "labels" + ".a" * 1500, "jobSpec" + ".a" * 99, "a(" * 900, "a/" * 900,
        "items(" * 900 + ")" * 900, "name,labels",
        "*", ",", "labels.", "no", "labels" + ".a" * 1500 + ",name",
    ),
    "order": ("create_time", "displayName desc, name", "desc", HALF, "a." * 900, "create_time  desc,"),
    "address": ("http://[", "//[x", "?", HALF, "/", "/storage/v1/b/%ED%A0%80/o/x",
    "/storage/v1/b/fuzz/o?maxResults=" + "9" * 4400),
    "page token": ("AAAAAAAAAAAAAAAAAAAAAAAAWyJhIiwgImIiXQ", "WzEsMl0", "Cg==", "AAo5", "x", HALF, "é",
    "A" * 5000),
    "odd": (True, None, [], {}, [[]], [None], {"": None}, {"a": {"b": []}}, 7, "x",
    Token("[" * 900 + "]" * 900)),
}  # fmt: skip
FIELDS = (
    "state",
    "displayName",
    "createTime",
    "labels.a",
    *["trainingTaskDefinition"] * 3,
    "textPayload",
    "a" + ".b" * 900,
)
OPERATORS = ("=", "!=", ":", "<", ">=", "=~")
PATTERNS = (*["******!"] * 4, "*a" * 900, "(a+)+$", "[", "9" * 4400, HALF, "\0", "2026-01-01T00:00:00Z")
FORMS = (
    "{}",
    "NOT {}",
    "({})",
    "{0} OR {0}",
    "{} AND",
    "(" * 2000 + "{}",
    "NOT " * 500 + "{}",
    "{}" + " a" * 400,
)
PLACES = (
    b"5",
    b"null",
    b"{}",
    b"[1]",
    b'["\\ud800","\\ud800"]',
    b'["\\u0000","x"]',
    b"[" * 2000,
    b"[[],{}]",
    b"\xff",
)
_KINDS = (
    ("variable", r"env\.\d+\.name"),
    ("page token", r"page_?token|upload_?id|continuation-token"),
    ("filter", r"filter"),
    ("mask", r"mask|fields"),
    ("order", r"order_?by"),
    ("address", r"target"),
    ("quantity", r"cpu|memory|gpu|size"),
)


def kind_of(path: str, value: object) -> str:
    """The kind of the field at the path, by its name and by the right value that it has now."""
    if kind := _named_kind(path):
        return kind
    if isinstance(value, int) or str(value).isdecimal():
        return "number"
    return "time" if re.fullmatch(r"\d{4}-.*Z|\d+s", str(value)) else "text"


@lru_cache(maxsize=4096)
def _named_kind(path: str) -> str:
    """The kind by the name alone; empty where it says nothing. Requests have the same paths over and over."""
    names = ((kind, rf"(^|\.)[^.]*({name})$") for kind, name in _KINDS)
    return next((kind for kind, pattern in names if re.search(pattern, path, re.IGNORECASE)), "")


def wrong(random: Random, kind: str) -> object:
    """A value that the field must refuse, or may take; now and then one of another kind."""
    if random.random() < 0.15:
        kind = random.choice((*WRONG, "filter"))
    if kind == "filter":
        term = f'{random.choice(FIELDS)}{random.choice(OPERATORS)}"{random.choice(PATTERNS)}"'
        return random.choice(("{}", "{}", random.choice(FORMS))).format(term)
    return random.choice(WRONG[kind])


def forged(random: Random, token: str) -> str:
    """The token of a page with another place in it, as somebody without the server's key would make it."""
    raw = b""
    with contextlib.suppress(ValueError):  # tokens of buckets are names
        raw = base64.b64decode(token + "==", altchars=b"-_")
    question, place = raw[8:16], random.choice(PLACES)
    sealed = hashlib.blake2b(question + place, digest_size=8).digest() + question + place
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def refusal(kind: str, value: object) -> str:
    """Why no body may have the value in such a field; empty where one may."""
    if value in NO_JSON and isinstance(value, Token):
        return f"{value[:9]} in JSON"
    if not isinstance(value, str) or isinstance(value, Token):
        return ""
    if HALF in value:
        return f"half of a surrogate pair in a {kind}"
    if kind == "variable" and not value.isprintable():
        return "a control character in the name of a variable"
    return f"NUL in a {kind}" if "\0" in value else ""


def written(value: object) -> str:
    """The value as JSON, with tokens as they are."""
    match value:
        case Token():
            return str(value)
        case dict():
            fields = cast("dict[str, object]", value).items()
            return "{" + ",".join(f"{json.dumps(name)}:{written(item)}" for name, item in fields) + "}"
        case list():
            return "[" + ",".join(map(written, cast("list[object]", value))) + "]"
        case _:
            return json.dumps(value)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        branches = cast("dict[Any, Any]", value if isinstance(value, dict) else dict(enumerate(value)))
        for name, item in branches.items():
            yield from leaves(item, (*path, name))
    else:
        yield path


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    return value_at(value[path[0]], path[1:]) if path else value


def replaced(value: Any, path: tuple[Any, ...], new: object) -> Any:
    """A copy with the new value at the path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def reshaped(random: Random, value: Any) -> tuple[Any, str]:
    """The value with one part dropped, renamed, repeated or of another type, and why none may be so."""
    if isinstance(value, list) and value:
        return cast("list[Any]", value) * random.choice((0, 2, 200)), ""
    if not isinstance(value, dict) or not value:
        return wrong(random, "odd"), ""
    fields = dict(cast("dict[str, Any]", value))
    name = random.choice(sorted(fields))
    match random.randrange(4):
        case 0:
            twice = f"{{{json.dumps(name)}:{written(fields[name])},{written(fields)[1:]}"
            return Token(twice), "a name that is given twice"
        case 1:
            del fields[name]
        case 2:
            fields[str(wrong(random, "text"))] = fields.pop(name)
        case _:
            fields[name] = wrong(random, "odd")
    return fields, ""


def with_field(random: Random, body: dict[str, Any], message: type[Message]) -> dict[str, Any]:
    """The body with one more field of its schema, here or in a message inside, of about the right kind."""
    inside = [name for name, item in body.items() if item and name in message.fields]
    messages = {name: inner for name in inside if (inner := message.fields[name].kind.inner) is not None}
    if messages and random.random() < 0.7:
        name = random.choice(sorted(messages))
        item = body[name]
        inner, *others = cast("list[Any]", item if isinstance(item, list) else [item])
        if isinstance(inner, dict):
            filled = with_field(random, cast("dict[str, Any]", inner), messages[name])
            return body | {name: [filled, *others] if isinstance(item, list) else filled}
    name = random.choice(sorted(message.fields))
    slot = message.fields[name]
    if slot.kind.inner is not None:
        value: Any = with_field(random, {}, slot.kind.inner)
    else:
        is_number = isinstance(slot.default, int | float) and not isinstance(slot.default, bool)
        value = wrong(random, kind_of(name, 1 if is_number else ""))
    return body | {name: [value] if slot.default == () else value}

"""Turn frozen dataclasses into JSON text and back, by their type hints.

It exists so that no noun of the core needs to know how it is stored. The plan for a class is made once
and kept. It may assume that values obey their hints. Old rows stay readable: a missing field takes its
default, an unknown key is ignored. A default is left out of the text only where it is empty ("", 0, None,
...): a default that carries meaning (seven days) is written down, because a later version may choose
another. A field with the metadata `stored: False` is never written. It never looks inside a field typed
`object`: that is JSON already.
"""

import dataclasses
import json
import types
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Convert = Callable[[Any], Any]
T = TypeVar("T")

_NOTHING = object()
_PLAIN = (str, int, float, bool, object)  # as JSON has them
_to_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclasses.dataclass(frozen=True, slots=True)
class ClassCodec:
    """How one class is written (field, converter, value to leave out) and read (what needs converting)."""

    names: frozenset[str]
    get: Callable[[Any], tuple[Any, ...]]
    writes: tuple[tuple[str, Convert | None, object], ...]
    reads: tuple[tuple[str, Convert], ...]


def dumps(value: object) -> str:
    """A dataclass as compact JSON text."""
    return _to_text(_write_object(value))


def loads(cls: type[T], text: str) -> T:
    """The dataclass that `dumps` wrote. Raises ValueError where the text cannot be it."""
    return _read_object(cls, json.loads(text))


def dump_plain(value: Mapping[str, object]) -> str:
    """A mapping of plain JSON values as compact text."""
    return _to_text(value)


def write_time(at: datetime) -> str:
    """RFC 3339 in UTC with fixed width, so that it sorts as text."""
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"


read_time = datetime.fromisoformat  # understands the Z since Python 3.11


def _write_object(value: object) -> dict[str, Any]:
    plan = _plan(type(value))
    out: dict[str, Any] = {}
    for (name, convert, empty), item in zip(plan.writes, plan.get(value), strict=True):
        # By equality with the default, not by emptiness: an exit code of 0 is not the absent one.
        if item is empty or (empty is not None and item == empty):
            continue
        out[name] = item if convert is None or item is None else convert(item)
    return out


def _read_object(cls: type[T], data: Any) -> T:
    """The object in `data`, which is used up."""
    plan = _plan(cls)
    try:
        for name, convert in plan.reads:
            item = data.get(name)
            if item is not None:
                data[name] = convert(item)
        if data.keys() <= plan.names:
            return cls(**data)
        return cls(**{name: item for name, item in data.items() if name in plan.names})
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{cls.__name__} cannot be read: {error}") from error


@cache
def _plan(cls: type) -> ClassCodec:
    hints = get_type_hints(cls)
    fields = [item for item in dataclasses.fields(cls) if item.metadata.get("stored", True)]
    converters = {item.name: _converters(hints[item.name]) for item in fields}
    names = [item.name for item in fields]
    get = attrgetter(*names)
    return ClassCodec(
        names=frozenset(names),
        get=get if len(names) > 1 else lambda value: (get(value),),
        writes=tuple((item.name, converters[item.name][0], _empty_default(item)) for item in fields),
        reads=tuple((name, read) for name, (_, read) in converters.items() if read is not None),
    )


def _empty_default(item: "dataclasses.Field[Any]") -> object:
    """The default where it is empty; else something equal to no value."""
    default: object = item.default
    if item.default_factory is not dataclasses.MISSING:
        default = item.default_factory()
    return default if not default else _NOTHING


def _converters(hint: Any) -> tuple[Convert | None, Convert | None]:
    """Writer and reader of one type; None where JSON has the value as it is."""
    origin = get_origin(hint)
    if origin is Union or origin is types.UnionType:
        return _of_optional(hint)
    if origin is tuple:
        return _of_tuple(get_args(hint))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of_mapping(get_args(hint))
    if hint in _PLAIN:
        return None, None
    if hint is datetime:
        return write_time, read_time
    if hint is timedelta:
        return timedelta.total_seconds, _read_seconds
    if isinstance(hint, type) and issubclass(hint, Enum):
        # Looking the member up is several times as fast as calling the class.
        return _value_of, {member.value: member for member in hint}.__getitem__
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _write_object, lambda data: _read_object(hint, data)
    raise TypeError(f"no way to store a {hint!r}")


def _read_seconds(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _value_of(member: Enum) -> Any:
    return member.value


def _of_optional(hint: Any) -> tuple[Convert | None, Convert | None]:
    inner = [arg for arg in get_args(hint) if arg is not types.NoneType]
    if all(arg in _PLAIN for arg in inner):
        return None, None
    if len(inner) != 1:
        raise TypeError(f"no way to store a {hint!r}: only `X | None` and unions of plain values are known")
    return _converters(inner[0])


def _of_mapping(args: tuple[Any, ...]) -> tuple[Convert | None, Convert | None]:
    write, read = _converters(args[1])
    if args[0] is not str:
        raise TypeError(f"keys must be text, not {args[0]!r}")
    if write is None or read is None:
        return dict, None

    def to_json(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: write(item) for key, item in value.items()}

    def from_json(value: Mapping[str, Any]) -> dict[str, Any]:
        return {key: read(item) for key, item in value.items()}

    return to_json, from_json


def _of_tuple(args: tuple[Any, ...]) -> tuple[Convert | None, Convert | None]:
    if len(args) == 2 and args[1] is Ellipsis:
        write, read = _converters(args[0])
        if read is None:
            return write, tuple
        return (
            None if write is None else lambda value: [write(item) for item in value],
            lambda value: tuple([read(item) for item in value]),
        )
    pairs = [_converters(arg) for arg in args]
    if all(pair == (None, None) for pair in pairs):
        return None, tuple
    return (
        lambda value: [w(item) if w else item for (w, _), item in zip(pairs, value, strict=True)],
        lambda value: tuple([r(item) if r else item for (_, r), item in zip(pairs, value, strict=True)]),
    )

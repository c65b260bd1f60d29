"""Reads and writes JSON objects as messages: classes whose attributes declare the fields.

    class DiskSpec(Message):
        boot_disk_type: str = text()
        boot_disk_size_gb: int = int32()

    faults = Faults("custom_job")
    disk = read(DiskSpec, body, faults)
    faults.settle()

The schemas and parsers of this package call it. Names are read in camelCase and snake_case and written in
camelCase. Null means absent, but for `double`. A value that equals its default is not written. An unknown
name is refused with Google's message. A wrong value is recorded with its path and left at its default, so one
pass collects every fault of a request. This module knows no resource.

Messages are not dataclasses. An instance stores only the fields that were given and takes the others from its
class. That makes `is_empty` simple, reading cheap, and the declarations cheap at start.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, TypeVar, cast

from trainshed.wire import scalars
from trainshed.wire.faults import Faults, join

_ABSENT = object()

M = TypeVar("M", bound="Message")
Read = Callable[[object, str, Faults], object]  # gives _ABSENT after recording a fault
Write = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class FieldKind:
    """How the values of one field are read and written."""

    read: Read
    write: Write
    inner: "type[Message] | None" = None  # the class of a nested message, or of the items of a list
    is_open: bool = False  # any name is allowed inside
    needs_value: bool = False  # null is a wrong value, not an absent one


def _same(value: Any) -> object:
    return value


@dataclass(frozen=True, slots=True)
class _Slot:
    """One field of a message. `__init_subclass__` fills in the names."""

    kind: FieldKind
    default: object
    attribute: str = ""
    camel: str = ""


class Message:
    """An immutable value. The functions below declare its fields."""

    fields: ClassVar[Mapping[str, _Slot]] = {}  # by either spelling

    def __init_subclass__(cls) -> None:
        slots = dict(cls.fields)
        for name, slot in list(vars(cls).items()):
            if isinstance(slot, _Slot):
                slots[name] = slots[camel(name)] = _Slot(slot.kind, slot.default, name, camel(name))
                setattr(cls, name, slot.default)
        cls.fields = slots

    def __init__(self, **given: object) -> None:
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name}: a message is a value and does not change")

    @property
    def is_empty(self) -> bool:
        """Whether no field was given."""
        return not self.__dict__


def _field(kind: FieldKind, default: object = None) -> Any:
    return _Slot(kind, default)


def _scalar(read_one: Callable[[object], object]) -> Read:
    def read_value(value: object, path: str, faults: Faults) -> object:
        try:
            return read_one(value)
        except ValueError as error:
            faults.lose(path, str(error))
            return _ABSENT

    return read_value


def _each(read_one: Read, instead: Callable[[], object]) -> Read:
    """A list of such values. `instead` makes the replacement for an item that cannot be read."""

    def read_list(value: object, path: str, faults: Faults) -> object:
        if not isinstance(value, list | tuple):
            faults.lose(path, f"must be a list, not {scalars.kind_of(value)}.")
            return _ABSENT
        items = (
            read_one(item, f"{path}[{number}]", faults)
            for number, item in enumerate(cast("Sequence[object]", value))
        )
        return tuple(instead() if item is _ABSENT else item for item in items)

    return read_list


_TEXT = FieldKind(_scalar(scalars.read_text), _same)
_FLAG = FieldKind(_scalar(scalars.read_flag), _same)
_INT32 = FieldKind(_scalar(functools.partial(scalars.read_int, most=scalars.INT32_MOST)), _same)
_INT64 = FieldKind(_scalar(functools.partial(scalars.read_int, most=scalars.INT64_MOST)), str)
_NUMBER = FieldKind(_scalar(scalars.read_number), _same)
_DOUBLE = FieldKind(_scalar(scalars.read_double), scalars.double_json, needs_value=True)
_DURATION = FieldKind(_scalar(scalars.read_duration), scalars.duration_text)
_TIME = FieldKind(_scalar(scalars.read_time), scalars.time_text)
_TEXTS = FieldKind(_each(_TEXT.read, str), list)


def text() -> Any:
    return _field(_TEXT, "")


def texts() -> Any:
    return _field(_TEXTS, ())


def values(read_one: Callable[[object], object], instead: Callable[[], object] = tuple) -> Any:
    """A list of scalars. `read_one` raises ValueError for a wrong item, which `instead` replaces."""
    return _field(FieldKind(_each(_scalar(read_one), instead), list), ())


def scalar(read_one: Callable[[object], object]) -> Any:
    """A value of any type, None where it was not given. `read_one` raises ValueError for a wrong one."""
    return _field(FieldKind(_scalar(read_one), _same))


def flag() -> Any:
    return _field(_FLAG, False)


def int32(default: int | None = 0) -> Any:
    return _field(_INT32, default)


def int64(default: int | None = 0) -> Any:
    return _field(_INT64, default)


def number(default: float | None = None) -> Any:
    return _field(_NUMBER, default)


def double() -> Any:
    """Any number, also NaN and infinities; 0 where it was not given. Many write null for NaN: it is no 0."""
    return _field(_DOUBLE, 0.0)


def duration(default: timedelta | None = None) -> Any:
    return _field(_DURATION, default)


def time() -> Any:
    return _field(_TIME)


def enum(numbers: Mapping[str, int]) -> Any:
    """A closed enumeration, stored by name. Number 0, "unspecified", means absent."""

    def read_enum(value: object) -> str:
        name = scalars.read_name(value, numbers)
        return name if numbers[name] else ""

    return _field(FieldKind(_scalar(read_enum), _same), "")


def open_enum(numbers: Mapping[str, int]) -> Any:
    """An enumeration that accepts any text, since Trainshed has names of its own. The caller checks them."""

    def read_enum(value: object) -> str:
        if isinstance(value, str) and value not in numbers:
            return scalars.read_text(value)
        name = scalars.read_name(value, numbers)
        return name if numbers[name] else ""

    return _field(FieldKind(_scalar(read_enum), _same), "")


def text_map() -> Any:
    def read_map(value: object, path: str, faults: Faults) -> object:
        if not isinstance(value, Mapping):
            faults.lose(path, f"must be an object, not {scalars.kind_of(value)}.")
            return _ABSENT
        result: dict[str, object] = {}
        for key, item in cast("Mapping[object, object]", value).items():
            text_item = _TEXT.read(item, join(path, str(key)[:100]), faults)
            result[str(key)] = "" if text_item is _ABSENT else text_item
        return result

    return _field(FieldKind(read_map, dict, is_open=True), MappingProxyType(dict[str, str]()))


def part(cls: type[Message]) -> Any:
    """A message inside a message; None where it was not given."""
    return _field(_message(cls))


def parts(cls: type[Message]) -> Any:
    inner = _message(cls)
    return _field(
        FieldKind(_each(inner.read, cls), lambda items: [inner.write(item) for item in items], cls), ()
    )


def parts_of(declared: Callable[[], type[Message]]) -> Any:
    """Messages of a class that is declared further below, because it has this field inside."""

    def read_parts(value: object, path: str, faults: Faults) -> object:
        cls = declared()
        return _each(_message(cls).read, cls)(value, path, faults)

    return _field(FieldKind(read_parts, lambda items: [write(item) for item in items], is_open=True), ())


def free() -> Any:
    """Any JSON object, stored unchanged. None where it was not given."""

    def read_free(value: object, path: str, faults: Faults) -> object:
        if not isinstance(value, Mapping):
            faults.lose(path, f"must be an object, not {scalars.kind_of(value)}.")
            return _ABSENT
        wrong = tuple(scalars.plain_faults(cast("Mapping[str, object]", value), path))
        for where, sentence in wrong:
            faults.lose(where, sentence)
        if wrong:
            faults.hide(path)
            return _ABSENT
        return cast("Mapping[str, object]", value)

    return _field(FieldKind(read_free, _same, is_open=True))


def output_only(*, is_open: bool = False) -> Any:
    """A field that only the server sets: accepted and ignored, so that an answer can be sent back."""
    return _field(FieldKind(lambda value, path, faults: _ABSENT, _same, is_open=is_open))


def read(cls: type[M], body: object, faults: Faults, path: str = "") -> M:
    """The body as a message. Wrong values are recorded in `faults` and left out."""
    message = _message(cls).read(body, path, faults)
    return cls() if message is _ABSENT else cast(M, message)


def write(message: Message, of: type[Message] | None = None) -> dict[str, object]:
    """The message as JSON, without defaults. `of` limits it to the fields of that class."""
    answer: dict[str, object] = {}
    known = (of or type(message)).fields
    for name, value in vars(message).items():
        slot = known.get(name)
        if slot is not None and value != slot.default:
            answer[slot.camel] = slot.kind.write(value)
    return answer


def _message(cls: type[Message]) -> FieldKind:
    def read_message(value: object, path: str, faults: Faults) -> object:
        if not isinstance(value, Mapping):
            faults.lose(path, f"must be an object, not {scalars.kind_of(value)}.")
            return _ABSENT
        given: dict[str, object] = {}
        for key, item in cast("Mapping[object, object]", value).items():
            slot = cls.fields.get(str(key))
            if slot is None:
                faults.unknown(path, str(key))
                continue
            if item is None and not slot.kind.needs_value:
                continue
            where = join(path, slot.attribute)
            if slot.attribute in given:
                faults.lose(where, f"is given twice, as {slot.camel} and {slot.attribute}.")
                continue
            given[slot.attribute] = slot.kind.read(item, where, faults)
        return cls(**{name: item for name, item in given.items() if item is not _ABSENT})

    return FieldKind(read_message, write, cls)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def has(cls: type[Message], path: Sequence[str]) -> bool:
    """Whether the class declares a field at the path."""
    name, *rest = path
    slot = cls.fields.get(name)
    if slot is None or not rest:
        return slot is not None
    return slot.kind.is_open or (slot.kind.inner is not None and has(slot.kind.inner, rest))

"""Reads scalars from TensorBoard's event files: TFRecords of protobuf messages, and only the fields needed.

`control/event_files.py` calls it with pieces of files that may still grow. A record is a length, its
checksum, a message, its checksum; checksums are masked CRC32C. A torn record at the end is left for the next
piece. A message that is damaged, or of another kind, is passed over. Nothing in a file can make it fail.
Pure: who calls it brings the checksum's function.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainshed.core.tuning.measurement import LONGEST_NAME

MOST_RECORD = 256 * 1024  # bytes: a longer one is an image, a graph or a model, and is passed over unread
MOST_SCALARS = 10_000  # in one message
_HEAD, _TAIL = 12, 4
_MASK = 0xA282EAD8
_LENGTH, _SUM = struct.Struct("<Q"), struct.Struct("<I")
_FLOAT, _DOUBLE, _HALF = struct.Struct("<f"), struct.Struct("<d"), struct.Struct("<e")
_INT32, _INT64 = struct.Struct("<i"), struct.Struct("<q")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# The types of a tensor: how its content is packed, and the field of its values where it has no content.
_PACKED = {1: _FLOAT, 2: _DOUBLE, 3: _INT32, 9: _INT64, 19: _HALF}
_VALUES = {1: 5, 2: 6, 3: 7, 9: 10, 19: 13}
_HALF_TYPE = 19

Crc32c = Callable[[bytes], int]
Field = tuple[int, int, int | bytes]  # number, wire type, value


class ScalarEvent(NamedTuple):
    tag: str
    step: int
    at: float  # seconds since the epoch
    value: float


@dataclass(frozen=True, slots=True)
class EventPiece:
    """What a piece of a file had. `used` is where the next one begins; it may lie beyond this one."""

    scalars: tuple[ScalarEvent, ...]
    used: int
    damaged: int = 0  # records passed over because their checksum is wrong
    broken: bool = False  # the rest cannot be read: a length is wrong


def read_events(data: bytes, crc32c: Crc32c, tags: Sequence[bytes] = ()) -> EventPiece:
    """The scalars in a piece that begins with a record. With `tags`, messages without any are passed over."""
    scalars: list[ScalarEvent] = []
    at = damaged = 0
    while len(data) - at >= _HEAD:
        head = data[at : at + 8]
        if _masked(crc32c(head)) != _SUM.unpack_from(data, at + 8)[0]:
            return EventPiece(tuple(scalars), at, damaged, broken=True)
        length = _LENGTH.unpack(head)[0]
        end = at + _HEAD + length + _TAIL
        if length <= MOST_RECORD:
            if end > len(data):
                break
            message = data[at + _HEAD : end - _TAIL]
            if tags and not any(tag in message for tag in tags):
                pass
            elif _masked(crc32c(message)) == _SUM.unpack_from(data, end - _TAIL)[0]:
                scalars += scalars_of(message)
            else:
                damaged += 1
        at = end
    return EventPiece(tuple(scalars), at, damaged)


def _masked(checksum: int) -> int:
    return (((checksum >> 15) | (checksum << 17)) + _MASK) & 0xFFFFFFFF


def scalars_of(message: bytes) -> list[ScalarEvent]:
    """The scalars of one message; none where it is something else."""
    at, step, pairs = 0.0, 0, list[tuple[str, float]]()
    try:
        for number, wire, value in _fields(message):
            if number == 5 and isinstance(value, bytes):
                entries = [entry for inner, _, entry in _fields(value) if inner == 1]
                pairs = [pair for entry in entries[:MOST_SCALARS] if (pair := _scalar(entry)) is not None]
            elif number == 1 and wire == _FIXED64 and isinstance(value, bytes):
                at = _DOUBLE.unpack(value)[0]
            elif number == 2 and isinstance(value, int):
                step = value - (1 << 64) if value >> 63 else value
    except (ValueError, struct.error):
        return []
    return [ScalarEvent(tag, step, at, value) for tag, value in pairs]


def _scalar(entry: int | bytes) -> tuple[str, float] | None:
    """The tag and the number of a summary's value."""
    if isinstance(entry, int):
        return None
    tag, number, plugin = "", None, ""
    for field, wire, value in _fields(entry):
        if isinstance(value, int):
            continue
        if field == 1:
            tag = value.decode("utf-8", "replace")[:LONGEST_NAME]
        elif field == 2 and wire == _FIXED32:
            number = _FLOAT.unpack(value)[0]
        elif field == 8:
            number = _tensor(value)
        elif field == 9:
            plugin = _plugin(value)
    return (tag, number) if tag and number is not None and plugin in ("", "scalars") else None


def _plugin(metadata: bytes) -> str:
    for field, wire, value in _fields(metadata):
        if (field, wire) == (1, _BYTES) and isinstance(value, bytes):
            names = [name for number, _, name in _fields(value) if number == 1 and isinstance(name, bytes)]
            return names[-1].decode("utf-8", "replace") if names else ""
    return ""


def _tensor(tensor: bytes) -> float | None:
    """The number of a tensor that has exactly one."""
    kind, content, listed = 0, b"", dict[int, list[int | bytes]]()
    for field, wire, value in _fields(tensor):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 4 and isinstance(value, bytes):
            content = value
        elif wire != _BYTES or field in _VALUES.values():
            listed.setdefault(field, []).append(value)
    form = _PACKED.get(kind)
    if form is None:
        return None
    if content:
        return float(form.unpack(content)[0]) if len(content) == form.size else None
    values = listed.get(_VALUES[kind], [])
    return _listed(kind, form, values[0]) if len(values) == 1 else None


def _listed(kind: int, form: struct.Struct, value: int | bytes) -> float | None:
    """The one number of a repeated field, packed or by itself."""
    if isinstance(value, bytes) and kind in (1, 2):
        return float(form.unpack(value)[0]) if len(value) == form.size else None
    if isinstance(value, bytes):
        packed = value
        value, end = _varint(packed, 0)
        if end != len(packed):
            return None
    if kind == _HALF_TYPE:
        return float(_HALF.unpack(struct.pack("<H", value & 0xFFFF))[0])
    return float(value - (1 << 64) if value >> 63 else value)


def _fields(message: bytes) -> list[Field]:
    """ValueError where the message is none."""
    fields: list[Field] = []
    at, size = 0, len(message)
    while at < size:
        key = message[at]
        at += 1
        if key >= 0x80:
            key, at = _varint(message, at - 1)
        wire = key & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            fields.append((key >> 3, wire, value))
            continue
        if wire == _BYTES:
            length, at = _varint(message, at)
        elif wire == _FIXED64:
            length = 8
        elif wire == _FIXED32:
            length = 4
        else:
            raise ValueError("a group, or no message")
        end = at + length
        if end > size:
            raise ValueError("it ends too early")
        fields.append((key >> 3, wire, message[at:end]))
        at = end
    return fields


def _varint(message: bytes, at: int) -> tuple[int, int]:
    if at < len(message) and message[at] < 0x80:
        return message[at], at + 1  # most of them
    value = shift = 0
    while at < len(message) and shift < 70:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError("no number")

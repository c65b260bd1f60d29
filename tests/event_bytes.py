"""Event files of TensorBoard, written by hand as TensorFlow 2 and PyTorch write them: for tests."""

import struct
from collections.abc import Iterable
from typing import Any

import google_crc32c

_crc: Any = getattr(google_crc32c, "value")  # noqa: B009 - untyped


def masked(data: bytes) -> bytes:
    checksum: int = _crc(data)
    return struct.pack("<I", (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + masked(length) + message + masked(message)


def varint(number: int) -> bytes:
    out = bytearray()
    number &= (1 << 64) - 1
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(number: int, value: bytes | int | float) -> bytes:
    """Bytes as a string or message, an int as a varint, a float as a double."""
    match value:
        case bytes():
            return varint(number << 3 | 2) + varint(len(value)) + value
        case int():
            return varint(number << 3) + varint(value)
        case float():
            return varint(number << 3 | 1) + struct.pack("<d", value)


def plugin(name: str) -> bytes:
    return field(9, field(1, field(1, name.encode())))


def simple(tag: str, value: float) -> bytes:
    """As torch.utils.tensorboard writes a scalar."""
    return field(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor(tag: str, value: float, *, kind: int = 1, by_content: bool = True, name: str = "scalars") -> bytes:
    """As TensorFlow 2 writes one: by content, or (new_style of PyTorch) as a list of floats."""
    packed = struct.pack({1: "<f", 2: "<d"}[kind], value)
    body = field(1, kind) + field(2, b"") + (field(4, packed) if by_content else field(4 + kind, packed))
    return field(1, tag.encode()) + field(8, body) + plugin(name)


def event(step: int, *values: bytes, at: float = 1_700_000_000.0) -> bytes:
    summary = b"".join(field(1, value) for value in values)
    return record(field(1, at) + field(2, step) + field(5, summary))


VERSION = record(field(1, 1.0) + field(3, b"brain.Event:2"))


def event_file(scalars: Iterable[tuple[int, str, float]], at: float = 1_700_000_000.0) -> bytes:
    """A whole file of (step, tag, value)."""
    return VERSION + b"".join(event(step, simple(tag, value), at=at + step) for step, tag, value in scalars)

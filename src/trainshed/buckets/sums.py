"""Checksums of an object's bytes: the two Google tells of a whole object, and one of each block for our own
reading.

A CRC32C of every MiB lets any piece be checked by reading little more than the piece. MD5 is by far the
slowest and is fed apart from the rest, so that it can have a core of its own.
"""

import base64
import hashlib
import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol, cast

import google_crc32c

BLOCK = 1 << 20
LATER = 64 << 20  # bytes

_extend = cast(Callable[[int, bytes], int], getattr(google_crc32c, "extend"))  # noqa: B009 - untyped


class MD5(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


def new_md5() -> MD5:
    return hashlib.md5(usedforsecurity=False)


class Sums:
    """`with_md5`: also where there are many bytes; else the MD5 of more than `LATER` is made afterwards."""

    def __init__(self, *, with_md5: bool = True) -> None:
        self.size = 0
        self._with_md5 = with_md5
        self._whole = 0  # of all whole blocks
        self._block = 0  # of what came since
        self._blocks = bytearray()
        self._md5: MD5 | None = new_md5()

    @property
    def makes_md5(self) -> bool:
        return self._md5 is not None

    def feed(self, chunks: Iterable[bytes]) -> None:
        for chunk in chunks:
            room = BLOCK - self.size % BLOCK
            if len(chunk) < room:
                self._block = _extend(self._block, chunk)
            else:
                self._cut(chunk, room)
            self.size += len(chunk)

    def feed_md5(self, chunks: Iterable[bytes]) -> None:
        if self.size > LATER and not self._with_md5:
            self._md5 = None
        if self._md5 is not None:
            for chunk in chunks:
                self._md5.update(chunk)

    def _cut(self, chunk: bytes, room: int) -> None:
        first = 0
        while len(chunk) - first >= room:
            self._block = _extend(self._block, chunk[first : first + room])
            self._blocks += struct.pack(">I", self._block)
            self._whole = _joined(self._whole, self._block, BLOCK)
            self._block, first, room = 0, first + room, BLOCK
        self._block = _extend(0, chunk[first:])

    @property
    def blocks(self) -> bytes:
        """A big-endian CRC32C of each block; empty where the one of the whole object says it."""
        if self.size <= BLOCK:
            return b""
        rest = struct.pack(">I", self._block) if self.size % BLOCK else b""
        return bytes(self._blocks) + rest

    @property
    def crc32c(self) -> str:
        whole = _joined(self._whole, self._block, self.size % BLOCK)
        return base64.b64encode(struct.pack(">I", whole)).decode()

    @property
    def md5(self) -> str:
        """Empty where it is to be made afterwards."""
        return base64.b64encode(self._md5.digest()).decode() if self._md5 is not None else ""


def _joined(first: int, second: int, length: int) -> int:
    """The CRC32C of two pieces one after the other, from those of each; `length`: of the second."""
    power = 0
    while length and first:
        if length & 1:
            first = _sum(to for bit, to in enumerate(_behind(power)) if first >> bit & 1)
        length >>= 1
        power += 1
    return first ^ second


def _sum(numbers: Iterable[int]) -> int:
    """Without carrying: what one has and the other has too, neither has."""
    total = 0
    for number in numbers:
        total ^= number
    return total


@lru_cache(32)
def _behind(power: int) -> tuple[int, ...]:
    """What each bit of a CRC32C becomes when 2**power bytes follow. It is the same for all bytes but for what
    they add themselves, so zeros tell it.
    """
    zeros = bytes(1 << power)
    none = _extend(0, zeros)
    return tuple(_extend(1 << bit, zeros) ^ none for bit in range(32))


def crc_of(block: bytes) -> bytes:
    return struct.pack(">I", _extend(0, block))

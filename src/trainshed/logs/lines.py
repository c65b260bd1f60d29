"""Cuts bytes into lines. Pure: it opens nothing and knows no time.

A line ends at its newline. A line that has none is broken at a multiple of BLOCK if the whole block before
has no newline, moved forward by up to three bytes so that no character is cut in two. Whether a place is a
boundary can therefore be seen from the two blocks before it: any reader, starting anywhere, finds the same
lines, however the file was written. A piece has at most 2 * BLOCK + 3 bytes, so that even its text, with
every byte replaced by the three of U+FFFD, stays below the 256 KiB a line may have.

A piece is *decided* by one byte: its newline, or the first byte that cannot belong to its last character.
Once that byte is there nothing can change the piece any more.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

BLOCK = 32 * 1024
LONGEST = 2 * BLOCK + 3
UNENDED = -1  # in place of the deciding byte: the file ends here, and will not grow

Read = Callable[[int, int], bytes]  # (offset, length): the bytes there, fewer only at the end of the file


class LinePiece(NamedTuple):
    start: int
    stop: int  # the start of the next one
    decided: int  # offset of the byte that decided it, or UNENDED
    data: bytes  # without the newline


def pieces(data: bytes, base: int, start: int, closed: bool) -> Iterator[LinePiece]:
    """The decided pieces from the boundary `start` on, given the file's bytes from `base` on.

    `data` must begin before `start` unless start is 0. `closed` says that no byte follows the data, ever:
    then what is left at their end is a piece too.
    """
    stop_of_data = base + len(data)
    after_newline = start == 0 or data[start - 1 - base] == 10
    while start < stop_of_data:
        first = (start - 1) // BLOCK + 2 if after_newline else start // BLOCK + 1
        limit = first * BLOCK
        newline = data.find(b"\n", start - base, limit - base)
        if newline >= 0:
            yield LinePiece(start, base + newline + 1, base + newline, data[start - base : newline])
            start = base + newline + 1
            after_newline = True
            continue
        stop = limit + continuing(data, limit - base)
        decided = stop if stop < limit + 3 else stop - 1
        if decided >= stop_of_data:
            break
        yield LinePiece(start, stop, decided, data[start - base : stop - base])
        start = stop
        after_newline = False
    if closed and start < stop_of_data:
        yield LinePiece(start, stop_of_data, UNENDED, data[start - base :])


def boundary(read: Read, offset: int) -> int:
    """The start of the piece the byte at `offset` lies in. That byte must exist (or offset be 0)."""
    block = offset - offset % BLOCK
    near = max(block, offset - 4096)
    newline = read(near, offset - near).rfind(b"\n")
    if newline >= 0:
        return near + newline + 1
    base = max(0, block - 2 * BLOCK)
    data = read(base, max(offset, block + 3) - base)
    newline = data.rfind(b"\n", max(0, block - BLOCK - base), offset - base)
    if newline >= 0:
        return base + newline + 1
    if block == 0:
        return 0
    stop = block + continuing(data, block - base)
    if stop <= offset:
        return stop
    # The byte belongs to a character that began in the block before, and so to the piece before.
    block -= BLOCK
    newline = data.rfind(b"\n", 0, block - base)
    if newline >= 0:
        return base + newline + 1
    return block + continuing(data, block - base) if block else 0


def count_starts(data: bytes, base: int, low: int, stop: int) -> int:
    """How many pieces start at `low` or behind, and before `stop`, given the file's bytes from `base` on.

    `low` must be at least 1. The data must begin a block before `low`, or at the byte before a known start at
    or before `low`, and end behind `stop - 2`.
    """
    return data.count(b"\n", low - 1 - base, stop - 1 - base) + len(_broken_starts(data, base, low, stop))


def starts_of(data: bytes, base: int, low: int, stop: int) -> list[int]:
    """Those starts themselves, in order."""
    newlines = re.finditer(rb"\n", memoryview(data)[low - 1 - base : stop - 1 - base])
    return sorted([low + match.start() for match in newlines] + _broken_starts(data, base, low, stop))


def _broken_starts(data: bytes, base: int, low: int, stop: int) -> list[int]:
    """The starts at which a line was broken."""
    starts: list[int] = []
    for edge in range(-(-low // BLOCK) * BLOCK, stop, BLOCK):
        if data.find(b"\n", max(edge - BLOCK, base) - base, edge - base) < 0:
            start = edge + continuing(data, edge - base)
            if start < stop:
                starts.append(start)
    return starts


def continuing(data: bytes, at: int) -> int:
    """How many bytes there (three at most) continue a UTF-8 character begun before."""
    count = 0
    while count < 3 and at + count < len(data) and data[at + count] & 0xC0 == 0x80:
        count += 1
    return count

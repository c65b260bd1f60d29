"""Parses the few texts of /proc and cgroups that tell what a process uses. The parsing is pure.

Samplers call it. A text it does not understand gives nothing, never an error: a process may end between two
reads. Only `slurp` touches a file; it is called thousands of times, so it does no more than it must.
"""

import os
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Stat:
    parent: int
    start: int
    ticks: int  # of CPU, its own and those of children it has waited for
    reaped: int  # of the latter alone
    threads: int


@dataclass(frozen=True, slots=True)
class Io:
    read: int = 0
    written: int = 0


def slurp(path: str) -> bytes:
    """The text of a small file; nothing where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        text = os.read(handle, _MOST)
        if len(text) < _MOST:
            return text
        parts = [text]
        while more := os.read(handle, _MOST):
            parts.append(more)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(handle)


def stat_of(text: bytes) -> Stat | None:
    # The command stands in parentheses and may hold anything, so count from behind the last one.
    fields = text[text.rfind(b")") + 2 :].split(None, 20)
    if len(fields) < 20:
        return None
    reaped = int(fields[13]) + int(fields[14])
    ticks = int(fields[11]) + int(fields[12]) + reaped
    return Stat(int(fields[1]), int(fields[19]), ticks, reaped, threads=int(fields[17]))


def memory_of(text: bytes) -> tuple[int, int]:
    """Bytes in memory by /proc/PID/statm: all, and those of them that others may share."""
    fields = text.split(None, 3)
    return (int(fields[1]) * PAGE, int(fields[2]) * PAGE) if len(fields) > 3 else (0, 0)


def proportional_of(text: bytes) -> int | None:
    """Bytes in memory by /proc/PID/smaps_rollup, of what is shared its part. The kernel walks all pages."""
    for line in text.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return None


def io_of(text: bytes) -> Io | None:
    """What really went to and from disks by /proc/PID/io; children waited for are in it."""
    read = written = None
    for line in text.splitlines():
        if line.startswith(b"read_bytes:"):
            read = int(line[11:])
        elif line.startswith(b"write_bytes:"):
            written = int(line[12:])
    return Io(read, written) if read is not None and written is not None else None


def cpu_of_group(text: bytes) -> float | None:
    """Seconds of CPU by a cgroup's cpu.stat: of all that ever ran in it."""
    for line in text.splitlines():
        if line.startswith(b"usage_usec "):
            return int(line[11:]) / 1e6
    return None


class RisingSum:
    """A sum over processes; it dips when one ends before its parent has its numbers. The answer never does.

    A dip at two looks in a row means that nobody will ever have them (a parent may ignore its children):
    from there it is counted on.
    """

    __slots__ = ("_base", "_dipped", "_last")

    def __init__(self) -> None:
        self._base = self._last = 0.0
        self._dipped = False

    def take(self, total: float) -> float:
        value = self._base + total
        if value >= self._last:
            self._last, self._dipped = value, False
        elif self._dipped:
            self._base += self._last - value
            self._dipped = False
        else:
            self._dipped = True
        return self._last

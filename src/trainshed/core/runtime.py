"""Environments that are kept: what is known of each, and which of them go when the disk is needed. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from trainshed.core.package import Package

GIB = 1 << 30
_NEVER = datetime.min.replace(tzinfo=UTC)


class RuntimePhase(StrEnum):
    READY = "READY"
    BUILDING = "BUILDING"
    FAILED = "FAILED"  # the last try; the next job tries again
    ABSENT = "ABSENT"  # nobody has asked for it yet


class WarmState(StrEnum):
    HEATING = "HEATING"  # it imports
    WARM = "WARM"
    UNSAFE = "UNSAFE"  # it cannot be forked, and said why
    COLD = "COLD"  # it has ended, and is lit again


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmInterpreter:
    """A kiln: an interpreter kept with its imports done, from which programs are forked."""

    python: str  # its path
    imports: tuple[str, ...]
    state: WarmState
    reason: str = ""  # why it cannot be used now
    uses: int = 0
    memory: int = 0  # bytes
    pid: int = 0


class RuntimeNeed(NamedTuple):
    """What a program is to find before it starts. A tuple, as it is a key at every look at every job."""

    image: str
    requirements: tuple[str, ...] = ()  # lines of a requirements file, on top of the image
    packages: tuple[str, ...] = ()  # addresses of Python packages, on top as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One environment, built or not."""

    id: str  # "" where none is built: the server's own interpreter
    name: str
    phase: RuntimePhase
    python: str = ""
    requirements: tuple[str, ...] = ()
    packages: tuple[Package, ...] = ()
    below: str = ""  # the id of the one whose packages it sees
    size: int = 0  # bytes
    built_at: datetime | None = None
    used_at: datetime | None = None
    message: str = ""  # how far its build is, or why it failed
    lines: tuple[str, ...] = ()  # the last words of a build that failed
    warm: WarmInterpreter | None = None


def room_to_keep(disk: int, asked: int | None) -> int:
    """How many bytes of a disk stay free: what was set, else 10 GiB or a tenth, whichever is smaller."""
    return min(10 * GIB, disk // 10) if asked is None else asked


def with_below(wanted: Iterable[str], kept: Iterable[Runtime]) -> frozenset[str]:
    """The wanted ones and those they are laid on."""
    below = {item.id: item.below for item in kept}
    found: set[str] = set()
    for item in wanted:
        at = item
        while at and at not in found:
            found.add(at)
            at = below.get(at, "")
    return frozenset(found)


def victims(kept: Iterable[Runtime], wanted: Iterable[str], short: int) -> tuple[Runtime, ...]:
    """The least recently used whose going frees what is short of, none of them wanted.

    One that others are laid on goes only after all of those.
    """
    left = {item.id: item for item in kept}
    spared = with_below(wanted, left.values())
    going: list[Runtime] = []
    while short > 0:
        carrying = {item.below for item in left.values() if item.below}
        free = [item for item in left.values() if item.id not in spared and item.id not in carrying]
        if not free:
            break
        oldest = min(free, key=lambda one: (one.used_at or one.built_at or _NEVER, one.id))
        going.append(left.pop(oldest.id))
        short -= oldest.size
    return tuple(going)

"""Python environments: what is known of each, and which are removed when the disk is full. Pure.

`runtimes/`, the backends and `service/runtimes.py` use it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from trainshed.core.supplies.package import Package

PLAIN = "trainshed/python"  # an interpreter as it is
GIB = 1 << 30
_NEVER = datetime.min.replace(tzinfo=UTC)


class RuntimePhase(StrEnum):
    READY = "READY"
    BUILDING = "BUILDING"
    FAILED = "FAILED"  # the last build failed; the next job tries again
    ABSENT = "ABSENT"  # nobody has asked for it yet


class WarmState(StrEnum):
    HEATING = "HEATING"  # it is importing its modules
    WARM = "WARM"
    UNSAFE = "UNSAFE"  # it cannot be forked; `reason` says why
    COLD = "COLD"  # it has ended, and is started again


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmInterpreter:
    """An interpreter that has done its imports and from which programs are forked."""

    python: str  # its path
    imports: tuple[str, ...]
    state: WarmState
    reason: str = ""  # why it cannot be used now
    uses: int = 0
    memory: int = 0  # bytes
    pid: int = 0


class RuntimeNeed(NamedTuple):
    """What a program needs before it starts. A tuple, because it is a key in frequent lookups."""

    image: str
    requirements: tuple[str, ...] = ()  # lines of a requirements file, on top of the image
    packages: tuple[str, ...] = ()  # addresses of Python packages, also on top


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One environment, built or not."""

    id: str  # "" for the server's own interpreter
    name: str
    phase: RuntimePhase
    python: str = ""
    requirements: tuple[str, ...] = ()
    packages: tuple[Package, ...] = ()
    below: str = ""  # the id of the environment that it is laid on
    size: int = 0  # bytes
    built_at: datetime | None = None
    used_at: datetime | None = None
    message: str = ""  # the progress of its build, or why it failed
    lines: tuple[str, ...] = ()  # the last output of its build, while it goes on or if it failed
    jobs: tuple[str, ...] = ()  # ids of the jobs that need it and are not over
    warm: WarmInterpreter | None = None

    @property
    def is_layered(self) -> bool:
        """Whether it has packages or requirements that a job brought."""
        return bool(self.below) or (bool(self.id) and self.name.partition(":")[0] == PLAIN)


def room_to_keep(disk: int, asked: int | None) -> int:
    """How many bytes of a disk stay free: the setting, else the smaller of 10 GiB and a tenth."""
    return min(10 * GIB, disk // 10) if asked is None else asked


def with_below(wanted: Iterable[str], kept: Iterable[Runtime]) -> frozenset[str]:
    """The wanted runtimes and those they are laid on."""
    below = {item.id: item.below for item in kept}
    needed: set[str] = set()
    for item in wanted:
        at = item
        while at and at not in needed:
            needed.add(at)
            at = below.get(at, "")
    return frozenset(needed)


def victims(kept: Iterable[Runtime], wanted: Iterable[str], short: int) -> tuple[Runtime, ...]:
    """The least recently used runtimes to remove so that `short` bytes become free; none of them wanted.

    A runtime that others are laid on is removed only after those.
    """
    left = {item.id: item for item in kept}
    spared = with_below(wanted, left.values())
    going: list[Runtime] = []
    while short > 0:
        carrying = {item.below for item in left.values() if item.below}
        free = [item for item in left.values() if item.id not in spared and item.id not in carrying]
        if not free:
            break
        oldest = min(free, key=lambda item: (item.used_at or item.built_at or _NEVER, item.id))
        going.append(left.pop(oldest.id))
        short -= oldest.size
    return tuple(going)

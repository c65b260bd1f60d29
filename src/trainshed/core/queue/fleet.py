"""What a backend offers (nodes), and the recorded decision which replica runs on which node (admission)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum


class Fit(StrEnum):
    """What to do with a job larger than the whole fleet."""

    SHRINK = "shrink"  # it gets all there is, and its admission says what was cut
    STRICT = "strict"  # it waits for larger machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    host: str  # the address by which its replicas reach each other
    cpus: float
    memory: int
    gpus: tuple[str, ...] = ()  # device ids, in order
    gpu_kind: str = ""  # what its driver or its label calls them
    accelerator: str = ""  # the type by which jobs ask for them; empty where none fits
    only_gpus: bool = False  # it takes only replicas with GPUs
    site: str = ""  # the nodes among which a job is placed; empty: there is only one such group
    backends: tuple[str, ...] = field(default=(), compare=False)  # that run on it now, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The node of one replica, and the resources it gets there."""

    pool: int
    index: int
    node: str
    host: str
    cpus: float
    memory: int
    gpus: tuple[str, ...] = ()
    port: int = 0

    @property
    def address(self) -> str:
        """Host and port in one text: an IPv6 address has colons of its own, and stands in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    placements: tuple[Placement, ...]
    admitted_at: datetime
    master_port: int = 0
    cuts: tuple[str, ...] = ()  # what was asked for and not given, a sentence each
    site: str = ""  # of its nodes, where there are several
    why: str = ""  # why it is at that site, a sentence

    @property
    def ports(self) -> frozenset[int]:
        return frozenset(p.port for p in self.placements) | {self.master_port}

    def numbered(self, ports: Sequence[int]) -> "Admission":
        """The admission with these ports: the master's first, then one for each replica."""
        places = tuple(replace(p, port=port) for p, port in zip(self.placements, ports[1:], strict=True))
        return replace(self, placements=places, master_port=ports[0])

    def by_replica(self) -> dict[tuple[int, int], Placement]:
        return {(p.pool, p.index): p for p in self.placements}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The recorded decision to stop jobs for a waiting one, and the places that are kept for it meanwhile."""

    placements: tuple[Placement, ...]
    victims: tuple[tuple[str, int], ...]  # the jobs to be stopped, each in this attempt
    claimed_at: datetime
    rule: str = ""  # why they may be stopped, in words

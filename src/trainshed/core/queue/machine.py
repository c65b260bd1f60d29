"""Machine types and scale tiers as values, and sizes in words. Pure.

`data/catalogue.py` reads the numbers from a data file; the service, `wire/` and `core/queue/place.py` use
them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

GIB = 1024**3
_CUSTOM = re.compile(r"custom-([0-9]{1,4}(?:\.[0-9]{1,3})?)-([0-9]{1,9})")  # CPUs, MiB
_SIZE = re.compile(r"[0-9]+GB")


def in_gib(size: int) -> str:
    """A size in words: in MiB where GiB would round it away."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{max(1, round(size / (1 << 20)))} MiB"


def in_cpus(cpus: float) -> str:
    """A number of CPUs in words: at most two decimals, and never "0" for more than none."""
    return f"{max(round(cpus, 2), 0.01):g}" if cpus > 0 else "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine type: what one replica on it may use."""

    name: str
    cpus: float
    memory: int  # bytes
    accelerator: str = ""  # a kind of accelerator that is part of the type (a2-highgpu-8g)
    accelerators: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTier:
    """AI Platform's named cluster shapes: machine type and count per role."""

    name: str
    master: str
    worker: str = ""
    workers: int = 0
    parameter_server: str = ""
    parameter_servers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All machine types, accelerators and scale tiers that may be asked for."""

    machines: Mapping[str, Machine] = field(default_factory=dict[str, Machine])
    accelerators: Mapping[str, str] = field(default_factory=dict[str, str])  # name -> a short description
    tiers: Mapping[str, ScaleTier] = field(default_factory=dict[str, ScaleTier])
    families: tuple[str, ...] = ()  # e.g. "n1-standard-N (1, 2, 4…)": for error messages

    def machine(self, name: str) -> Machine | None:
        """The type of that name; `custom-CPUS-MIB` has exactly that size."""
        if (known := self.machines.get(name)) is not None:
            return known
        match = _CUSTOM.fullmatch(name)
        if match is None or not float(match[1]) or not int(match[2]):
            return None
        return Machine(name=name, cpus=float(match[1]), memory=int(match[2]) << 20)

    def accelerator_of(self, device: str) -> str:
        """The accelerator for a driver's device name, such as "NVIDIA H200"; "" where none matches."""
        words = set(re.split(r"[^A-Z0-9]+", device.upper()))
        best, most = "", (0, 0)
        for name in self.accelerators:
            own = [word for word in name.split("_") if word not in ("NVIDIA", "TESLA")]
            matched = [word for word in own if word in words]
            has_model = all(word in words or _SIZE.fullmatch(word) for word in own)
            if has_model and (score := (len(matched), -len(own))) > most and matched:
                best, most = name, score
        return best

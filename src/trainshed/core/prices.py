"""Prices: what an hour of a CPU, of a GiB of memory and of a GPU costs, since when. Pure.

`settings/prices_file.py` reads them; `core/costs.py` prices uses with them. An hour is priced by the list
that was valid on its day. Where a node is own hardware, its prices follow from what it cost and draws; else
the price of a machine type counts for CPUs and memory, where there is one; else CPUs and memory have their
prices. GPUs are priced by their type. All arithmetic is exact: nothing is rounded but the unit prices of own
hardware.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal, Inexact
from fnmatch import fnmatchcase
from typing import NamedTuple

from trainshed.core.day_use import DayUse

EXACT = Context(prec=200, traps=[Inexact])  # whatever would be rounded raises
DEFAULT = "default"  # in place of a type or project: all others
HOURS_A_YEAR = Decimal(8766)
GIB = Decimal(1 << 30)
_UNIT = Decimal("1e-12")  # to which unit prices of own hardware are rounded
_ROUNDED = Context(prec=60)
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPrices:
    """For an hour, on demand or on spot capacity. None: not said."""

    cpu: Decimal | None = None
    gib: Decimal | None = None
    gpus: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])  # by type
    machines: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])  # CPUs and memory, by type

    def has_machine(self, machine_type: str) -> bool:
        """Whether it has a price for CPUs or memory, of that machine type or of all."""
        return machine_type in self.machines or self.cpu is not None or self.gib is not None

    def gpu(self, kind: str) -> Decimal | None:
        return self.gpus.get(kind, self.gpus.get(DEFAULT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Own machines of one kind: what one was bought for, wears off and draws, and what is in it."""

    nodes: tuple[str, ...]  # names; * stands for any letters
    bought: Decimal
    years: Decimal
    cpus: Decimal
    memory_gib: Decimal
    gpus: int = 0
    power_watts: Decimal = _ZERO
    kwh: Decimal = _ZERO  # the price of a kWh
    utilisation: Decimal = Decimal(1)  # the part of all hours in which it is used
    gpu_part: Decimal = Decimal("0.8")  # the part of its price that its GPUs carry

    @property
    def hour(self) -> Decimal:
        """The price of an hour in which all of it is used: such hours pay for those without use."""
        wear = _ROUNDED.divide(self.bought, self.years * HOURS_A_YEAR)
        power = self.power_watts / 1000 * self.kwh
        return _ROUNDED.divide(wear + power, self.utilisation)

    def prices(self) -> UnitPrices:
        """GPUs carry their part; of the rest CPUs carry one half and memory the other."""
        for_gpus = self.gpu_part if self.gpus else _ZERO
        half = self.hour * (1 - for_gpus) / 2
        gpus = {DEFAULT: (self.hour * for_gpus / self.gpus).quantize(_UNIT)} if self.gpus else {}
        return UnitPrices(
            cpu=(half / self.cpus).quantize(_UNIT), gib=(half / self.memory_gib).quantize(_UNIT), gpus=gpus
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    since: date | None = None  # None: always
    on_demand: UnitPrices = UnitPrices()
    spot: UnitPrices = UnitPrices()  # what it does not say costs as on demand
    hardware: tuple[tuple[Hardware, UnitPrices], ...] = ()

    def of(self, use: DayUse) -> tuple[UnitPrices, ...]:
        """Where to look for prices of a use, the first first."""
        for machine, prices in self.hardware:
            if any(fnmatchcase(use.node, name) for name in machine.nodes):
                return (prices,)
        return (self.spot, self.on_demand) if use.is_spot else (self.on_demand,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    currency: str
    lists: tuple[PriceList, ...] = ()  # in the order of their days
    budgets: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])  # a month, by project

    def at(self, day: date | None) -> PriceList | None:
        """The list that is valid on that day; None before the first. No day: there is only one list."""
        valid = [item for item in self.lists if item.since is None or day is None or item.since <= day]
        return valid[-1] if valid else None

    @property
    def change(self) -> bool:
        """Whether a price depends on the day."""
        return len(self.lists) > 1 or any(item.since is not None for item in self.lists)

    @property
    def depend_on_nodes(self) -> bool:
        return any(item.hardware for item in self.lists)

    def budget(self, project: str) -> Decimal | None:
        return self.budgets.get(project, self.budgets.get(DEFAULT))


class Rate(NamedTuple):
    """Of a use: what it has, and what an hour of that costs. `unpriced`: what has no price."""

    cpus: Decimal
    gib: Decimal
    gpus: Decimal
    hour: Decimal
    unpriced: tuple[str, ...]


def rate(use: DayUse, prices: Prices | None) -> Rate:
    cpus, gpus = Decimal(repr(use.cpus)), Decimal(use.gpus)
    gib = EXACT.divide(Decimal(use.memory), GIB)
    valid = None if prices is None else prices.at(use.day)
    if valid is None:
        return Rate(cpus, gib, gpus, _ZERO, ())
    among, hour, unpriced = valid.of(use), _ZERO, list[str]()
    for amount, price, name in _parts(use, among, cpus, gib, gpus):
        if price is None:
            unpriced.append(name)
        else:
            hour = EXACT.add(hour, EXACT.multiply(amount, price))
    return Rate(cpus, gib, gpus, hour, tuple(unpriced))


def _parts(
    use: DayUse, among: tuple[UnitPrices, ...], cpus: Decimal, gib: Decimal, gpus: Decimal
) -> Iterator[tuple[Decimal, Decimal | None, str]]:
    """How much of what, its price, and its name in the file."""
    deciding = next((p for p in among if p.has_machine(use.machine_type)), None)
    if deciding is not None and use.machine_type in deciding.machines:
        yield Decimal(1), deciding.machines[use.machine_type], ""
    else:
        yield cpus, next((p.cpu for p in among if p.cpu is not None), None), "cpu_hour"
        yield gib, next((p.gib for p in among if p.gib is not None), None), "gib_hour"
    if use.gpus:
        kinds = (p.gpu(use.accelerator) for p in among)
        yield gpus, next((price for price in kinds if price is not None), None), f"gpu_hour.{use.accelerator}"

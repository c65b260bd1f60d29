"""The machine types, accelerators and scale tiers on offer, read from the data file once.

Families are rows of sizes there; here every name becomes a Machine of its own. The file ships with the
package, so a mistake in it is a mistake in the code: it is not explained, it just raises.
"""

import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainshed.core.queue.machine import GIB, Catalogue, Machine, ScaleTier

_FILE = Path(__file__).parent / "machines.toml"


@functools.cache
def load_catalogue() -> Catalogue:
    """All that may be asked for."""
    return read_catalogue(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def read_catalogue(data: Mapping[str, Any]) -> Catalogue:
    machines: dict[str, Machine] = {}
    for family in data["families"]:
        machines.update((machine.name, machine) for machine in _family(family))
    for name, row in data["machines"].items():
        machines[name] = _machine(name, row)
    return Catalogue(
        machines=machines,
        accelerators=data["accelerators"],
        tiers={name: ScaleTier(name=name, **row) for name, row in data["tiers"].items()},
        families=(*map(_summary, data["families"]), *data["machines"]),
    )


def _family(family: Mapping[str, Any]) -> Iterator[Machine]:
    for row in _rows(family):
        name = f"{family['name']}-{row['n']}{family.get('unit', '')}"
        yield _machine(name, {"accelerator": family.get("accelerator", ""), **row})


def _rows(family: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "sizes" in family:
        return family["sizes"]
    each = family["memory_per_cpu"]
    return [{"n": cpus, "cpus": cpus, "memory": cpus * each} for cpus in family["cpus"]]


def _machine(name: str, row: Mapping[str, Any]) -> Machine:
    return Machine(
        name=name,
        cpus=float(row["cpus"]),
        memory=round(row["memory"] * GIB),
        accelerator=row.get("accelerator", ""),
        accelerators=row.get("accelerators", 0),
    )


def _summary(family: Mapping[str, Any]) -> str:
    """A family in a few characters, such as `n1-standard-N (1 to 96)`."""
    numbers = [row["n"] for row in _rows(family)]
    unit = family.get("unit", "")
    if len(numbers) == 1:
        return f"{family['name']}-{numbers[0]}{unit}"
    return f"{family['name']}-N{unit} ({numbers[0]} to {numbers[-1]})"

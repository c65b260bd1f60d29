"""Renders the machine types and accelerators on offer as JSON. For `api/machine_types.py`."""

from typing import Any

from trainshed.core.queue.machine import Catalogue, Machine


def render_catalogue(catalogue: Catalogue) -> dict[str, Any]:
    return {
        "machineTypes": [_render_machine(machine) for machine in catalogue.machines.values()],
        "acceleratorTypes": [
            {"name": name, "description": description} for name, description in catalogue.accelerators.items()
        ],
    }


def _render_machine(machine: Machine) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": machine.name,
        "cpus": machine.cpus,
        "memoryBytes": str(machine.memory),
    }
    if machine.accelerators:
        answer |= {"acceleratorType": machine.accelerator, "acceleratorCount": machine.accelerators}
    return answer

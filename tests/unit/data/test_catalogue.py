import pytest

from trainshed.core.queue.machine import GIB
from trainshed.data.catalogue import load_catalogue
from trainshed.wire.enums import ACCELERATORS

CATALOGUE = load_catalogue()


@pytest.mark.parametrize(
    ("name", "cpus", "memory"),
    [
        ("n1-standard-4", 4, 15),
        ("n1-standard-96", 96, 360),
        ("n1-highmem-16", 16, 104),
        ("n1-highcpu-16", 16, 14.4),
        ("c2-standard-60", 60, 240),
        ("e2-micro", 0.25, 1),
        ("a2-highgpu-8g", 96, 680),
        ("complex_model_m", 16, 14.4),
        ("large_model", 8, 52),
        ("standard", 4, 15),
    ],
)
def test_a_machine_has_the_size_its_name_promises(name: str, cpus: float, memory: float) -> None:
    machine = CATALOGUE.machines[name]
    assert (machine.name, machine.cpus, machine.memory) == (name, cpus, round(memory * GIB))


def test_every_machine_is_sound() -> None:
    for name, machine in CATALOGUE.machines.items():
        assert machine.name == name
        assert machine.cpus > 0
        assert machine.memory > 0
        assert bool(machine.accelerator) == bool(machine.accelerators)
        assert not machine.accelerator or machine.accelerator in CATALOGUE.accelerators


def test_a_machine_may_bring_its_accelerators() -> None:
    assert (
        CATALOGUE.machines["a2-megagpu-16g"].accelerators,
        CATALOGUE.machines["a2-megagpu-16g"].accelerator,
    ) == (16, "NVIDIA_TESLA_A100")
    assert CATALOGUE.machines["g2-standard-48"].accelerators == 4
    assert CATALOGUE.machines["complex_model_l_v100"].accelerators == 8


def test_every_accelerator_of_the_api_is_there() -> None:
    assert {name for name, number in ACCELERATORS.items() if number} <= set(CATALOGUE.accelerators)


def test_the_premium_tier_is_twenty_workers_with_the_chief_and_eleven_parameter_servers() -> None:
    tier = CATALOGUE.tiers["PREMIUM_1"]
    assert (1 + tier.workers, tier.parameter_servers) == (20, 11)


def test_every_tier_names_machines_that_exist() -> None:
    assert set(CATALOGUE.tiers) == {"BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM"}
    for tier in CATALOGUE.tiers.values():
        for name in (tier.master, tier.worker, tier.parameter_server):
            assert not name or name in CATALOGUE.machines
        assert bool(tier.worker) == bool(tier.workers)


def test_families_are_told_shortly() -> None:
    assert "n1-standard-N (1 to 96)" in CATALOGUE.families
    assert "a2-highgpu-Ng (1 to 8)" in CATALOGUE.families
    assert "m1-megamem-96" in CATALOGUE.families


def test_a_machine_of_any_size_is_called_by_its_size() -> None:
    machine = CATALOGUE.machine("custom-0.5-512")
    assert machine is not None
    assert (machine.name, machine.cpus, machine.memory) == ("custom-0.5-512", 0.5, GIB // 2)
    assert CATALOGUE.machine("n1-standard-4") == CATALOGUE.machines["n1-standard-4"]


@pytest.mark.parametrize(
    "name", ["custom-0-512", "custom-1-0", "custom-1", "custom--1-5", "custom-1-5g", "xcustom-1-5"]
)
def test_what_is_no_size_is_no_machine(name: str) -> None:
    assert CATALOGUE.machine(name) is None

"""Which price counts for which use, and what is refused in a file of prices."""

import tomllib
from datetime import date
from decimal import Decimal

import pytest

from trainshed.core.day_use import DayUse
from trainshed.core.ledger import TimeClass
from trainshed.core.price_schema import PriceFaults, dotted, read_prices
from trainshed.core.prices import Prices, rate

GIB = 1 << 30
PRICES = """
currency = "EUR"

[[prices]]
cpu_hour = 0.03
gib_hour = 0.004
[prices.gpu_hour]
NVIDIA_TESLA_T4 = 0.35
default = 1
[prices.machine_hour]
n1-standard-4 = 0.2
[prices.spot]
cpu_hour = 0.01
[prices.spot.gpu_hour]
NVIDIA_TESLA_T4 = 0.1

[[prices]]
from = 2026-11-15
cpu_hour = 0.06

[[prices.hardware]]
nodes = ["box*"]
bought = 35064
years = 4
power_watts = 1000
kwh = 0.5
utilisation = 0.5
cpus = 30
memory_gib = 60
gpus = 4
"""
OLD, NEW = date(2026, 11, 14), date(2026, 11, 15)


def prices_of(text: str) -> Prices:
    return read_prices(tomllib.loads(text, parse_float=Decimal))


def a_use(**more: object) -> DayUse:
    fields: dict[str, object] = {"cpus": 2.0, "memory": 10 * GIB, "day": OLD, "spent_on": TimeClass.COMPUTED}
    return DayUse(**(fields | more))  # pyright: ignore[reportArgumentType]


def hour(**more: object) -> Decimal:
    return rate(a_use(**more), prices_of(PRICES)).hour


def test_cpus_and_memory_have_a_price_each():
    assert hour() == Decimal("0.10")


def test_a_gpu_has_the_price_of_its_type_else_that_of_all_others():
    assert hour(gpus=2, accelerator="NVIDIA_TESLA_T4") == Decimal("0.80")
    assert hour(gpus=2, accelerator="NVIDIA_L4") == Decimal("2.10")


def test_a_machine_type_has_a_price_for_cpus_and_memory_and_gpus_come_on_top():
    assert hour(machine_type="n1-standard-4") == Decimal("0.2")
    assert hour(machine_type="n1-standard-4", gpus=1, accelerator="NVIDIA_TESLA_T4") == Decimal("0.55")


def test_spot_costs_as_on_demand_where_nothing_else_is_said():
    assert hour(is_spot=True) == Decimal("0.06")
    assert hour(is_spot=True, gpus=1, accelerator="NVIDIA_TESLA_T4") == Decimal("0.16")
    assert hour(is_spot=True, gpus=1, accelerator="NVIDIA_L4") == Decimal("1.06")
    assert hour(is_spot=True, machine_type="n1-standard-4") == Decimal("0.06")


def test_a_price_counts_from_its_day_on():
    priced = rate(a_use(day=NEW), prices_of(PRICES))
    assert (priced.hour, priced.unpriced) == (Decimal("0.12"), ("gib_hour",))


def test_before_the_first_price_nothing_costs():
    prices = prices_of('currency = "EUR"\n[[prices]]\nfrom = 2026-11-15\ncpu_hour = 1')
    assert rate(a_use(day=OLD), prices).hour == 0


def test_own_hardware_costs_its_wear_and_power_over_the_hours_in_which_it_is_used():
    # 35064 over 4 years of 8766 hours is 1 an hour, power 0.5: 1.5, and twice that at half use.
    everything = hour(day=NEW, node="box1", cpus=30.0, memory=60 * GIB, gpus=4, accelerator="X")
    assert everything == Decimal(3)
    assert hour(day=NEW, node="box1", cpus=0.0, memory=0, gpus=1, accelerator="X") == Decimal("0.6")
    assert hour(day=NEW, node="box1", cpus=30.0, memory=0) == Decimal("0.3")
    assert hour(day=NEW, node="other") == Decimal("0.12")


def test_all_mistakes_are_told_at_once_with_their_paths():
    wrong = """
    currency = "two words"
    [[prices]]
    from = "2026-01-01"
    cpu_hour = -1
    gpu_hour = 3
    disk_hour = 1
    [[prices.hardware]]
    nodes = []
    bought = "much"
    years = 0
    cpus = 1
    utilisation = 2
    [budgets]
    vision = nan
    """
    with pytest.raises(PriceFaults) as caught:
        prices_of(wrong)
    assert [dotted(path) for path, _ in caught.value.faults] == [
        "currency",
        "prices[0].disk_hour",
        "prices[0].from",
        "prices[0].hardware[0].nodes",
        "prices[0].hardware[0].bought",
        "prices[0].hardware[0].memory_gib",
        "prices[0].hardware[0].years",
        "prices[0].hardware[0].utilisation",
        "prices[0].cpu_hour",
        "prices[0].gpu_hour",
        "budgets.vision",
    ]


def test_two_lists_from_the_same_day_are_refused():
    with pytest.raises(PriceFaults, match=r"prices\[1\].from is that of an earlier table"):
        prices_of('currency = "EUR"\n[[prices]]\ncpu_hour = 1\n[[prices]]\ncpu_hour = 2')


@pytest.mark.parametrize("text", ["", "prices = 3", "[prices]\ncpu_hour = 1", "[[prices]]\nspot = 1"])
def test_what_is_no_list_of_prices_is_refused(text: str):
    with pytest.raises(PriceFaults):
        prices_of('currency = "EUR"\n' + text)

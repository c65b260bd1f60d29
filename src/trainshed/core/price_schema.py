"""Reads prices out of plain values, as TOML gives them. Pure; `settings/prices_file.py` calls it.

Every mistake is found at once: its path in the file, and a sentence on what is wrong and what to write.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias, cast

from trainshed.core.prices import DEFAULT, Hardware, PriceList, Prices, UnitPrices

FieldPath: TypeAlias = tuple[str | int, ...]

MOST = Decimal(10**9)
MOST_DECIMALS = 12
_CURRENCY = re.compile(r"[^\W\d_]{1,12}|[$€£¥]")
_UNITS = ("cpu_hour", "gib_hour", "gpu_hour", "machine_hour")
_LIST = ("from", "spot", "hardware", *_UNITS)
_POSITIVE = ("bought", "years", "cpus", "memory_gib")
_OPTIONAL = ("power_watts", "kwh", "utilisation", "gpu_part", "gpus")


class PriceFaults(Exception):
    """What is wrong with prices: the path of each field, and a sentence."""

    def __init__(self, faults: Iterable[tuple[FieldPath, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{dotted(path)} {sentence}" for path, sentence in self.faults))


def dotted(path: FieldPath) -> str:
    """A path as people write it: prices[1].gpu_hour.T4."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


def read_prices(data: Mapping[str, object]) -> Prices:
    """Raises PriceFaults with every mistake."""
    return PriceReader().prices(data)


class PriceReader:
    """Reads prices and collects what is wrong with them."""

    def __init__(self) -> None:
        self.faults: list[tuple[FieldPath, str]] = []

    def prices(self, data: Mapping[str, object]) -> Prices:
        self._known(data, (), ("currency", "prices", "budgets"))
        currency = data.get("currency")
        if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
            self._fault(("currency",), 'must be one word, as in currency = "EUR".')
        rows = data.get("prices", [])
        if not isinstance(rows, list) or not rows:
            self._fault(("prices",), "must be a list of tables, each headed [[prices]].")
            rows = []
        lists = [self._list(row, ("prices", at)) for at, row in enumerate(cast(list[object], rows))]
        days = [item.since for item in lists]
        for at, day in enumerate(days):
            if day in days[:at]:
                begins = "no from" if day is None else f"from = {day}"
                self._fault(("prices", at, "from"), f"is that of an earlier table too: both have {begins}.")
        budgets = self._numbers(data.get("budgets", {}), ("budgets",))
        if self.faults:
            raise PriceFaults(self.faults)
        lists.sort(key=lambda item: item.since or date.min)
        return Prices(currency=str(currency), lists=tuple(lists), budgets=budgets)

    def _list(self, value: object, path: FieldPath) -> PriceList:
        row = self._table(value, path, _LIST)
        since = row.get("from")
        if since is not None and (not isinstance(since, date) or isinstance(since, datetime)):
            self._fault((*path, "from"), "must be a day such as 2026-01-31, without quotes and time.")
            since = None
        machines = row.get("hardware", [])
        if not isinstance(machines, list):
            self._fault((*path, "hardware"), "must be a list of tables, each headed [[prices.hardware]].")
            machines = []
        hardware = [
            self._hardware(item, (*path, "hardware", at))
            for at, item in enumerate(cast(list[object], machines))
        ]
        return PriceList(
            since=since,
            on_demand=self._units(row, path),
            spot=self._units(self._table(row.get("spot", {}), (*path, "spot"), _UNITS), (*path, "spot")),
            hardware=tuple((item, item.prices()) for item in hardware if item is not None),
        )

    def _units(self, row: Mapping[str, object], path: FieldPath) -> UnitPrices:
        return UnitPrices(
            cpu=self._number(row["cpu_hour"], (*path, "cpu_hour")) if "cpu_hour" in row else None,
            gib=self._number(row["gib_hour"], (*path, "gib_hour")) if "gib_hour" in row else None,
            gpus=self._numbers(row.get("gpu_hour", {}), (*path, "gpu_hour")),
            machines=self._numbers(row.get("machine_hour", {}), (*path, "machine_hour")),
        )

    def _hardware(self, value: object, path: FieldPath) -> Hardware | None:
        before = len(self.faults)
        row = self._table(value, path, ("nodes", *_POSITIVE, *_OPTIONAL))
        value = row.get("nodes")
        nodes = cast(list[object], value) if isinstance(value, list) else []
        if not nodes or not all(isinstance(name, str) for name in nodes):
            self._fault((*path, "nodes"), 'must be a list of names, as in nodes = ["box1", "gpu-*"].')
        numbers: dict[str, Any] = {}
        for name in (*_POSITIVE, *(name for name in _OPTIONAL if name in row)):
            if name not in row:
                self._fault((*path, name), "is missing.")
            else:
                numbers[name] = self._number(row[name], (*path, name))
        for name in ("years", "cpus", "memory_gib", "utilisation"):
            self._check((*path, name), numbers.get(name), lambda n: n > 0, "must be more than 0.")
        for name in ("utilisation", "gpu_part"):
            self._check((*path, name), numbers.get(name), lambda n: n <= 1, "must be at most 1.")
        gpus = numbers.get("gpus")
        self._check((*path, "gpus"), gpus, lambda n: n == int(n), "must be a whole number.")
        if len(self.faults) > before:
            return None
        numbers["gpus"] = int(numbers.get("gpus", 0))
        return Hardware(nodes=tuple(cast(list[str], nodes)), **numbers)

    def _check(
        self, path: FieldPath, number: Decimal | None, is_right: Callable[[Decimal], bool], sentence: str
    ) -> None:
        if number is not None and not is_right(number):
            self._fault(path, sentence)

    def _numbers(self, value: object, path: FieldPath) -> dict[str, Decimal]:
        if not isinstance(value, dict):
            self._fault(path, f"must be a table of names and prices, such as {DEFAULT} = 0.50.")
            return {}
        rows = cast(dict[str, object], value)
        return {name: self._number(item, (*path, name)) for name, item in rows.items()}

    def _number(self, value: object, path: FieldPath) -> Decimal:
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            number = Decimal(value)
            if number.is_finite() and 0 <= number <= MOST and number == round(number, MOST_DECIMALS):
                return number
        self._fault(
            path,
            f"must be a number from 0 to {MOST}, with at most {MOST_DECIMALS} decimals, not {value!s:.40}.",
        )
        return Decimal(1)

    def _table(self, value: object, path: FieldPath, names: tuple[str, ...]) -> Mapping[str, object]:
        if not isinstance(value, dict):
            self._fault(path, "must be a table.")
            return {}
        row = cast(dict[str, object], value)
        self._known(row, path, names)
        return row

    def _known(self, row: Mapping[str, object], path: FieldPath, names: tuple[str, ...]) -> None:
        for name in row:
            if name not in names:
                self._fault((*path, name), f"is not known here; there are {', '.join(names)}.")

    def _fault(self, path: FieldPath, sentence: str) -> None:
        self.faults.append((path, sentence))

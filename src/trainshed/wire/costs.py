"""Costs as JSON: hours and money as decimal text, so that nothing is rounded again. The names are ours."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from trainshed.core.budget import Spending
from trainshed.core.costs import CostAmount, CostRow, GroupBy
from trainshed.core.errors import Invalid, Violation
from trainshed.core.prices import Prices
from trainshed.wire.scalars import read_time

_LABEL = "label:"


def render_row(row: CostRow, prices: Prices | None, names: Mapping[str, str]) -> dict[str, Any]:
    answer: dict[str, Any] = {"group": row.group.name}
    if row.group.project:
        answer["project"] = row.group.project
    if name := names.get(row.group.name):
        answer["displayName"] = name
    return answer | render_total(row, prices)


def render_total(row: CostRow, prices: Prices | None) -> dict[str, Any]:
    """The classes are those that took most first."""
    return {
        **_amount(row.amount, prices),
        "goodput": round(row.goodput, 6),
        "classes": [
            {"class": kind.value, "share": round(share, 6), **_amount(row.classes[kind], prices)}
            for kind, share in row.shares.items()
        ],
    }


def render_spending(spending: Spending) -> dict[str, Any]:
    return {
        **({"share": spending.share} if spending.share else {"project": spending.project}),
        "month": f"{spending.month:%Y-%m}",
        "budget": _text(spending.budget),
        "spent": _text(spending.spent),
        "percent": spending.percent,
        "level": spending.level,
        "message": spending.message,
    }


def _amount(amount: CostAmount, prices: Prices | None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "cpuHours": _text(amount.cpu),
        "memoryGibHours": _text(amount.gib),
        "gpuHours": _text(amount.gpu),
    }
    return answer if prices is None else answer | {"cost": _text(amount.cost)}


def _text(number: Decimal) -> str:
    return f"{number:.6f}"


def parse_group_by(text: str) -> tuple[GroupBy, str]:
    """The group and the key of a label: job, label:KEY and so on."""
    if text.startswith(_LABEL) and len(text) > len(_LABEL):
        return GroupBy.LABEL, text.removeprefix(_LABEL)
    plain = [by.value for by in GroupBy if by is not GroupBy.LABEL]
    if text not in plain:
        known = ", ".join((*plain, f"{_LABEL}KEY"))
        raise Invalid((Violation("groupBy", f"groupBy must be one of {known}, not '{text[:60]}'."),))
    return GroupBy(text), ""


def parse_days(first: str, after: str, default: tuple[date, date]) -> tuple[date, date]:
    """The days from `from` up to `to`, which is not among them; both are those of UTC."""
    faults: list[Violation] = []
    days: list[date] = []
    for name, text, otherwise in (("from", first, default[0]), ("to", after, default[1])):
        try:
            days.append(_day(text) if text else otherwise)
        except ValueError:
            sentence = f"{name} must be a day such as 2026-01-31, not '{text[:60]}'."
            faults.append(Violation(name, sentence))
    if not faults and days[0] >= days[1]:
        faults.append(Violation("to", f"to must be a day after from: {days[1]} is not after {days[0]}."))
    if faults:
        raise Invalid(tuple(faults))
    return days[0], days[1]


def _day(text: str) -> date:
    if len(text) != len("2026-01-31"):
        raise ValueError(text)
    return read_time(text).date()

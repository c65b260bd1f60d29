"""Costs: uses of resources, priced and added up by job, label, node, day or another group. Pure.

`service/costs.py` calls it. Sums are exact: in which order and in which groups uses are added up makes no
difference. Only what is shown is rounded, and so that the parts that are shown add up to the total that is
shown (`shown`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from trainshed.core.day_use import NO_JOBS, DayUse, JobUses, UseField
from trainshed.core.ledger import TimeClass
from trainshed.core.prices import EXACT, Prices, Rate, rate

DECIMALS = 6  # of what is shown
_STEP = Decimal(3600)  # microseconds in the millionth part of an hour
_ROUNDED = Context(prec=200, rounding=ROUND_HALF_EVEN)
_ZERO, _WHOLE = Decimal(0), Decimal(1)


class GroupBy(StrEnum):
    JOB = "job"
    LABEL = "label"
    CLASS = "class"
    NODE = "node"
    DAY = "day"
    MONTH = "month"
    PROJECT = "project"
    USER = "user"


class CostGroup(NamedTuple):
    name: str = ""
    project: str = ""  # of a job


_FIELDS: Mapping[GroupBy, frozenset[UseField]] = {
    GroupBy.JOB: frozenset({UseField.JOB, UseField.PROJECT}),
    GroupBy.LABEL: frozenset({UseField.LABEL}),
    GroupBy.CLASS: frozenset(),
    GroupBy.NODE: frozenset({UseField.NODE}),
    GroupBy.DAY: frozenset({UseField.DAY}),
    GroupBy.MONTH: frozenset({UseField.DAY}),
    GroupBy.PROJECT: frozenset({UseField.PROJECT}),
    GroupBy.USER: frozenset({UseField.USER}),
}
_GROUPS: Mapping[GroupBy, Callable[[DayUse], CostGroup]] = {
    GroupBy.JOB: lambda use: CostGroup(use.job, use.project),
    GroupBy.LABEL: lambda use: CostGroup(use.label),
    GroupBy.CLASS: lambda use: CostGroup(use.spent_on.value),
    GroupBy.NODE: lambda use: CostGroup(use.node),
    GroupBy.DAY: lambda use: CostGroup(str(use.day)),
    GroupBy.MONTH: lambda use: CostGroup(str(use.day)[:7]),
    GroupBy.PROJECT: lambda use: CostGroup(use.project),
    GroupBy.USER: lambda use: CostGroup(use.user),
}
_IN_ORDER_OF_TIME = (GroupBy.DAY, GroupBy.MONTH)


class CostAmount(NamedTuple):
    """Time with resources, and its price. Exact sums are in microseconds; what is shown is in hours."""

    cpu: Decimal = _ZERO
    gib: Decimal = _ZERO
    gpu: Decimal = _ZERO
    cost: Decimal = _ZERO

    def plus(self, other: "CostAmount") -> "CostAmount":
        return CostAmount(*map(EXACT.add, self, other))


ByClass: TypeAlias = Mapping[TimeClass, CostAmount]
RatedTimes: TypeAlias = dict[int, int]  # microseconds, by the number of the class and rate


@dataclass(slots=True)
class CostSums:
    """Exact sums: the time of each group, class and rate. Small, because there may be very many groups."""

    rates: list[tuple[TimeClass, Rate]] = field(default_factory=list[tuple[TimeClass, Rate]])
    groups: dict[CostGroup, RatedTimes] = field(default_factory=dict[CostGroup, RatedTimes])
    unpriced: set[str] = field(default_factory=set[str])  # what has no price, by its name in the file


def kept_apart(by: GroupBy, prices: Prices | None) -> frozenset[UseField]:
    """What uses must be asked for so that they can be priced and put into groups."""
    fields = _FIELDS[by]
    if prices is not None and prices.change:
        fields |= {UseField.DAY}
    if prices is not None and prices.depend_on_nodes:
        fields |= {UseField.NODE}
    return fields


def fold(uses: Iterable[DayUse], prices: Prices | None, by: GroupBy, of_jobs: JobUses = NO_JOBS) -> CostSums:
    """The sums of uses that have what `kept_apart` names. `of_jobs` has more of them, for groups by job."""
    sums, group = CostSums(), _GROUPS[by]
    numbers: dict[tuple[object, ...], int] = {}
    depends_on_day = prices is not None and prices.change

    def numbered(use: DayUse) -> int:
        day: date | None = use.day if depends_on_day else None
        resources = (use.machine_type, use.cpus, use.memory, use.gpus, use.accelerator, use.is_spot)
        what = (use.spent_on, day, use.node, *resources)
        number = numbers.get(what)
        if number is None:
            priced = rate(use, prices)
            number = numbers[what] = len(sums.rates)
            sums.rates.append((use.spent_on, priced))
            sums.unpriced.update(priced.unpriced)
        return number

    kinds = {at: (numbered(kind), kind.project) for at, kind in of_jobs.kinds.items()}
    _add_jobs(sums.groups, kinds, of_jobs.rows)
    for use in uses:
        number, times = numbered(use), sums.groups.setdefault(group(use), {})
        times[number] = times.get(number, 0) + use.micros
    return sums


def _add_jobs(
    groups: dict[CostGroup, RatedTimes],
    kinds: Mapping[int, tuple[int, str]],
    rows: Iterable[tuple[int, str, int]],
) -> None:
    """Add rows by the hundred thousand. Those of a job follow each other, most of the time.

    `kinds` has the number of class and rate, and the project. Rows of a kind that it lacks are left out.
    """
    last_job = last_project = ""
    times: RatedTimes = {}
    for kind, job, micros in rows:
        if kind not in kinds:
            continue
        number, project = kinds[kind]
        if job != last_job or project != last_project:
            last_job, last_project = job, project
            times = groups.setdefault(CostGroup(job, project), {})
        times[number] = times.get(number, 0) + micros


def by_class(sums: CostSums, group: CostGroup) -> dict[TimeClass, CostAmount]:
    """The exact amounts of a group, in the order of the classes."""
    amounts: dict[TimeClass, CostAmount] = defaultdict(CostAmount)
    for number, micros in sums.groups[group].items():
        kind, rated = sums.rates[number]
        parts = (rated.cpus, rated.gib, rated.gpus, rated.hour)
        amounts[kind] = amounts[kind].plus(
            CostAmount(*(EXACT.multiply(Decimal(micros), part) for part in parts))
        )
    return {kind: amounts[kind] for kind in TimeClass if kind in amounts}


def total(amounts: Iterable[CostAmount]) -> CostAmount:
    result = CostAmount()
    for amount in amounts:
        result = result.plus(amount)
    return result


def shares(classes: ByClass) -> dict[TimeClass, float]:
    """The part that each class has of the time, the largest first: of GPUs, if there are any, else CPUs."""
    at = 2 if any(amount.gpu for amount in classes.values()) else 0
    everything = total(classes.values())[at]
    parts = {kind: float(amount[at] / everything) if everything else 0.0 for kind, amount in classes.items()}
    return dict(sorted(parts.items(), key=lambda part: (-part[1], part[0])))


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """A group as it is shown: hours and money, rounded. The classes add up to the amount."""

    group: CostGroup
    classes: ByClass
    shares: Mapping[TimeClass, float]  # the largest first

    @property
    def amount(self) -> CostAmount:
        return total(self.classes.values())

    @property
    def goodput(self) -> float:
        """The part of the time with resources in which programs computed."""
        return self.shares.get(TimeClass.COMPUTED, 0.0)


def ordered(sums: CostSums, by: GroupBy) -> list[CostGroup]:
    """The groups: in order of time, or the largest first."""
    if by in _IN_ORDER_OF_TIME:
        return sorted(sums.groups)

    # Near enough for an order, and much quicker than exact sums where there are very many groups.
    sizes = [(float(rated.hour), float(rated.gpus), float(rated.cpus)) for _, rated in sums.rates]

    def size(group: CostGroup) -> tuple[float, float, float, CostGroup]:
        hours = gpus = cpus = 0.0
        for number, micros in sums.groups[group].items():
            hour, gpu, cpu = sizes[number]
            hours, gpus, cpus = hours - micros * hour, gpus - micros * gpu, cpus - micros * cpu
        return hours, gpus, cpus, group

    return sorted(sums.groups, key=size)


def shown(sums: CostSums, groups: Sequence[CostGroup], first: int = 0) -> Iterator[CostRow]:
    """The groups in this order. What is rounded off one part goes to the next, so the sum is right."""
    skipped = _joined(sums, groups[:first])
    exact = total(by_class(skipped, CostGroup()).values())
    before = rounded(exact)
    for group in groups[first:]:
        classes, parts = by_class(sums, group), dict[TimeClass, CostAmount]()
        for kind, amount in classes.items():
            exact = exact.plus(amount)
            after = rounded(exact)
            parts[kind] = CostAmount(*(new - old for new, old in zip(after, before, strict=True)))
            before = after
        yield CostRow(group=group, classes=parts, shares=shares(classes))


def together(sums: CostSums) -> CostRow:
    """All groups as one."""
    (row,) = shown(_joined(sums, sums.groups), (CostGroup(),))
    return row


def _joined(sums: CostSums, groups: Iterable[CostGroup]) -> CostSums:
    """These groups as one without a name."""
    times: RatedTimes = {}
    for group in groups:
        for number, micros in sums.groups[group].items():
            times[number] = times.get(number, 0) + micros
    return CostSums(sums.rates, {CostGroup(): times})


def rounded(amount: CostAmount) -> CostAmount:
    """An exact sum in hours and money."""
    return CostAmount(
        *(
            _ROUNDED.divide(part, _STEP).quantize(_WHOLE, context=_ROUNDED).scaleb(-DECIMALS)
            for part in amount
        )
    )

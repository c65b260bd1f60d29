"""Budgets: looks now and then at what projects have spent this month, and remembers it for the scheduler.

A chore: the queue of chores calls `look`. What the scheduler asks is in memory, so a cycle costs the same
whatever was spent, and sums are those that the store keeps by day. Each level that a project reaches is
logged and told once in a month. It ends no job.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from trainshed.core.budget import Spending
from trainshed.core.event import Waiting
from trainshed.core.notice import Notice, budget_notice
from trainshed.core.ports import Clock
from trainshed.core.prices import DEFAULT, Prices

log = logging.getLogger("trainshed")

EVERY = timedelta(seconds=10)


@dataclass(slots=True)
class Budgets:
    clock: Clock
    prices: Callable[[], Prices | None]
    spent: Callable[[date, date], Awaitable[Mapping[str, Decimal]]]  # by project, from a day up to another
    hint_scheduler: Callable[[], None]
    tell: Callable[[Notice], Awaitable[object]]  # those who want to be told
    _spendings: dict[str, Spending] = field(default_factory=dict[str, Spending])
    _waiting: dict[str, Waiting] = field(default_factory=dict[str, Waiting])
    _warned: dict[tuple[str, date], int] = field(default_factory=dict[tuple[str, date], int])

    def waiting(self, project: str) -> Waiting | None:
        """Why new jobs of the project may not start now; None where they may."""
        return self._waiting.get(project)

    def spendings(self, project: str) -> Iterable[Spending]:
        """Those of a project that has a budget; "-": of all that have spent something."""
        return [item for name, item in sorted(self._spendings.items()) if project in ("-", name)]

    async def look(self, _key: str = "") -> datetime | None:
        now, prices = self.clock.now(), self.prices()
        if prices is None:  # there will never be any
            return None
        self._spendings = await self._read(prices, now) if prices.budgets else {}
        reasons = {name: item.waiting for name, item in self._spendings.items()}
        before, self._waiting = self._waiting, {name: why for name, why in reasons.items() if why}
        for spending in self._spendings.values():
            await self._warn(spending, now)
        if before.keys() - self._waiting.keys():
            self.hint_scheduler()
        return now + EVERY

    async def _read(self, prices: Prices, now: datetime) -> dict[str, Spending]:
        month = now.astimezone(UTC).date().replace(day=1)
        ends = (month + timedelta(days=31)).replace(day=1)
        spent = await self.spent(month, ends)
        spendings: dict[str, Spending] = {}
        for project in {*spent, *prices.budgets} - {DEFAULT}:
            if (budget := prices.budget(project)) is not None:
                spendings[project] = Spending(
                    project=project,
                    month=month,
                    ends=ends,
                    budget=budget,
                    spent=spent.get(project, Decimal(0)),
                    currency=prices.currency,
                )
        return spendings

    async def _warn(self, spending: Spending, now: datetime) -> None:
        """Once for each level, and once more after a start of the server: a warning must not get lost."""
        key = spending.project, spending.month
        if spending.level > self._warned.get(key, 0):
            sentence = f"{spending.message}{' Its new jobs wait.' if spending.is_over else ''}"
            log.warning("%s", sentence)
            identity = f"{spending.project}-{spending.month:%Y-%m}-{spending.level}"
            await self.tell(budget_notice(identity, spending.project, sentence, now))
        self._warned[key] = spending.level

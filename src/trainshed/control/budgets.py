"""Budgets: looks now and then at what projects and shares have spent this month, for the scheduler.

A chore: the queue of chores calls `look`. What the scheduler asks is in memory, so a cycle costs the same
whatever was spent, and sums are those that the store keeps by day. Each level that one of them reaches is
logged and told once in a month. It ends no job.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from trainshed.core.budget import Spending
from trainshed.core.event import Waiting
from trainshed.core.notice import Notice, budget_notice
from trainshed.core.ports import Clock
from trainshed.core.prices import DEFAULT, Prices
from trainshed.core.queue.share import UNDIVIDED, ShareTree

log = logging.getLogger("trainshed")

EVERY = timedelta(seconds=10)


@dataclass(slots=True)
class Budgets:
    clock: Clock
    prices: Callable[[], Prices | None]
    spent: Callable[[date, date], Awaitable[Mapping[str, Decimal]]]  # by project, from a day up to another
    hint_scheduler: Callable[[], None]
    tell: Callable[[Notice], Awaitable[object]]  # those who want to be told
    shares: Callable[[], ShareTree | None] = lambda: None
    _of_projects: dict[str, Spending] = field(default_factory=dict[str, Spending])
    _of_shares: dict[str, Spending] = field(default_factory=dict[str, Spending])
    _warned: dict[tuple[str, date], int] = field(default_factory=dict[tuple[str, date], int])

    def waiting(self, project: str) -> Waiting | None:
        """Why new jobs of the project may not start now; None where they may."""
        if not self._of_projects and not self._of_shares:  # each cycle asks
            return None
        return next((why for item in self._about(project) if (why := item.waiting)), None)

    def spendings(self, project: str) -> Iterable[Spending]:
        """Those of a project, and of its shares; "-": of all that have a budget."""
        if project == "-":
            return [item for part in (self._of_projects, self._of_shares) for _, item in sorted(part.items())]
        return self._about(project)

    def _about(self, project: str) -> list[Spending]:
        tree = self.shares() if self._of_shares else None
        shares = tree.paths[tree.share_of(project)] if tree is not None else ()
        own = [self._of_projects[project]] if project in self._of_projects else []
        return own + [self._of_shares[name] for name in shares if name in self._of_shares]

    async def look(self, _key: str = "") -> datetime | None:
        now, prices = self.clock.now(), self.prices()
        if prices is None:  # there will never be any
            return None
        before = self._over()
        await self._read(prices, now)
        for spending in self.spendings("-"):
            await self._warn(spending, now)
        if before - self._over():
            self.hint_scheduler()
        return now + EVERY

    def _over(self) -> set[tuple[str, str]]:
        return {(item.project, item.share) for item in self.spendings("-") if item.is_over}

    async def _read(self, prices: Prices, now: datetime) -> None:
        tree = self.shares() or UNDIVIDED
        projects, shares = dict[str, Spending](), dict[str, Spending]()
        if prices.budgets or tree.budgets:
            month = now.astimezone(UTC).date().replace(day=1)
            ends = (month + timedelta(days=31)).replace(day=1)
            spent = await self.spent(month, ends)
            none = Decimal(0)
            blank = Spending(month=month, ends=ends, budget=none, spent=none, currency=prices.currency)
            for project in {*spent, *prices.budgets} - {DEFAULT}:
                if (budget := prices.budget(project)) is not None:
                    own = spent.get(project, none)
                    projects[project] = replace(blank, project=project, budget=budget, spent=own)
            for share, budget in tree.budgets.items():
                its = [amount for name, amount in spent.items() if share in tree.paths[tree.share_of(name)]]
                shares[share] = replace(blank, share=share, budget=budget, spent=sum(its, none))
        self._of_projects, self._of_shares = projects, shares

    async def _warn(self, spending: Spending, now: datetime) -> None:
        """Once for each level, and once more after a start of the server: a warning must not get lost."""
        whose = spending.project or f"share {spending.share}"
        key = whose, spending.month
        if spending.level > self._warned.get(key, 0):
            sentence = f"{spending.message}{' New jobs wait.' if spending.is_over else ''}"
            log.warning("%s", sentence)
            identity = f"{whose}-{spending.month:%Y-%m}-{spending.level}"
            await self.tell(budget_notice(identity, spending.project, sentence, now))
        self._warned[key] = spending.level

"""Budgets: what a project or a share may spend in a month, and why new jobs wait once it is spent. Pure.

`control/budgets.py` makes spendings; scheduler, `why` and costs ask about them. No running job is ended for a
budget.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from trainshed.core.event import Reason, Waiting

LEVELS = (50, 80, 100)  # percent, at which the server says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a project, or a share with all its projects, has spent of its budget in a month."""

    project: str = ""
    share: str = ""
    month: date  # its first day
    ends: date  # the first day after it
    budget: Decimal
    spent: Decimal
    currency: str

    @property
    def level(self) -> int:
        """The highest level that is reached; 0: none."""
        reached = (level for level in LEVELS if self.spent * 100 >= self.budget * level)
        return max(reached, default=0)

    @property
    def is_over(self) -> bool:
        return self.level == LEVELS[-1]

    @property
    def percent(self) -> int:
        """Rounded down: 100 means that it is spent."""
        return int(self.spent * 100 / self.budget) if self.budget else 100

    @property
    def message(self) -> str:
        amounts = f"{self.spent:.2f} of its {self.budget:.2f} {self.currency}"
        whose = f"Share '{self.share}'" if self.share else f"Project '{self.project}'"
        return f"{whose} has spent {amounts} for {self.month:%Y-%m} ({self.percent} %)."

    @property
    def waiting(self) -> Waiting | None:
        """Why a new job may not start; None while there is something left."""
        if not self.is_over:
            return None
        return Waiting(
            reason=Reason.BUDGET_SPENT,
            message=self.message,
            remedy=f"It starts on {self.ends} UTC, or once the budget is raised in the server's "
            f"{'shares' if self.share else 'file of prices'}; jobs that run go on.",
        )

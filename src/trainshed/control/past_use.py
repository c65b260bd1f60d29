"""PastUse: the shares as they are set, with what their projects had lately. The scheduler asks it.

A chore reads now and then what projects had. That is kept in memory, so a cycle costs the same whatever was
used. It writes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from trainshed.core.day_use import UseField, UseQuery
from trainshed.core.ports import Clock, Store
from trainshed.core.queue.past_use import COUNTED, averages
from trainshed.core.queue.share import Amounts, ShareTree

EVERY = timedelta(minutes=5)


@dataclass(slots=True)
class PastUse:
    store: Store
    clock: Clock
    shares: Callable[[], ShareTree | None]  # as they are set now; None: they are not
    accounts: Callable[[], Mapping[str, datetime]]  # when each was added; the same until that changes
    _by_project: Mapping[str, Amounts] = field(default_factory=dict[str, Amounts])
    _tree: ShareTree | None = None

    def tree(self) -> ShareTree | None:
        shares = self.shares()
        if shares is None:
            return None
        known, accounts = self._tree, self.accounts()
        if (
            known is None
            or known.shares is not shares.shares
            or known.past is not self._by_project
            or known.accounts is not accounts
        ):
            known = self._tree = replace(shares, past=self._by_project, accounts=accounts)
        return known

    async def look(self, _key: str = "") -> datetime:
        now = self.clock.now()
        if self.shares() is not None:
            since = (now - COUNTED).astimezone(UTC).date()
            query = UseQuery(since=since, apart=frozenset({UseField.DAY, UseField.PROJECT}))
            self._by_project = averages(await self.store.uses(query), now)
        return now + EVERY

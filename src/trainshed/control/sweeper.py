"""The sweeper: now and then removes folders of code that no job refers to any more.

It asks the store which are in use and tells the rest to go; those that keep them see to it that nothing young
goes. A store that cannot answer removes nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.code_port import CodeStore
from trainshed.core.ports import Clock, Store

EVERY = timedelta(hours=1)


@dataclass(slots=True)
class Sweeper:
    store: Store
    code: CodeStore
    clock: Clock

    async def look(self, _key: str = "") -> datetime:
        """Flown by a work queue, which gives it its back-off."""
        await self.code.tidy(await self.store.codes())
        return self.clock.now() + EVERY

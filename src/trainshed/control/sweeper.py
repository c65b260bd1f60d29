"""The sweeper: periodically removes folders of code that no job refers to any more.

It asks the job store which folders are in use, and the code store to remove the others. The code store never
removes a young folder. If the job store cannot answer, nothing is removed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainshed.core.ports import Clock, Store
from trainshed.core.supplies.code_port import CodeStore

EVERY = timedelta(hours=1)


@dataclass(slots=True)
class Sweeper:
    store: Store
    code: CodeStore
    clock: Clock

    async def look(self, _key: str = "") -> datetime:
        """The work queue calls this, and backs off after failures."""
        await self.code.tidy(await self.store.codes())
        return self.clock.now() + EVERY

"""What the watches of limits share: they end a run once, and look again soon where a limit is near.

MemoryWatch and ProcessWatch inherit it. It needs a running event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Generic, TypeVar

from trainshed.backends.machine.run import KnownRun
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.names import RunKey

_SOON = 0.25  # seconds to the next look at what is near its limit
NEAR = 0.8  # of a limit
AHEAD = 4  # steps of growth, as the last one was, in which a limit may be reached

AnyRun = TypeVar("AnyRun", bound=KnownRun)


class LimitWatch(Generic[AnyRun]):
    def __init__(
        self, look: Callable[[], Awaitable[object]], end: Callable[[AnyRun], Coroutine[Any, Any, None]]
    ) -> None:
        self._look, self._end = look, end
        self._background = BackgroundTasks()
        self._before: Mapping[RunKey, int] = {}  # what each run had at the last look
        self._ending: set[RunKey] = set()
        self._looks_again = False

    async def close(self) -> None:
        await self._background.close()

    def end_once(self, run: AnyRun) -> None:
        # Noted by an earlier server, it may not have been killed before that server was.
        if run.key not in self._ending and not run.gone.is_set():
            self._ending.add(run.key)
            self._background.run(self._end(run))

    def look_soon(self) -> None:
        if not self._looks_again:
            self._looks_again = True
            self._background.run(self._look_once_more())

    async def _look_once_more(self) -> None:
        await asyncio.sleep(_SOON)
        self._looks_again = False
        await self._look()

"""WaitingWatch: a watch of a kind of objects that is open only while a pod of ours waits.

`pod_events.py` and `cluster_queues.py` have one each. Pods that start at once cost nothing: the watch is
opened when one has waited for a moment, and closed soon after the last one began. It never polls. Without the
right to it, reasons come from the pods alone.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

_PROMPT = 1.0  # seconds in which most pods start
_LINGERS = 5.0  # seconds for which the watch stays open without a pod that waits
_FORBIDDEN = (401, 403)


class WaitingWatch:
    def __init__(self, what: str, open_cache: Callable[[], Awaitable[ObjectCache]]) -> None:
        """`open_cache` makes what is watched, not started; `what` is its name for people."""
        self._what, self._open_cache = what, open_cache
        self.waiting: set[str] = set()  # names of pods
        self._background = BackgroundTasks()
        self._news = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._is_forbidden = False

    async def close(self) -> None:
        await self._background.close()

    def see(self, pod: str, *, waits: bool) -> None:
        """Whether this pod waits."""
        if waits == (pod in self.waiting):
            return
        if waits:
            self.waiting.add(pod)
            if (self._watching is None or self._watching.done()) and not self._is_forbidden:
                self._watching = self._background.run(self._watch())
        else:
            self.waiting.discard(pod)
        self._news.set()

    async def _watch(self) -> None:
        await asyncio.sleep(_PROMPT)
        while self.waiting:
            cache: ObjectCache | None = None
            try:
                cache = await self._open_cache()
                await cache.start()
                while self.waiting:
                    await self._pass(None)
                    if not self.waiting:
                        await self._pass(_LINGERS)
            except ApiFault as fault:
                if fault.status in _FORBIDDEN:
                    text = "%s cannot be read, so some reasons are not known: %s"
                    log.warning(text, self._what, fault.message)
                    self._is_forbidden = True
                    return
                await self._pass(_LINGERS)
            finally:
                if cache is not None:
                    await cache.close()

    async def _pass(self, seconds: float | None) -> None:
        """Until something changes, or the time is over."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)

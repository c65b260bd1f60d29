"""Lines by number, and searches, for the log store: has lines counted before they are asked for by number.

Few bytes are counted at once. Many are counted by a task in the background, piece by piece, and meanwhile
lines can be had without numbers. All reading is done in threads of the store. It never dates or drops.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from trainshed.core.errors import Unavailable
from trainshed.core.log_lines import FindQuery, FindStep, LineChoice, LinePage, LineQuery, LineTotal
from trainshed.logs.file import ReadableRange
from trainshed.logs.job import JobLog
from trainshed.logs.line_counts import SPAN, LineCounts
from trainshed.logs.line_order import DropChanged
from trainshed.logs.line_page import numbered_page, unnumbered_page
from trainshed.logs.merge import is_asked
from trainshed.logs.search import LineSearch

AT_ONCE = 16 * 1024 * 1024  # bytes that are counted while somebody waits
_BATCH = 1024 * 1024  # characters given out at once, about
_PATIENCE = 60.0  # seconds a question by number waits for the count

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Lines:
    """The files of a job that are asked for, and their counts."""

    views: list[ReadableRange]
    counts: list[LineCounts]

    @property
    def missing(self) -> int:
        """Bytes that are not counted yet."""
        pairs = zip(self.views, self.counts, strict=True)
        return sum(max(0, view.end // SPAN * SPAN - count.counted) for view, count in pairs)

    @property
    def total(self) -> LineTotal:
        size = sum(view.end for view in self.views)
        return LineTotal(sum(count.lines for count in self.counts), size, size - self.missing)

    def count_some(self) -> None:
        """Count a part of what is missing."""
        for view, count in zip(self.views, self.counts, strict=True):
            if not count.is_complete(view.end):
                count.extend(view.end)
                count.save(is_last=False)
                return

    def count_all(self) -> None:
        while self.missing:
            self.count_some()

    def save(self) -> None:
        for count in self.counts:
            count.save(is_last=True)


class LineNumbers:
    """For the event loop's thread. `close` before the threads end."""

    def __init__(self, readers: ThreadPoolExecutor) -> None:
        self._readers = readers
        self._counting: dict[str, tuple[JobLog, asyncio.Task[None]]] = {}

    async def close(self) -> None:
        tasks = [task for _, task in self._counting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def log(self, job: str) -> JobLog | None:
        """The log of a job that is being counted: so that a finished one is not counted twice."""
        entry = self._counting.get(job)
        return entry[0] if entry else None

    async def page(self, log: JobLog, query: LineQuery) -> LinePage:
        lines = await self._asked(log, query.choice)
        by_number = query.is_numbered or (query.line > 0 and query.since_ns is None)
        if not await self._count(log, lines, wait=by_number):
            return await self._in_thread(lambda: unnumbered_page(lines.views, query, lines.total, _BATCH))
        return await self._in_thread(lambda: numbered_page(lines.views, lines.counts, query, _BATCH))

    async def find(self, log: JobLog, query: FindQuery) -> AsyncGenerator[FindStep]:
        lines = await self._asked(log, query.choice)
        await self._count(log, lines, wait=True)
        search = await self._in_thread(lambda: LineSearch(lines.views, lines.counts, query))
        while (step := await self._in_thread(search.step)) is not None:
            yield step

    def count_ahead(self, log: JobLog) -> None:
        """Count a log that grows fast before anybody asks, so that nobody has to wait."""
        if log.job not in self._counting:
            self._begin(log)

    async def _asked(self, log: JobLog, choice: LineChoice) -> _Lines:
        def load() -> _Lines:
            views = [
                view for view in log.views() if view.end and is_asked(view, choice) and view.file.is_intact()
            ]
            return _Lines(views, log.counts(views))

        return await self._in_thread(load)

    async def _count(self, log: JobLog, lines: _Lines, *, wait: bool) -> bool:
        """Have these lines counted; False where that takes longer and nobody waits for it."""
        if not lines.missing:
            return True
        if lines.missing <= AT_ONCE and log.job not in self._counting:
            await self._in_thread(lines.count_all)
            return True
        task = self._begin(log)
        if wait:
            await asyncio.wait({task}, timeout=_PATIENCE)
            await asyncio.sleep(0)
            if lines.missing > AT_ONCE:
                done, size = lines.total.counted, lines.total.size
                raise Unavailable(
                    f"The lines of this log are still being counted ({done} of {size} bytes): try again soon."
                )
            await self._in_thread(lines.count_all)
            return True
        return False

    def _begin(self, log: JobLog) -> asyncio.Task[None]:
        if log.job not in self._counting:
            task = asyncio.get_running_loop().create_task(self._count_in_background(log))
            self._counting[log.job] = log, task
            task.add_done_callback(lambda _: self._counting.pop(log.job, None))
        return self._counting[log.job][1]

    async def _count_in_background(self, log: JobLog) -> None:
        with contextlib.suppress(Unavailable):
            lines = await self._asked(log, LineChoice())
            while lines.missing:
                await self._in_thread(lines.count_some)
            await self._in_thread(lines.save)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, work)
        except (OSError, DropChanged) as error:
            why = error.strerror if isinstance(error, OSError) else "it is being cut"
            raise Unavailable(f"The output of the job cannot be read: {why}.") from error

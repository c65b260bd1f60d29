"""Threads that own connections: the event loop never waits for a disk.

A caller leaves a piece of work in a queue and awaits a future. There is one writer: what is queued while
a commit runs shares the next transaction, each piece in a savepoint of its own, so one that fails does
not harm its neighbours; nobody is answered before the commit. Readers take one piece at a time. What came
of a piece is given back on the loop, in the order of the commits, so the loop may keep a copy of what was
committed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from trainshed.core.errors import Invalid, TrainshedError, Unavailable
from trainshed.store.database import Database, discard
from trainshed.store.prepared import commit

T = TypeVar("T")


class Work(Generic[T]):
    """A piece of work, and what came of it. Used as `with work:` around the doing: it keeps any error."""

    __slots__ = ("error", "flush", "future", "run", "then", "value")

    def __init__(
        self,
        run: Callable[[Connection], T],
        future: "asyncio.Future[T]",
        then: Callable[[T], None] | None,
        flush: bool,
    ) -> None:
        self.run = run
        self.flush = flush
        self.future = future
        self.then = then
        self.value: T | None = None
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        self.value = self.error = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        # A database that is out of order concerns the whole transaction, not this piece alone.
        if isinstance(error, DBAPIError) and not isinstance(error, IntegrityError | DataError):
            return False
        # The thread has nobody to tell but the one who asked.
        self.error = error
        if isinstance(error, DataError):
            self.error = Invalid((), f"The database does not take this value: {error.orig}")
            self.error.__cause__ = error
        return isinstance(error, Exception)

    def settle(self) -> None:
        """On the loop: take over what was committed, then answer. A caller who left changes nothing."""
        if self.error is None and self.then is not None:
            self.then(self.value)  # pyright: ignore[reportArgumentType]
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)  # pyright: ignore[reportArgumentType]


class Lane:
    """A queue and its threads. Subclasses say what a thread does with the work it finds."""

    def __init__(self, name: str, database: Database, loop: asyncio.AbstractEventLoop, threads: int) -> None:
        self._database = database
        self._loop = loop
        self._queue: SimpleQueue[Work[Any] | None] = SimpleQueue()
        self._open = True
        self._threads = [
            Thread(target=self._serve, name=f"store-{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def ask(
        self,
        run: Callable[[Connection], T],
        then: Callable[[T], None] | None = None,
        *,
        flush: bool = True,
    ) -> T:
        """Have `run` done by a thread; `then` is called on the loop once it is committed, even if we left."""
        if not self._open:
            raise Unavailable("The store is closed.")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Work(run, future, then, flush))
        return await future

    async def close(self) -> None:
        """Finish what is queued, then end the threads."""
        self._open = False
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _serve(self) -> None:
        raise NotImplementedError

    def _report(self, settle: Callable[[], None]) -> None:
        # The loop may be gone already when a program ends without closing the store; then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle)


class Readers(Lane):
    def _serve(self) -> None:
        connection: Connection | None = None
        while (work := self._queue.get()) is not None:
            for last in (False, True):
                try:
                    connection = connection or self._database.connect(writing=False)
                    with work:
                        work.value = work.run(connection)
                    commit(connection)
                    break
                except TrainshedError as error:
                    work.error = error
                    break
                except DBAPIError as error:
                    lost = error.connection_invalidated
                    if connection is not None:
                        discard(connection)
                    connection = None
                    work.error = self._database.explain(error)
                    if last or not lost:
                        break
            self._report(work.settle)
        if connection is not None:
            connection.close()

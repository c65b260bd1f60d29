"""Threads that own connections, so that the event loop never waits for a disk.

SqlStore queues a piece of work and awaits a future. There is one writer. Work that is queued during a commit
shares the next transaction, each piece in its own savepoint, so a failed piece does not affect the others.
Nobody is answered before the commit. Readers take one piece at a time. Results come back on the loop in the
order of the commits, so the loop may keep a copy of what was committed.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, TypeVar

from trainshed.core.errors import Invalid, TrainshedError, Unavailable
from trainshed.store.connection import SqlConnection, SqlDataError, SqlError, SqlIntegrityError
from trainshed.store.database import Database

T = TypeVar("T")


class Work(Generic[T]):
    """A piece of work and its result. `with work:` around the execution keeps any error."""

    __slots__ = ("error", "flush", "future", "run", "then", "value")

    def __init__(
        self,
        run: Callable[[SqlConnection], T],
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
        # A failing database concerns the whole transaction, not this piece alone.
        if isinstance(error, SqlError) and not isinstance(error, SqlIntegrityError | SqlDataError):
            return False
        # The thread can report an error only to its caller.
        self.error = error
        if isinstance(error, SqlDataError):
            self.error = Invalid((), f"The database does not take this value: {error.reason}")
            self.error.__cause__ = error
        return isinstance(error, Exception)

    def settle(self) -> None:
        """On the loop: call `then` with the committed result, even without a caller, then answer."""
        if self.error is None and self.then is not None:
            self.then(self.value)  # pyright: ignore[reportArgumentType]
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)  # pyright: ignore[reportArgumentType]


class Lane:
    """A queue and its threads. Subclasses say what a thread does with the work it finds.

    `doubted` is called on the loop after a connection was lost: the database may have crashed, and may have
    lost commits, so copies in memory may be wrong.
    """

    def __init__(
        self,
        name: str,
        database: Database,
        loop: asyncio.AbstractEventLoop,
        doubted: Callable[[], None],
        threads: int,
    ) -> None:
        self._database = database
        self._loop = loop
        self._doubted = doubted
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
        run: Callable[[SqlConnection], T],
        then: Callable[[T], None] | None = None,
        *,
        flush: bool = True,
    ) -> T:
        """Run `run` in a thread. After the commit `then` is called on the loop, even without a caller."""
        if not self._open:
            raise Unavailable("The store is closed.")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(Work(run, future, then, flush))
        return await future

    async def close(self) -> None:
        """Finish the queued work, then end the threads."""
        self._open = False
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _serve(self) -> None:
        raise NotImplementedError

    def _report(self, settle: Callable[[], None]) -> None:
        # The loop may be closed if a program ends without closing the store; then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle)


class Readers(Lane):
    def _serve(self) -> None:
        connection: SqlConnection | None = None
        while (work := self._queue.get()) is not None:
            for last in (False, True):
                try:
                    connection = connection or self._database.connect(writing=False)
                    with work:
                        work.value = work.run(connection)
                    connection.commit()
                    break
                except TrainshedError as error:
                    work.error = error
                    break
                except SqlError as error:
                    lost = error.is_lost
                    if connection is not None:
                        connection.close()
                    connection = None
                    work.error = self._database.explain(error)
                    if lost:
                        self._report(self._doubted)
                    if last or not lost:
                        break
            self._report(work.settle)
        if connection is not None:
            connection.close()

"""Writer: the only thread that writes. It executes queued work in one transaction and then answers.

Nothing is answered before its commit has returned. A commit that failed may still have happened (the
connection or the disk failed before the answer). Then `doubted` is called on the loop, as after a lost
connection, because copies in memory may be wrong.
"""

import asyncio
from collections.abc import Callable
from queue import Empty
from typing import Any

from trainshed.core.errors import TrainshedError
from trainshed.store.connection import SqlConnection, SqlError
from trainshed.store.database import Database
from trainshed.store.lanes import Lane, Work

MOST = 64  # pieces in one transaction: enough to hide the cost of a sync, few enough to keep the wait short


class Writer(Lane):
    def __init__(
        self, database: Database, loop: asyncio.AbstractEventLoop, doubted: Callable[[], None]
    ) -> None:
        self._connection: SqlConnection | None = None
        self._committing = False
        super().__init__("writer", database, loop, doubted, threads=1)

    def _serve(self) -> None:
        closing = False
        while not closing:
            first = self._queue.get()
            batch: list[Work[Any]] = []
            if first is None:
                break
            batch.append(first)
            while len(batch) < MOST:
                try:
                    more = self._queue.get_nowait()
                except Empty:
                    break
                if more is None:
                    closing = True
                    break
                batch.append(more)
            self._commit(batch)
        if self._connection is not None:
            self._connection.close()

    def _commit(self, batch: list[Work[Any]]) -> None:
        doubt = False  # whether memory may be wrong
        for last in (False, True):
            try:
                self._transact(batch)
                break
            except TrainshedError as error:
                self._fail(batch, error)
                break
            except SqlError as error:
                doubt = doubt or self._committing or error.is_lost
                self._drop()
                # A connection that was lost while idle is replaced: no work is lost.
                if error.is_lost and not self._committing and not last:
                    continue
                self._fail(batch, self._database.explain(error))
                break
        self._report(lambda: self._settle(batch, doubt))

    def _transact(self, batch: list[Work[Any]]) -> None:
        self._committing = False
        if self._connection is None:
            self._connection = self._database.connect(writing=True)
        connection = self._connection
        self._database.begin(connection, flush=any(work.flush for work in batch))
        if len(batch) == 1:
            with batch[0]:
                batch[0].value = batch[0].run(connection)
            if batch[0].error is not None:
                connection.rollback()
                return
        else:
            for work in batch:
                connection.execute("SAVEPOINT piece")
                with work:
                    work.value = work.run(connection)
                if work.error is not None:
                    connection.execute("ROLLBACK TO SAVEPOINT piece")
                connection.execute("RELEASE SAVEPOINT piece")
        self._committing = True
        connection.commit()
        self._committing = False

    def _settle(self, batch: list[Work[Any]], doubt: bool) -> None:
        if doubt:
            self._doubted()
        for work in batch:
            work.settle()

    def _fail(self, batch: list[Work[Any]], error: BaseException) -> None:
        for work in batch:
            work.error = error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

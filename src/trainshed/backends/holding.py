"""Sees that the place of a run is held: that its program has ended badly and left it for a look.

Nothing ends then that a descriptor could tell of, so the record of such a run is looked at now and then.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from trainshed.core.replica import Exit, Sight

_EVERY = 0.2  # seconds


class HeldRecord(Protocol):
    @property
    def held(self) -> Exit | None: ...

    @property
    def exit(self) -> Exit | None: ...

    @property
    def ended_at(self) -> datetime | None: ...


class HeldRun(Protocol):
    gone: asyncio.Event

    @property
    def started_at(self) -> datetime | None: ...

    def read(self) -> HeldRecord | None: ...

    def show(
        self,
        sight: Sight,
        started_at: datetime | None,
        *,
        exit: Exit | None = None,
        ended_at: datetime | None = None,
        out_of_memory: str = "",
    ) -> None: ...


async def await_hold(run: HeldRun, out_of_memory: Callable[[], str], hint: Callable[[], None]) -> None:
    """Show the run as held once it is."""
    while not run.gone.is_set():
        record = run.read()
        if record is not None and record.held is not None and record.exit is None:
            run.show(
                Sight.HELD,
                run.started_at,
                exit=record.held,
                ended_at=record.ended_at,
                out_of_memory=out_of_memory(),
            )
            hint()
            return
        try:
            await asyncio.wait_for(run.gone.wait(), _EVERY)
        except TimeoutError:
            continue

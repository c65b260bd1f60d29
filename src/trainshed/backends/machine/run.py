"""One run as a server remembers it, in whatever way it runs: how it is shown, and that its place is held.

It may assume that its backend changes it from one event loop. It never begins, signals or ends anything, and
waits for nothing but its end.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from signal import SIGKILL
from typing import ClassVar

from trainshed.core.names import RunKey
from trainshed.core.replica import Exit, Handle, Observation, Sight

OUT_OF_MEMORY = "the kernel killed a process of this replica for want of memory"
_SHELL = 128  # and the signal: how a shell tells that its last program was killed
_EVERY = 0.2  # seconds between looks at the record of one that may come to be held


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRecord:
    """What was written about a run by who holds its program."""

    boot: str = ""
    started_at: datetime | None = None
    held: Exit | None = None  # how the program ended; its place was to be kept, and may still be there
    exit: Exit | None = None  # ... and all of the run is gone
    ended_at: datetime | None = None


@dataclass(slots=True, eq=False)
class KnownRun(ABC):
    has_limits: ClassVar[bool] = False  # of its own: nobody else's doing brings it over them
    key: RunKey
    folder: str  # its directory; as text, because it is used at every step of every run
    _: KW_ONLY
    sight: Sight | None = None  # None: prepared, and nobody has begun it
    asked: bool = False  # SIGTERM has been sent
    holds: bool = False  # its place is kept should its program end badly
    note: str = ""  # how it was started
    no_gcs: str = ""  # why it has no /gcs, where it has none
    full: str = ""  # that it filled its disk, where that is looked at
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    observation: Observation | None = None

    @property
    @abstractmethod
    def handle(self) -> Handle: ...

    @abstractmethod
    def read(self) -> KnownRecord | None:
        """What was written about it; None where it is not so far."""

    @property
    def alive(self) -> bool:
        return self.observation is not None and self.observation.alive

    @property
    def started_at(self) -> datetime | None:
        return self.observation.started_at if self.observation else None

    def show(
        self,
        sight: Sight,
        started_at: datetime | None,
        *,
        exit: Exit | None = None,
        ended_at: datetime | None = None,
        out_of_memory: str = "",
    ) -> None:
        self.sight = sight
        self.observation = Observation(
            key=self.key,
            sight=sight,
            exit=exit,
            started_at=started_at,
            ended_at=ended_at,
            handle=self.handle,
            out_of_memory=out_of_memory,
            note=self.note,
            disk_full=self.full,
            no_gcs=self.no_gcs,
            over_limit=bool(self.full) or (self.has_limits and bool(out_of_memory) and _was_killed(exit)),
        )
        if not self.observation.alive:
            self.gone.set()

    async def pause(self, seconds: float) -> None:
        """So long, or until it is gone."""
        try:
            await asyncio.wait_for(self.gone.wait(), seconds)
        except TimeoutError:
            return

    async def await_hold(self, out_of_memory: Callable[[], str], hint: Callable[[], None]) -> None:
        """Show it as held once its program has ended badly and left its place for a look.

        Nothing ends then that a descriptor could tell of, so the record is looked at now and then.
        """
        while not self.gone.is_set():
            record = self.read()
            if record is not None and record.held is not None and record.exit is None:
                self.show(
                    Sight.HELD,
                    self.started_at,
                    exit=record.held,
                    ended_at=record.ended_at,
                    out_of_memory=out_of_memory(),
                )
                hint()
                return
            await self.pause(_EVERY)


def _was_killed(end: Exit | None) -> bool:
    return end is not None and (end.signal == SIGKILL or end.code == _SHELL + SIGKILL)

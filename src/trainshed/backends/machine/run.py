"""One run as a server remembers it, in whatever backend: how it is shown, and that it is held for a look.

A backend changes it from one event loop. It removes the secret files of a run that has ended. It never
starts, signals or ends anything, and waits only for its end.
"""

import asyncio
import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from signal import SIGKILL
from typing import Any, cast

from trainshed.backends.machine.secret_files import remove_secret_files
from trainshed.core.jobs.limits import MemoryLimit
from trainshed.core.jobs.replica import Exit, Handle, Observation, Sight
from trainshed.core.names import RunKey
from trainshed.core.obstacle import Obstacle
from trainshed.disk.regular_file import read_regular, write_regular

OUT_OF_MEMORY = "the kernel killed a process of this replica for want of memory"
OVER_MEMORY = "over-memory"  # the file of a run that was ended for want of memory: that it was, in words
OVER_PROCESSES = "over-processes"  # ... for its processes
MOST_TEXT = 64 * 1024  # bytes of a sentence that a server left in the folder of a run
MOST_LAUNCH = 64 * 1024 * 1024  # bytes of launch.json: far above what a request may have
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
    unstarted: str = ""  # why its program never began, where it did not


@dataclass(slots=True, eq=False)
class KnownRun(ABC):
    key: RunKey
    folder: str  # its directory; as text, because it is used at every step of every run
    _: KW_ONLY
    sight: Sight | None = None  # None: prepared, and nobody has begun it
    asked: bool = False  # SIGTERM has been sent
    holds: bool = False  # its place is kept should its program end badly
    note: str = ""  # how it was started
    no_gcs: str = ""  # why it has no /gcs, where it has none
    full: str = ""  # that it filled its disk, where that is looked at
    unstarted: str = ""  # why its program never began, where it did not
    memory: MemoryLimit | None = None
    over_memory: str = ""  # that it was ended for want of memory, where that is looked at
    most_processes: int = 0  # processes and threads; 0: no limit
    over_processes: str = ""  # that it was ended for having more, where that is looked at
    has_limits: bool = False  # of its own, held by the kernel: nobody else's doing brings it over them
    node: str = ""  # where it is; empty: where it was placed
    interrupted: str = ""  # who else ended it and why, a sentence
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    observation: Observation | None = None

    @property
    @abstractmethod
    def handle(self) -> Handle: ...

    @abstractmethod
    def read(self) -> KnownRecord | None:
        """What was written about it; None where it is not so far."""

    @abstractmethod
    def refused_processes(self) -> str:
        """A sentence, where the kernel refused it a process or a thread."""

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
        obstacle: Obstacle | None = None,
    ) -> None:
        self.sight = sight
        failed = exit is not None and not exit.ok
        over_memory = self.over_memory if failed else ""
        over_processes = self.over_processes if failed else ""
        # Who is refused a process is not killed for it.
        refused = self.refused_processes() if failed and not _was_killed(exit) else ""
        self.observation = Observation(
            key=self.key,
            sight=sight,
            exit=exit,
            started_at=started_at,
            ended_at=ended_at,
            handle=self.handle,
            out_of_memory=over_memory or out_of_memory,
            note=self.note,
            disk_full=self.full,
            process_limit=over_processes or refused,
            no_gcs=self.no_gcs,
            unstarted=self.unstarted,
            obstacle=obstacle,
            interrupted=self.interrupted,
            node=self.node,
            over_limit=bool(self.full)
            or bool(over_memory)
            or bool(over_processes)
            or (self.has_limits and bool(out_of_memory) and _was_killed(exit)),
        )
        if not self.observation.alive:
            remove_secret_files(self.folder)
            self.gone.set()

    @property
    def killed_for_memory(self) -> str:
        """A sentence, where the kernel killed one of its processes at its limit."""
        return f"{OUT_OF_MEMORY}: {self.memory.words}" if self.memory is not None else OUT_OF_MEMORY

    def note_over_memory(self, text: str) -> None:
        """It is about to be ended for want of memory: a later server is to know why."""
        self.over_memory = text
        self.leave_note(OVER_MEMORY, text)

    def note_over_processes(self, text: str) -> None:
        """It is about to be ended for having too many processes: a later server is to know why."""
        self.over_processes = text
        self.leave_note(OVER_PROCESSES, text)

    def leave_note(self, name: str, text: str) -> None:
        with contextlib.suppress(OSError):  # on a full disk it is remembered as long as this server lives
            write_regular(f"{self.folder}/{name}", text.encode())

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


def not_run(number: str) -> str:
    """A record's word that a program cannot be run, as a sentence."""
    return f"its command cannot be run: {os.strerror(int(number))}"


def note_of(folder: Path, name: str) -> str:
    """The sentence that an earlier server left there; empty where it left none."""
    try:
        return read_regular(folder / name, MOST_TEXT).decode(errors="replace")
    except OSError:
        return ""


def as_plain(limit: MemoryLimit | None) -> dict[str, object] | None:
    return asdict(limit) if limit is not None else None


def as_limit(plain: object) -> MemoryLimit | None:
    """What as_plain made, read back; None where it is something else."""
    try:
        return MemoryLimit(**cast(dict[str, Any], plain))
    except TypeError:
        return None

"""Processes of this machine: identity, life, descent; and signals to exactly one of them.

Backends call it. It reads /proc. It never signals a pid without having just seen the same start time, and
never decides which processes belong together: the caller says from whom they descend.
"""

import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from trainshed.backends.machine.proc import slurp, stat_of

_FRESH = 15  # looks after which processes of others are asked again: a pid is given out anew in the end


@dataclass(frozen=True, slots=True)
class Identity:
    """A process: a pid is given out again, a pid with its start time (in ticks since boot) is not."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    start: int
    parent: int = field(compare=False)
    session: int = field(compare=False)
    dead: bool = field(compare=False)  # a zombie: it holds nothing any more


def look(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command stands in parentheses and may hold anything, so count from behind it.
    state, parent, _, session, *rest = text[text.rindex(b")") + 2 :].split()
    return Process(pid, int(rest[15]), int(parent), int(session), state in (b"Z", b"X", b"x"))


def alive(identity: Identity) -> bool:
    process = look(identity.pid)
    return process is not None and process.start == identity.start and not process.dead


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "-"


def send(process: Process | Identity, number: int) -> None:
    """Signal exactly this process, or nothing if it is gone and its pid given to another."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if not hasattr(os, "pidfd_open"):
            if (seen := look(process.pid)) is not None and seen.start == process.start:
                os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            # Looked at with the handle open: the pid cannot pass to another between the look and the signal.
            if (seen := look(process.pid)) is not None and seen.start == process.start:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


class ProcessFamilies:
    """Which process descends from which of some heads. A process keeps its head for life."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._heads: set[int] = set()
        self._owner: dict[int, int] = {}  # pid -> head, or 0 for others' processes
        self._looks = 0

    def look(self, heads: set[int]) -> dict[int, list[int]]:
        self._looks += 1
        if heads - self._heads or self._looks % _FRESH == 0:
            self._owner.clear()
        self._heads = heads
        pids = [int(name) for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208
        fresh = {pid: self._parent(pid) for pid in pids if pid not in self._owner}
        owner = {pid: self._owner[pid] for pid in pids if pid in self._owner}
        for pid in fresh:
            chain = [pid]
            while (
                (parent := fresh.get(chain[-1], 0)) not in heads and parent in fresh and parent not in owner
            ):
                if parent in chain:
                    break
                chain.append(parent)
            head = parent if parent in heads else owner.get(parent, 0)
            owner.update(dict.fromkeys(chain, head))
        self._owner = owner
        result: dict[int, list[int]] = {head: [] for head in heads}
        for pid, head in owner.items():
            if head in result and pid != head:
                result[head].append(pid)
        return result

    def _parent(self, pid: int) -> int:
        stat = stat_of(slurp(f"{self._proc}/{pid}/stat"))
        return stat.parent if stat else 0

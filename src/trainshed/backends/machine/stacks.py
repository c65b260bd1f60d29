"""Describes what processes do, one by one: Python's by their stacks, others by the kernel.

Backends call it in a thread. It takes one process after the other, within a time for all of them, because a
machine that hangs must not be made busier; `close` ends it early. It never stops, slows or changes a program.
"""

import functools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

from trainshed.backends.machine import spy
from trainshed.backends.machine.proc import slurp
from trainshed.core.jobs.stacks import MOST_PROCESSES, ProcessStack, StackDump, ThreadStack, clean_command

ALL = 20.0  # seconds for everything
ONE = 4.0  # ... and for one process
FAULTS = 3  # told of one run
NO_TIME = f"There was no time left for it after {ALL:g} s."

# The threads of a Python process, told within so many seconds, or none and why.
Look = Callable[[int, float], tuple[tuple[ThreadStack, ...], str]]

_STATES = {"R": "runs", "S": "sleeps", "D": "waits for a disk or device", "T": "is stopped", "t": "is traced"}


class Describer:
    def __init__(self) -> None:
        self._closed = Event()

    @functools.cached_property
    def spy(self) -> str | None:
        """py-spy, where it is installed and allowed. Found out when first needed."""
        return spy.find_spy() if spy.may_look() else None

    def close(self) -> None:
        self._closed.set()

    def is_over(self, deadline: float) -> bool:
        return time.monotonic() >= deadline or self._closed.is_set()

    def describe_all(self, pids: Sequence[int], look: Look, deadline: float) -> StackDump:
        """These processes in this order, with the threads of Python's as `look` tells them."""
        if self.is_over(deadline):
            return StackDump(fault=NO_TIME)
        stacks: list[ProcessStack] = []
        faults: list[str] = []
        for pid in pids[:MOST_PROCESSES]:
            seen = describe(pid)
            if seen is None:
                continue
            patience = min(ONE, deadline - time.monotonic())
            if is_python(pid) and patience > 0 and not self._closed.is_set():
                threads, fault = look(pid, patience)
                faults += [fault] if fault else []
                seen = replace(seen, threads=threads)
            stacks.append(seen)
        if len(pids) > MOST_PROCESSES:
            faults.append(f"{len(pids) - MOST_PROCESSES} more processes are not shown.")
        return StackDump(processes=tuple(stacks), fault=few(faults))


def few(faults: Sequence[str]) -> str:
    """The first faults, and how many more there are."""
    more = [f"And {len(faults) - FAULTS} more like that."] if len(faults) > FAULTS else []
    return " ".join([*faults[:FAULTS], *more])


def describe(pid: int, proc: str = "/proc") -> ProcessStack | None:
    """The process by the kernel's account; None where it is gone."""
    return describe_texts(pid, *(slurp(f"{proc}/{pid}/{name}") for name in ("stat", "wchan", "cmdline")))


def describe_texts(pid: int, stat: bytes, wchan: bytes, cmdline: bytes) -> ProcessStack | None:
    """The process by what these files of /proc had. Pure."""
    name, _, rest = stat.decode(errors="replace").partition("(")[2].rpartition(")")
    if not rest:
        return None
    words = cmdline.decode(errors="replace").replace("\0", " ")
    letter, channel = rest.split()[0], wchan.decode(errors="replace")
    state = _STATES.get(letter, f"is in state {letter}")
    where = f" in {channel}" if letter in "SD" and channel not in ("", "0") else ""
    return ProcessStack(pid=pid, command=clean_command(words) or name, state=state + where)


def is_python(pid: int, proc: str = "/proc") -> bool:
    """Whether it is an interpreter, by its file or by the library it has loaded."""
    try:
        if Path(os.readlink(f"{proc}/{pid}/exe")).name.startswith("python"):  # noqa: PTH115
            return True
    except OSError:
        return False
    return b"/libpython3" in slurp(f"{proc}/{pid}/maps")

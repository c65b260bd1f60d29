"""Stacks of programs: as a backend takes them, grouped by place, and in words. Pure.

The backends make the dumps; `control/hangs.py`, `service/stacks.py` and `wire/stacks.py` group and show them.
A replica is a tree of processes. Two replicas are in the same place when the main threads of their Python
programs are; other threads are shown but not compared, because their number and order vary. Values of
variables are never included, and secrets in command lines are masked.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainshed.core.jobs.last_words import mask

MOST_FRAMES = 64  # of a thread, the innermost
MOST_THREADS = 32  # of a process
MOST_PROCESSES = 16  # of a replica
MOST_REPLICAS = 64  # of a job: a sample where there are more
LONGEST_COMMAND = 120
MOST_GROUPS = 6  # listed one by one
NAMED = 3  # replicas of a group that are named, and places of one replica's processes

_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|/lib64/python3|/bin/[^/]*$|^<frozen ")
# Decorators and dispatchers: the function they wrap is more useful.
_WRAPPERS = frozenset(
    ("wrapper", "wrapped", "inner", "_fn", "decorate_context", "__call__", "_call_impl", "_wrapped_call_impl")
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StackFrame:
    name: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStack:
    name: str
    frames: tuple[StackFrame, ...]  # innermost first
    waits: bool = False  # it does not run at the moment
    is_main: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStack:
    pid: int
    command: str
    state: str  # from the kernel: "sleeps in futex_wait_queue"
    threads: tuple[ThreadStack, ...] = ()  # of Python programs only

    @property
    def main(self) -> ThreadStack | None:
        return next((thread for thread in self.threads if thread.is_main), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDump:
    """One replica's processes, parents first."""

    processes: tuple[ProcessStack, ...] = ()
    fault: str = ""  # why something is missing

    @property
    def speaks(self) -> bool:
        """Whether it has the stack of a Python program."""
        return any(process.main is not None for process in self.processes)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackGroup:
    """Replicas that are all in the same place."""

    tasks: tuple[str, ...]
    place: str  # "all_reduce (train.py:41)"
    waits: bool
    dump: StackDump  # of the first of them

    @property
    def sentence(self) -> str:
        many = len(self.tasks) > 1
        who = f"{len(self.tasks)} replicas" if many else self.tasks[0]
        if self.waits:
            return f"{who} {'wait' if many else 'waits'} in {self.place}"
        return f"{who} {'are' if many else 'is'} in {self.place}"


def clean_command(words: str) -> str:
    text = mask(" ".join(words.split()))
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 1] + "…"


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items: the first, the last, and evenly spaced ones between."""
    if len(items) <= most:
        return list(items)
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]


def print_of(dump: StackDump) -> Hashable:
    """A value that is equal for two dumps of the same place."""
    mains = frozenset(_print(process) for process in dump.processes if process.main is not None)
    return mains or frozenset(_print(process) for process in dump.processes) or dump.fault


def _print(process: ProcessStack) -> Hashable:
    main = process.main
    return main.frames if main is not None else (process.command.partition(" ")[0], process.state)


def grouped(dumps: Mapping[str, StackDump]) -> tuple[StackGroup, ...]:
    """The replicas grouped by place, the largest group first. The dumps are by task."""
    by_place: dict[Hashable, list[str]] = {}
    for task in sorted(dumps, key=_natural):
        by_place.setdefault(print_of(dumps[task]), []).append(task)
    shared = _shared([dumps[tasks[0]] for tasks in by_place.values()])
    groups = [_group(tuple(tasks), dumps[tasks[0]], shared) for tasks in by_place.values()]
    return tuple(sorted(groups, key=lambda group: (-len(group.tasks), _natural(group.tasks[0]))))


def _natural(task: str) -> list[tuple[int, str]]:
    """A sort key by which workerpool0-10 comes after workerpool0-9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", task)]


def _shared(dumps: Sequence[StackDump]) -> frozenset[Hashable]:
    """The processes that are in the same place in every group, and so distinguish none."""
    if len(dumps) < 2:
        return frozenset()
    first, *others = (frozenset(map(_print, dump.processes)) for dump in dumps)
    return first.intersection(*others)


def _group(tasks: tuple[str, ...], dump: StackDump, shared: frozenset[Hashable]) -> StackGroup:
    telling = [process for process in dump.processes if _print(process) not in shared] or dump.processes
    spoken = [process.main for process in telling if process.main is not None]
    # A launcher has library frames only; the program it launched has frames of its own.
    mains = [item for item in spoken if _own(item.frames) is not None] or [
        item for item in spoken[:1] if item.frames
    ]
    if mains:
        places = list(dict.fromkeys(place_of(main.frames) for main in mains))[:NAMED]
        place = " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
        return StackGroup(tasks=tasks, place=place, waits=all(main.waits for main in mains), dump=dump)
    first = next(iter(telling), None)
    if first is None:
        return StackGroup(
            tasks=tasks, place=f"an unknown place: {dump.fault or 'no process'}", waits=False, dump=dump
        )
    return StackGroup(
        tasks=tasks, place=f"{first.command.partition(' ')[0]}, which {first.state}", waits=False, dump=dump
    )


def _own(frames: Sequence[StackFrame]) -> int | None:
    """The innermost frame of the program's own files."""
    return next((at for at, frame in enumerate(frames) if not _LIBRARY.search(frame.file)), None)


def _wraps(frame: StackFrame) -> bool:
    return frame.name.rpartition(".")[2] in _WRAPPERS  # py-spy gives names such as `logged.<locals>.wrapper`


def place_of(frames: Sequence[StackFrame]) -> str:
    """The function that the program's own code called last: `all_reduce (train.py:41)`."""
    at = _own(frames)
    if at is None or at == 0:
        return f"{frames[0].name} ({frames[0].place})"
    called = next((frame for frame in frames[at - 1 :: -1] if not _wraps(frame)), frames[at - 1])
    return f"{called.name} ({frames[at].place})"


def told(groups: Sequence[StackGroup], most: int = MOST_GROUPS) -> str:
    """All groups on one line: which replicas are where."""
    parts = [group.sentence for group in groups[:most]]
    if len(groups) > most:
        parts.append(f"{sum(len(group.tasks) for group in groups[most:])} more are in other places")
    return "; ".join(parts)


def drawn(group: StackGroup) -> str:
    """The group's sentence, who is in it, and the stacks of its first member, for people."""
    lines = [f"{group.sentence}."]
    if len(group.tasks) > 1:
        more = f" and {len(group.tasks) - NAMED} more" if len(group.tasks) > NAMED else ""
        lines.append(f"  {', '.join(group.tasks[:NAMED])}{more}; the stacks of {group.tasks[0]}:")
    if group.dump.fault:
        lines.append(f"  {group.dump.fault}")
    for process in group.dump.processes:
        lines.append(f"  process {process.pid}, {process.command}: {process.state}")
        main = process.main
        lines += [f"    {frame.name} ({frame.place})" for frame in (main.frames if main else ())]
        if (others := len(process.threads) - (main is not None)) > 0:
            lines.append(f"    and {others} more {'thread' if others == 1 else 'threads'}")
    return "\n".join(lines)

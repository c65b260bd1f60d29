"""Parses what a keeper wrote about its run. Pure; it never touches a file.

run.py calls it. A record is a file of spaces overwritten in place, a line per fact (keeper.c lists them). It
may be cut off anywhere: only a line with its newline counts.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from trainshed.backends.machine.processes import Identity
from trainshed.backends.machine.run import KnownRecord, not_run
from trainshed.core.jobs.replica import Exit

BLANK = b" " * 2048  # room for every line, bash's account of a killed child included

# Deaths that shells keep silent about. Of the two things such a status can mean this is the likelier.
_SILENT = frozenset({2, 13})


_ENDS = ("exit", "signal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord(KnownRecord):
    keeper: Identity | None = None
    program: Identity | None = None


def moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)


def parse(text: bytes) -> ProcessRecord:
    keeper = program = ended = None
    boot = ""
    started_at = ended_at = None
    noise = False
    held: Exit | None = None
    unstarted = ""
    for line in text.decode("utf-8", "replace").split("\n")[:-1]:
        match line.split():
            case ["keeper", pid, start, boot, *rest] if keeper is None:
                keeper = Identity(int(pid), int(start))
                started_at = moment(int(rest[0])) if rest else None
            case ["program", pid, start] if program is None:
                program = Identity(int(pid), int(start))
            case ["held", how, number, at] if how in _ENDS and held is None:
                held, ended_at = _exit(how, number), moment(int(at))
            case [how, number, at] if how in _ENDS:
                ended, ended_at = held or _exit(how, number), ended_at if held else moment(int(at))
            case ["unstarted", number] if number.isdigit():
                unstarted = not_run(number)
            case ["status", status]:
                ended = _from_shell(int(status), noise)
            case _:
                noise = True
    return ProcessRecord(
        keeper=keeper,
        boot=boot,
        started_at=started_at,
        program=program,
        held=held,
        exit=ended,
        ended_at=ended_at,
        unstarted=unstarted,
    )


def _exit(how: str, number: str) -> Exit:
    return Exit(code=int(number)) if how == "exit" else Exit(signal=int(number))


def _from_shell(status: int, noise: bool) -> Exit:
    """A shell says 137 for `exit 137` and for a death by signal 9, and complains only of the latter."""
    if status > 128 and (noise or status - 128 in _SILENT):
        return Exit(signal=status - 128)
    return Exit(code=status)

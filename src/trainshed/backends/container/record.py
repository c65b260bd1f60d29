"""What the init of a container wrote about its run, read without trusting that it got to the end.

A record is a file of spaces overwritten in place, a line per fact (init.c says which). Who runs in the
container may write into it too, so it may hold anything: what is no fact is passed over. Whoever holds the
lock on it is the init.
"""

import contextlib
import fcntl
import os
import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from trainshed.backends.machine.run import KnownRecord, not_run
from trainshed.core.replica import Exit

BLANK = b" " * 512
_LOCK = "hhqqi"  # struct flock of a 64-bit Linux
_MOST_CODE = 255
_MOST_SIGNAL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRecord(KnownRecord):
    oom: int = 0

    @property
    def begun(self) -> bool:
        return self.started_at is not None


def parse(text: bytes) -> ContainerRecord:
    boot, oom, unstarted = "", 0, ""
    held = ended = started_at = ended_at = None
    for line in text[: len(BLANK)].decode("utf-8", "replace").split("\n")[:-1]:
        with contextlib.suppress(ValueError, OverflowError, OSError):
            match line.split():
                case ["init", boot_id, at] if started_at is None:
                    started_at, boot = _moment(at), boot_id
                case ["oom", count]:
                    oom = int(count)
                case ["unstarted", number]:
                    unstarted = not_run(number)
                case ["held", how, number, at] if held is None:
                    ended_at, held = _moment(at), _exit(how, number)
                case ["exit" | "signal" as how, number, at]:
                    ended, ended_at = held or _exit(how, number), ended_at if held else _moment(at)
                case _:
                    pass
    return ContainerRecord(
        boot=boot,
        started_at=started_at,
        oom=oom,
        held=held,
        exit=ended,
        ended_at=ended_at,
        unstarted=unstarted,
    )


def _exit(how: str, number: str) -> Exit:
    """ValueError where it is none: whoever runs in the container may have written it."""
    value = int(number)
    if how == "exit" and 0 <= value <= _MOST_CODE:
        return Exit(code=value)
    if how == "signal" and 0 < value <= _MOST_SIGNAL:
        return Exit(signal=value)
    raise ValueError(how)


def holder(path: str) -> int | None:
    """The pid of who holds the lock; None where nobody does; 0 where it is not of this machine's."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = struct.pack(_LOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_LOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(handle)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def _moment(nanoseconds: str) -> datetime:
    return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC)

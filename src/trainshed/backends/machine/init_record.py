"""The record that an init keeps of a run, read: the lines are listed in the inits' sources. Pure.

The backends of containers and of clusters call it. A program beside the init may write into the record too:
lines that state no fact are skipped.
"""

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime

from trainshed.backends.machine.run import KnownRecord, not_run
from trainshed.core.jobs.replica import Exit

MOST_RECORD = 512  # bytes
EXPOSED = "it is not kept apart from the network: the cluster enforces no network policies"
_MOST_CODE = 255
_MOST_SIGNAL = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class InitRecord(KnownRecord):
    oom: int = 0
    unasked: bool = False  # its program has ended before anybody asked it to
    unchanged: bool = False  # nothing below /gcs has changed since it began
    refusals: int = 0  # of processes and threads, by the kernel
    unheard: int = 0  # a port that was to lead to the server, and does not

    @property
    def begun(self) -> bool:
        return self.started_at is not None


def parse_record(text: bytes) -> InitRecord:
    boot, oom, refusals, unheard, unstarted, unasked, unchanged = "", 0, 0, 0, "", False, False
    held_exit = ended = started_at = ended_at = None
    for line in text[:MOST_RECORD].decode("utf-8", "replace").split("\n")[:-1]:
        with contextlib.suppress(ValueError, OverflowError, OSError):
            match line.split():
                case ["init", boot_id, at] if started_at is None:
                    started_at, boot = _moment(at), boot_id
                case ["oom", count]:
                    oom = int(count)
                case ["unasked"]:
                    unasked = True
                case ["unchanged"]:
                    unchanged = True
                case ["refused", count]:
                    refusals = int(count)
                case ["unheard", port]:
                    unheard = int(port)
                case ["exposed"]:
                    unstarted = EXPOSED
                case ["unstarted", number]:
                    unstarted = not_run(number)
                case ["held", how, number, at] if held_exit is None:
                    ended_at, held_exit = _moment(at), _exit(how, number)
                case ["exit" | "signal" as how, number, at]:
                    ended, ended_at = held_exit or _exit(how, number), ended_at if held_exit else _moment(at)
                case _:
                    pass
    return InitRecord(
        boot=boot,
        started_at=started_at,
        oom=oom,
        refusals=refusals,
        unheard=unheard,
        held=held_exit,
        exit=ended,
        ended_at=ended_at,
        unstarted=unstarted,
        unasked=unasked,
        unchanged=unchanged,
    )


def _exit(how: str, number: str) -> Exit:
    """Raise ValueError where it is none: programs in the container can write into the record."""
    value = int(number)
    if how == "exit" and 0 <= value <= _MOST_CODE:
        return Exit(code=value)
    if how == "signal" and 0 < value <= _MOST_SIGNAL:
        return Exit(signal=value)
    raise ValueError(how)


def _moment(nanoseconds: str) -> datetime:
    return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC)

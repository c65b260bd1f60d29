"""Crashes that repeat: a program that dies by the same signal, soon after its start, at the same place. Pure.

Such a death is the program's own doing, and the next run would die of it too. The place is known by what the
program said last; where that is not known, no two crashes are the same.
"""

import hashlib
import re
import signal
from collections.abc import Sequence
from datetime import timedelta

from trainshed.core.job import RestartRule
from trainshed.core.replica import Exit, Replica

SAME = 3  # crashes at the same place after which it is not tried again
SHORT = timedelta(seconds=60)  # a program that ran longer has done something before it crashed
_SIGNALS = frozenset({signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV})
_SHELL = 128  # and the signal: how a shell tells that its last program was killed
_ERROR_LINES, _OUTPUT_LINES = 20, 1
# What is another at each run of the same program: addresses, numbers of processes and threads, times.
_VARIES = re.compile(
    r"\b(?:pid|PID|[Tt]hread|[Pp]rocess)\W{0,3}(?:0x[0-9a-fA-F]+|\d+)|0x[0-9a-fA-F]+"
    r"|\d{4}-\d{2}-\d{2}|\d{2}:\d{2}:\d{2}(?:[.,]\d+)?"
)


def crash_signal(end: Exit | None) -> int | None:
    """The signal of a crash, also as a shell tells it; None where it ended otherwise."""
    if end is None:
        return None
    number = end.signal if end.signal is not None else (end.code or 0) - _SHELL
    return number if number in _SIGNALS else None


def last_words(stderr: Sequence[str], stdout: Sequence[str]) -> str:
    """What a program said last, without what is another at each run."""
    said = [*stderr[-_ERROR_LINES:], *stdout[-_OUTPUT_LINES:]]
    return "\n".join(_VARIES.sub("", line).strip() for line in said)


def place_of_crash(replica: Replica, words: str | None) -> str:
    """By which a crash of an ended run is known again; empty where it is none, or nothing tells its place."""
    number = crash_signal(replica.exit)
    if number is None or words is None or replica.started_at is None or replica.ended_at is None:
        return ""
    if replica.ended_at - replica.started_at > SHORT:
        return ""
    return hashlib.sha256(f"{number} {words}".encode(errors="replace")).hexdigest()[:16]


def repeats(replica: Replica, rule: RestartRule) -> bool:
    """Whether it is no use to try again. A rule that names every code wants it all the same."""
    names_all = any(low <= 1 and high >= 255 for low, high in rule.retry_codes)
    return replica.crashes >= SAME and not names_all

"""Crashes that repeat: a program that dies by the same signal, soon after its start, at the same place. Pure.

`core/jobs/decide.py` and `control/verdicts.py` call it. Such a crash is the program's own fault, and the next
run would crash too. The place is known by the program's last lines of output; without these, no two crashes
are the same.
"""

import hashlib
import re
import signal
from collections.abc import Sequence
from datetime import timedelta

from trainshed.core.jobs.job import RestartRule
from trainshed.core.jobs.replica import Exit, Replica

SAME = 3  # crashes at the same place after which it is not tried again
SHORT = timedelta(seconds=60)  # a program that ran longer has done something before it crashed
_SIGNALS = frozenset({signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV})
_SHELL = 128  # plus the signal: the exit code of a shell whose last program was killed
_ERROR_LINES, _OUTPUT_LINES = 20, 1
# What differs between runs of the same program: addresses, numbers of processes and threads, times.
_VARIES = re.compile(
    r"\b(?:pid|PID|[Tt]hread|[Pp]rocess)\W{0,3}(?:0x[0-9a-fA-F]+|\d+)|0x[0-9a-fA-F]+"
    r"|\d{4}-\d{2}-\d{2}|\d{2}:\d{2}:\d{2}(?:[.,]\d+)?"
)


def crash_signal(end: Exit | None) -> int | None:
    """The signal of a crash, also from a shell's exit code; None where it was no crash."""
    if end is None:
        return None
    number = end.signal if end.signal is not None else (end.code or 0) - _SHELL
    return number if number in _SIGNALS else None


def last_words(stderr: Sequence[str], stdout: Sequence[str]) -> str:
    """The last lines of output, without what differs between runs."""
    lines = [*stderr[-_ERROR_LINES:], *stdout[-_OUTPUT_LINES:]]
    return "\n".join(_VARIES.sub("", line).strip() for line in lines)


def place_of_crash(replica: Replica, words: str | None) -> str:
    """A hash that is equal for equal crashes; empty where it was no crash or its place is unknown."""
    number = crash_signal(replica.exit)
    if number is None or words is None or replica.started_at is None or replica.ended_at is None:
        return ""
    if replica.ended_at - replica.started_at > SHORT:
        return ""
    return hashlib.sha256(f"{number} {words}".encode(errors="replace")).hexdigest()[:16]


def repeats(replica: Replica, rule: RestartRule) -> bool:
    """Whether a retry is useless. A rule that names every exit code asks for retries all the same."""
    names_all = any(low <= 1 and high >= 255 for low, high in rule.retry_codes)
    return replica.crashes >= SAME and not names_all

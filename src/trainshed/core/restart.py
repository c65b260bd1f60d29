"""The restart rule: what the end of a run means for its job, and how long to wait before a retry. Pure.

`core/decide.py` and `core/closing.py` call it.
"""

from datetime import timedelta
from enum import StrEnum

from trainshed.core.job import RestartRule
from trainshed.core.replica import Exit

STARTS = 5  # tries of a program that cannot be started: after that it is not expected to work


class Meaning(StrEnum):
    DONE = "DONE"
    OWN_FAILURE = "OWN_FAILURE"  # the program failed by itself: a retry would fail too
    INTERRUPTED = "INTERRUPTED"  # something outside ended it: a retry may help


def meaning(
    end: Exit,
    rule: RestartRule,
    *,
    over_limit: bool = False,
    given_up: bool = False,
    no_room: bool = False,
) -> Meaning:
    """What the end of a run means.

    A run that exceeded a limit of its own counts as one that exited with code 1. A program that could not be
    started so often that it is `given_up` has failed, whatever the rule says. Where there was `no_room` for
    its output, printing fails: that is the machine's failure, whatever code the program exits with.
    """
    if end.ok:
        return Meaning.DONE
    if given_up:
        return Meaning.OWN_FAILURE
    if no_room and not over_limit:
        return Meaning.INTERRUPTED
    code = 1 if over_limit else end.code
    if code is None:  # killed by a signal, or its end was not seen
        return Meaning.INTERRUPTED
    if any(low <= code <= high for low, high in rule.retry_codes):
        return Meaning.INTERRUPTED
    return Meaning.OWN_FAILURE


def backoff(rule: RestartRule, tries: int) -> timedelta:
    """How long to wait before the next try, after `tries` earlier ones."""
    return min(rule.backoff * 2 ** min(tries, 30), rule.backoff_most)

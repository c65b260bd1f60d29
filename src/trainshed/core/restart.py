"""The restart rule: what an ended run means for its job, and how long to wait before the next try."""

from datetime import timedelta
from enum import StrEnum

from trainshed.core.job import RestartRule
from trainshed.core.replica import Exit

STARTS = 5  # tries of a program that never began: what is not there then will hardly come


class Meaning(StrEnum):
    DONE = "DONE"
    OWN_FAILURE = "OWN_FAILURE"  # the program says it failed: trying again would fail again
    INTERRUPTED = "INTERRUPTED"  # something outside ended it: worth another try


def meaning(end: Exit, rule: RestartRule, *, over_limit: bool = False, given_up: bool = False) -> Meaning:
    """One that was over a limit of its own failed by itself, as if it had said so with the code 1.

    One whose program could not be started so often that it is `given_up` has failed whatever the rule says.
    """
    if end.ok:
        return Meaning.DONE
    if given_up:
        return Meaning.OWN_FAILURE
    code = 1 if over_limit else end.code
    if code is None:  # died by a signal, or nobody saw how
        return Meaning.INTERRUPTED
    if any(low <= code <= high for low, high in rule.retry_codes):
        return Meaning.INTERRUPTED
    return Meaning.OWN_FAILURE


def backoff(rule: RestartRule, tries: int) -> timedelta:
    """How long to wait before the next try, after `tries` earlier ones."""
    return min(rule.backoff * 2 ** min(tries, 30), rule.backoff_most)

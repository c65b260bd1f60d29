"""The restart rule: what the end of a run means for its job, and how long to wait before a retry. Pure.

`core/jobs/decide.py` and `core/jobs/closing.py` call it.
"""

from datetime import timedelta
from enum import StrEnum

from trainshed.core.jobs.job import RestartRule
from trainshed.core.jobs.replica import Exit, Replica

INTERRUPTIONS = 20  # in a row, after which a job is given up
PROGRESS = timedelta(minutes=10)  # a run that was interrupted after so long has come further
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
    interrupted: bool = False,
) -> Meaning:
    """What the end of a run means.

    A run that exceeded a limit of its own counts as one that exited with code 1. A program that could not be
    started so often that it is `given_up` has failed, whatever the rule says. Where there was `no_room` for
    its output, printing fails: that is the machine's failure, whatever code the program exits with. The same
    holds where somebody else ended it: programs that are asked to end may exit with any code.
    """
    if end.ok:
        return Meaning.DONE
    if given_up:
        return Meaning.OWN_FAILURE
    if (no_room or interrupted) and not over_limit:
        return Meaning.INTERRUPTED
    code = 1 if over_limit else end.code
    if code is None:  # killed by a signal, or its end was not seen
        return Meaning.INTERRUPTED
    if any(low <= code <= high for low, high in rule.retry_codes):
        return Meaning.INTERRUPTED
    return Meaning.OWN_FAILURE


def interruptions(replica: Replica) -> int:
    """How often it was interrupted in a row without having run for long, this time included."""
    if not replica.interrupted:
        return 0
    if replica.started_at and replica.ended_at and replica.ended_at - replica.started_at >= PROGRESS:
        return 1
    return replica.interruptions + 1


def pause_before(rule: RestartRule, replica: Replica) -> timedelta:
    """How long to wait before a replica that has ended is started again."""
    return backoff(rule, interruptions(replica) - 1 if replica.interrupted else replica.restarts)


def backoff(rule: RestartRule, tries: int) -> timedelta:
    """How long to wait before the next try, after `tries` earlier ones."""
    return min(rule.backoff * 2 ** min(tries, 30), rule.backoff_most)

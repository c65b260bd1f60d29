"""Refusal: why a waiting job may not start now, as a reason and its numbers. Pure.

`core/queue/admit.py` makes one for each shape of job that it refuses. `in_words` makes the sentences; it is
called only for a job that somebody asks about or whose history is written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trainshed.core.event import Reason, Waiting
from trainshed.core.queue.place import Amount
from trainshed.core.queue.share_use import Bound, ShareShortage

Named: TypeAlias = tuple[str, str, str]  # a job's id, display name and project

UNNAMED = "a job of another project"  # one whose name the reader may not see

NOTHING = Amount()
UNPLACEABLE = (Reason.TOO_LARGE, Reason.NO_NODES)  # however long it waits, on these machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    reason: Reason
    needs: Amount = NOTHING
    free: Amount = NOTHING  # when it was refused
    there: Amount = NOTHING  # all machines together
    holders: tuple[Named, ...] = ()  # the first of the jobs that hold resources
    more_holders: int = 0  # how many more of them there are
    starts_by: datetime | None = None  # when there will be room at the latest, where that is known
    head: Named = ("", "", "")  # the first in the queue
    head_needs: Amount = NOTHING
    kinds_before: int = 0  # the job was not tried, because so many other shapes were refused before
    shortage: ShareShortage | None = None  # where its share has nothing left for it


def in_words(refusal: Refusal, hides: Callable[[Named], bool] = lambda _: False) -> Waiting:
    """`hides` is true of jobs whose names the reader may not see."""
    match refusal.reason:
        case Reason.NO_NODES:
            message, remedy = f"Needs {refusal.needs}; no machine is connected.", "Connect a machine."
        case Reason.TOO_LARGE:
            message = f"Needs {refusal.needs}; all machines together have {refusal.there}."
            remedy = "Ask for less, add a machine, or start the server with --fit shrink."
        case Reason.WAITS_FOR_CAPACITY:
            message, remedy = _no_room(refusal, hides)
        case Reason.WAITS_FOR_PREEMPTED:
            message, remedy = f"Waits for {_holders(refusal, hides)} to stop.", _by(refusal)
        case Reason.PAUSES:
            message, remedy = _pauses(refusal)
        case Reason.WAITS_FOR_SHARE:
            message, remedy = _no_share(refusal, hides)
        case _:
            message, remedy = _behind(refusal, hides)
    return Waiting(reason=refusal.reason, message=message, remedy=remedy)


def _holders(refusal: Refusal, hides: Callable[[Named], bool]) -> str:
    more = f" and {refusal.more_holders} more" if refusal.more_holders else ""
    return ", ".join(_named(job, hides, "") for job in refusal.holders) + more


def _by(refusal: Refusal) -> str:
    by = f", by {refusal.starts_by:%Y-%m-%d %H:%M:%S} UTC" if refusal.starts_by else ""
    return f"It starts as soon as they have stopped{by}; what they leave is kept for it."


def _pauses(refusal: Refusal) -> tuple[str, str]:
    until = f"{refusal.starts_by:%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"It was preempted and had stored no checkpoint. So it pauses until {until}.",
        "It starts then, or before where its share has room of its own; "
        "a job that stores checkpoints does not pause.",
    )


def _no_room(refusal: Refusal, hides: Callable[[Named], bool]) -> tuple[str, str]:
    holders = _holders(refusal, hides)
    ends = f", by {refusal.starts_by:%Y-%m-%d %H:%M:%S} UTC at the latest" if refusal.starts_by else ""
    return (
        f"Needs {refusal.needs}; free are {refusal.free} of {refusal.there}; held by {holders}.",
        f"It starts when enough of these end{ends}; cancel one, or ask for at most what is free.",
    )


def _no_share(refusal: Refusal, hides: Callable[[Named], bool]) -> tuple[str, str]:
    shortage = refusal.shortage
    assert shortage is not None
    if refusal.head[0]:
        return (
            f"First to wait for that share is {_named(refusal.head, hides)}. {shortage.message}",
            "It starts after that job, or before it where that delays nobody.",
        )
    if refusal.starts_by is None:
        return shortage.message, "It is more than its share may ever have: ask for less, or raise the share."
    ends = f"by {refusal.starts_by:%Y-%m-%d %H:%M:%S} UTC at the latest"
    whose = "jobs of that user" if shortage.bound is Bound.USER else "jobs of these shares"
    return shortage.message, f"It starts when enough {whose} end, {ends}; ask for less, or raise the share."


def _behind(refusal: Refusal, hides: Callable[[Named], bool]) -> tuple[str, str]:
    first = f"first in the queue is {_named(refusal.head, hides)}, which needs {refusal.head_needs}"
    if refusal.kinds_before:
        return (
            f"More than {refusal.kinds_before} jobs of other sizes are before it; {first}.",
            "It moves up as they start; a higher scheduling.priority puts it before them.",
        )
    return (
        f"Needs {refusal.needs}; free are {refusal.free}; {first}.",
        "It starts after that job, or before it where that delays nobody: ask for less, "
        "or set a shorter scheduling.timeout or a higher scheduling.priority.",
    )


def _named(job: Named, hides: Callable[[Named], bool], what: str = "job ") -> str:
    return UNNAMED if hides(job) else f"{what}{job[0]} '{job[1]}'"

"""Finds bounds of a log filter: which jobs, tasks, times and entries can match. For `api/log_entries.py`.

A read can then begin at the right place instead of at the first line ever stored. The bounds are
conservative: every entry that matches lies within them, but not every entry within them matches. All labels
that name an entry's job (or its task) must agree.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from trainshed.wire.log_terms import AllTerms, AnyTerm, CompareTerm, Filter, NotTerm, SearchTerm, TermOperator

_JOB = (("resource", "labels", "job_id"), ("labels", "ml.googleapis.com/job_id"))
_TASK = (
    ("resource", "labels", "task_name"),
    ("labels", "task_name"),
    ("labels", "ml.googleapis.com/task_name"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Every matching entry lies within these. None: no bound."""

    jobs: frozenset[str] | None = None
    tasks: frozenset[str] | None = None
    since_ns: int | None = None  # inclusive
    until_ns: int | None = None  # exclusive
    after: tuple[int, str] | None = None  # (time, insert id), exclusive


def bounds(condition: Filter) -> Bounds:
    match condition:
        case CompareTerm():
            return _bound(condition)
        case AllTerms(parts):
            return _narrow(parts)
        case AnyTerm(parts):
            return _widen([bounds(part) for part in parts])
        case SearchTerm() | NotTerm():
            return Bounds()
        case _:
            assert_never(condition)


def _bound(compare: CompareTerm) -> Bounds:
    if compare.op is TermOperator.EQ and compare.path in _JOB:
        return Bounds(jobs=frozenset({compare.value}))
    if compare.op is TermOperator.EQ and compare.path in _TASK:
        return Bounds(tasks=frozenset({compare.value}))
    if compare.path != ("timestamp",) or compare.rank is None:
        return Bounds()
    match compare.op:
        case TermOperator.EQ:
            return Bounds(since_ns=compare.rank, until_ns=compare.rank + 1)
        case TermOperator.GT:
            return Bounds(since_ns=compare.rank + 1)
        case TermOperator.GE:
            return Bounds(since_ns=compare.rank)
        case TermOperator.LT:
            return Bounds(until_ns=compare.rank)
        case TermOperator.LE:
            return Bounds(until_ns=compare.rank + 1)
        case _:
            return Bounds()


def _narrow(parts: tuple[Filter, ...]) -> Bounds:
    inner = [bounds(part) for part in parts]
    since = max((b.since_ns for b in inner if b.since_ns is not None), default=None)
    until = min((b.until_ns for b in inner if b.until_ns is not None), default=None)
    after = max((b.after for b in inner if b.after is not None), default=None)
    if since is not None and until == since + 1:
        # One instant only: there an insert id is a place.
        for part in parts:
            if isinstance(part, CompareTerm) and part.path == ("insertId",) and part.op is TermOperator.GT:
                after = max(after or (since, ""), (since, part.value))
    return Bounds(
        jobs=_common(b.jobs for b in inner if b.jobs is not None),
        tasks=_common(b.tasks for b in inner if b.tasks is not None),
        since_ns=since,
        until_ns=until,
        after=after,
    )


def _common(sets: Iterable[frozenset[str]]) -> frozenset[str] | None:
    common: frozenset[str] | None = None
    for item in sets:
        common = item if common is None else common & item
    return common


def _widen(inner: list[Bounds]) -> Bounds:
    jobs = [b.jobs for b in inner if b.jobs is not None]
    tasks = [b.tasks for b in inner if b.tasks is not None]
    sinces = [b.since_ns for b in inner if b.since_ns is not None]
    untils = [b.until_ns for b in inner if b.until_ns is not None]
    every = len(inner)
    after = None
    if len(sinces) == every:
        # (time, 0) is the start of an instant, (time, 1, id) a place within it.
        starts = [
            ((b.since_ns or 0), 0, "") if b.after is None else (b.after[0], 1, b.after[1]) for b in inner
        ]
        time, within, place = min(starts)
        after = (time, place) if within else None
    return Bounds(
        jobs=frozenset(job for some in jobs for job in some) if len(jobs) == every else None,
        tasks=frozenset(task for some in tasks for task in some) if len(tasks) == every else None,
        since_ns=min(sinces) if len(sinces) == every else None,
        until_ns=max(untils) if len(untils) == every else None,
        after=after,
    )

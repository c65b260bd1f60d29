"""The checker itself: content with a good history, and not with any that breaks a promise."""

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checker import Final, check
from tests.chaos.history import Fact
from tests.chaos.notes import Note

SUCCEEDED, FAILED, CANCELLED = "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"
RUNNING, QUEUED = "JOB_STATE_RUNNING", "JOB_STATE_QUEUED"


def fact(what: str, at: int, outcome: str = "ok", job: str = "1", key: str = "", **data: Any) -> Fact:
    return Fact(what=what, outcome=outcome, job=job, key=key, begun=at, at=at + 1, data=data)


def listing(at: int, **states: str) -> Fact:
    return fact("list", at, job="", jobs=[(job[1:], f"JOB_STATE_{state}") for job, state in states.items()])


def start(at: int, run: str = "1.0.0.0.0") -> Note:
    return Note(what="start", run=run, pid=1, at=at)


def end(at: int, run: str = "1.0.0.0.0", code: int | None = 0, lines: int = 1) -> Note:
    signal = 9 if code is None else None
    return Note(what="end", run=run, pid=1, at=at, code=code, signal=signal, lines=lines)


def a_job(state: str = SUCCEEDED, job: str = "1", message: str = "") -> dict[str, Any]:
    body: dict[str, Any] = {"name": f"projects/p/locations/l/customJobs/{job}", "state": state}
    return body | ({"error": {"message": message}} if message else {})


FACTS = (
    fact("submit", 1, "lost", job="", key="k"),
    fact("submit", 3, key="k"),
    fact("kind", 5, "known", kind="quick"),
    listing(7, j1="QUEUED"),
    listing(9, j1="RUNNING"),
    fact("follow", 10, "lost", lines=[]),
    listing(20, j1="SUCCEEDED"),
    fact("follow", 21, "whole", lines=[("a", "1.0.0.0.0 0")]),
)
NOTES = (start(10), end(12))
FINAL = Final(jobs=[a_job()], lines={"1": [("a", "1.0.0.0.0 0")]})


def with_kind(kind: str) -> tuple[Fact, ...]:
    return tuple(
        replace(f, data={"kind": kind}) if f.what == "kind" else f for f in FACTS if f.what != "list"
    )


def test_a_good_history_breaks_nothing() -> None:
    assert check(FACTS, NOTES, FINAL) == []


def test_a_job_cancelled_or_deleted_in_time_breaks_nothing() -> None:
    cancelled = Final(jobs=[a_job(CANCELLED)], lines=FINAL.lines)
    facts = (*FACTS[:6], fact("cancel", 14))
    assert check(facts, NOTES[:1], cancelled) == []
    ended_before = (*FACTS, fact("cancel", 14))
    assert check(ended_before, NOTES, FINAL) == []
    deleted = (*FACTS, fact("delete", 30, "lost"), fact("delete", 32, "refused", status=404))
    assert check(deleted, NOTES, Final()) == []


@pytest.mark.parametrize(
    ("facts", "notes", "final", "told"),
    [
        (FACTS, NOTES, Final(), "was acknowledged and is there 0 times"),
        (FACTS, NOTES, replace(FINAL, jobs=[a_job(), a_job()]), "is there 2 times"),
        (FACTS, NOTES, replace(FINAL, jobs=[a_job(), a_job(job="2")]), "nobody was ever told"),
        ((*FACTS, fact("submit", 30, job="2", key="k")), NOTES, FINAL, "acknowledged as different jobs"),
        ((*FACTS, fact("submit", 30, "refused", status=409)), NOTES, FINAL, "was refused"),
        ((*FACTS, fact("delete", 30)), NOTES, FINAL, "was deleted and is still there"),
        ((*FACTS, fact("delete", 30, "refused", status=400)), NOTES, FINAL, "seen as ended, was refused"),
        ((*FACTS, fact("delete", 30), listing(40, j1="SUCCEEDED")), NOTES, Final(), "listed after"),
        ((*FACTS, listing(40)), NOTES, FINAL, "missing from a list"),
        ((*FACTS, fact("list", 40, jobs=[("1", SUCCEEDED)] * 2)), NOTES, FINAL, "listed 2 times"),
        ((*FACTS, listing(40, j1="RUNNING")), NOTES, FINAL, "was JOB_STATE_SUCCEEDED and then"),
        ((*FACTS, listing(40, j1="FAILED")), NOTES, FINAL, "was JOB_STATE_SUCCEEDED and then"),
        ((*FACTS[:5], listing(15, j1="QUEUED")), NOTES, FINAL, "was JOB_STATE_RUNNING and then"),
        (FACTS, (*NOTES, start(11)), FINAL, "was started 2 times"),
        (FACTS, (*NOTES, replace(start(11), what="twice")), FINAL, "started while it lived"),
        (FACTS, (*NOTES, replace(start(11), what="together", other="0.0.0.1")), FINAL, "while 0.0.0.1"),
        (FACTS, (*NOTES, start(11, "7.0.0.0.0")), FINAL, "job 7 ran, and nobody"),
        (FACTS, (*NOTES, start(14, "1.0.0.0.1")), FINAL, "which nobody needed"),
        (FACTS, (*NOTES, start(14, "1.0.3.0.0")), FINAL, "no replica 3.0"),
        (FACTS, (*NOTES, start(14, "1.0.0.0.2")), FINAL, "skipped a restart"),
        (with_kind("stumbles"), NOTES, FINAL, "not [(0, 0), (0, 1)]"),
        (FACTS, (), FINAL, "had runs [], not"),
        (FACTS[:5], NOTES, replace(FINAL, jobs=[a_job(RUNNING)]), "never ended"),
        (FACTS[:6], NOTES, replace(FINAL, jobs=[a_job(CANCELLED)]), "not JOB_STATE_SUCCEEDED"),
        (FACTS[:6], NOTES, replace(FINAL, jobs=[a_job(FAILED)]), "not JOB_STATE_SUCCEEDED"),
        ((*FACTS, fact("cancel", 10)), NOTES, FINAL, "was cancelled before it ended"),
        (with_kind("fails"), (start(10), end(12, code=3)), replace(FINAL, jobs=[a_job(FAILED)]), "and says"),
        (FACTS, NOTES, replace(FINAL, lines={}), "printed lines 0 to 1; there are []"),
        (FACTS, NOTES, replace(FINAL, lines={"1": [("a", "1.0.0.0.0 0"), ("b", "1.0.0.0.0 0")]}), "printed"),
        (FACTS, NOTES, replace(FINAL, lines={"1": [("a", "1.0.0.0.0 0"), ("b", "x")]}), "nobody printed"),
        ((*FACTS, fact("follow", 30, lines=[("z", "1.0.0.0.0 0")])), NOTES, FINAL, "and later it had"),
        ((*FACTS, fact("follow", 30, "whole", lines=[])), NOTES, FINAL, "sent home after 0 of 1"),
        (FACTS, NOTES, replace(FINAL, left=["process 7 is left"]), "process 7 is left"),
    ],
)
def test_each_broken_promise_is_told(
    facts: tuple[Fact, ...], notes: tuple[Note, ...], final: Final, told: str
) -> None:
    assert [sentence for sentence in check(facts, notes, final) if told in sentence]


def test_lines_of_one_stream_in_another_order_than_printed_are_told() -> None:
    lines = [("a", "1.0.0.0.0 1"), ("b", "1.0.0.0.0 0")]
    broken = check(FACTS[:6], (start(10), end(12, lines=2)), replace(FINAL, lines={"1": lines}))
    assert any("in the order [1, 0]" in sentence for sentence in broken)

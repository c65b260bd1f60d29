"""A job that was preempted and had stored nothing pauses before it borrows again, each time longer."""

from dataclasses import replace
from datetime import timedelta

from tests.builders import T0, a_job, a_node, at, running, seconds
from tests.shares import a_job_of, a_share, a_tree, started
from trainshed.core.event import Reason
from trainshed.core.explain.explanation import World
from trainshed.core.explain.foresee import foresee
from trainshed.core.explain.history import History
from trainshed.core.jobs.closing import preempted
from trainshed.core.jobs.decide import decide
from trainshed.core.jobs.job import Job, Requeue, Scheduling
from trainshed.core.jobs.pause import requeue_of
from trainshed.core.queue.admit import AdmissionResult, admit
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.share import UNDIVIDED, ShareTree
from trainshed.core.queue.snapshot import snapshot_of

HOUR = timedelta(hours=1)
TREE = a_tree(a_share("a", 4), a_share("b", 4))


def after(*runs: tuple[timedelta, timedelta | None], max_wait: timedelta | None = None) -> Requeue:
    """After runs of such lengths that lost so much."""
    before = None
    for ran, lost in runs:
        before = requeue_of(before, "Preempted.", ran, lost, T0, T0, max_wait)
    assert before is not None
    return before


def paused(job: Job, until: float = 60) -> Job:
    requeue = Requeue(at=T0, message="Preempted.", in_vain=1, pauses_until=at(until))
    return replace(job, status=replace(job.status, requeue=requeue))


def answered(
    jobs: list[Job], active: list[Job] | None = None, tree: ShareTree = TREE
) -> list[AdmissionResult]:
    snapshot = snapshot_of(active or [], (a_node(cpus=8),), Fit.STRICT, T0, None, tree)
    return list(admit(snapshot, jobs, T0))


def test_it_pauses_as_long_as_it_ran_in_vain_and_twice_as_long_the_next_time():
    assert after((HOUR, HOUR)).pauses_until == T0 + HOUR
    assert after((HOUR, HOUR), (HOUR, HOUR)).pauses_until == T0 + 2 * HOUR
    assert after(*[(HOUR, HOUR)] * 9).pauses_until == T0 + timedelta(days=1)


def test_who_stored_a_checkpoint_does_not_pause_and_begins_to_count_anew():
    assert after((HOUR, HOUR / 2)) == Requeue(at=T0, message="Preempted.")
    assert after((HOUR, HOUR), (HOUR, HOUR / 2), (HOUR, HOUR)).pauses_until == T0 + HOUR


def test_a_short_run_and_a_loss_that_is_not_known_are_no_reason_to_pause():
    assert after((seconds(60), seconds(60))).pauses_until is None
    assert after((HOUR, None)).pauses_until is None


def test_it_pauses_for_half_of_what_it_may_wait_at_most():
    assert after((HOUR, HOUR), max_wait=HOUR).pauses_until == T0 + HOUR / 2


def test_the_history_says_until_when_it_pauses():
    job = running(a_job(scheduling=Scheduling(timeout=timedelta(days=1))))
    closing = preempted("Preempted by job 2.", at(3600), seconds(3600))
    plan = decide(replace(job, status=replace(job.status, closing=closing, started_at=T0)), [], at(3601))
    plan = decide(replace(job, status=plan.status), [], at(3640))
    requeue, waiting = plan.status.requeue, plan.status.waiting
    assert requeue is not None and requeue.pauses_until == at(3640) + HOUR
    assert waiting is not None and "stored no checkpoint, so it pauses until" in waiting.message


def test_a_job_that_pauses_is_not_started_and_holds_up_nobody():
    tree = a_tree(a_share("a", 4), a_share("b", 0))
    first, second = paused(a_job_of("b", "1", 4)), a_job_of("b", "2", 4)
    results = answered([first, second], tree=tree)
    assert [result.admission is not None for result in results] == [False, True]
    waiting = results[0].waiting
    assert waiting is not None and waiting.reason is Reason.PAUSES
    assert "So it pauses until" in waiting.message


def test_a_job_with_a_right_to_its_share_does_not_pause():
    [result] = answered([paused(a_job_of("a", "1", 4))])
    assert result.admission is not None
    [spot] = answered([paused(a_job_of("a", "1", 4, spot=True))])
    assert spot.admission is None


def test_a_spot_job_pauses_where_no_shares_are_set_too():
    [result] = answered([paused(a_job_of("a", "1", 4, spot=True))], tree=UNDIVIDED)
    assert result.waiting is not None and result.waiting.reason is Reason.PAUSES


def test_nobody_is_stopped_for_a_job_that_pauses():
    tree = a_tree(a_share("a", 2), a_share("b", 0))
    borrower = started(a_job_of("b", "1", 8))
    [result] = answered([paused(a_job_of("a", "2", 4))], [borrower], tree)
    assert result.refusal is not None and result.refusal.reason is Reason.PAUSES


def test_the_forecast_knows_when_the_pause_ends():
    job = paused(a_job_of("a", "1", 4, spot=True), until=90)
    world = World(
        snapshot=snapshot_of([], (a_node(cpus=8),), Fit.STRICT, T0, None, UNDIVIDED),
        waiting=(job,),
        running=(),
        history=History(),
        catalogue=Catalogue(),
        now=T0,
    )
    eta = foresee(world, job)
    assert eta is not None and (eta.earliest, eta.likely, eta.latest) == (at(90), at(90), at(90))

"""When a waiting job may start, from what jobs like the running ones have taken before."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import T0, a_holder, a_job, a_node, a_pool, at, cancelled, closing, running, seconds
from tests.shares import a_share, a_tree
from trainshed.core.explain.arrivals import Arrivals
from trainshed.core.explain.explanation import Eta, World
from trainshed.core.explain.foresee import foresee, foresee_several
from trainshed.core.explain.history import History, history_of, rest
from trainshed.core.explain.simulate import STOPPING
from trainshed.core.jobs.job import Job, JobState, Outcome, Scheduling
from trainshed.core.queue.fleet import Fit
from trainshed.core.queue.machine import Catalogue
from trainshed.core.queue.snapshot import Reservation, Snapshot

HOUR = Scheduling(timeout=seconds(3600), grace=seconds(30))
HOLDER = running(a_job(id="h", scheduling=HOUR))
FULL = a_holder("h", cpus=8, until=at(3600))
NOW = at(100)
OTHER = replace(HOLDER.spec, pools=(replace(a_pool(), args=("--other",)),))


def ended(job: Job, *lengths: float, state: JobState = JobState.SUCCEEDED) -> list[Job]:
    return [
        replace(job, id=f"{job.id}-{length}", status=replace(job.status, state=state, ended_at=at(length)))
        for length in lengths
    ]


def a_world(*waiting: Job, held: tuple[Reservation, ...] = (FULL,), past: list[Job] | None = None) -> World:
    return World(
        snapshot=Snapshot(nodes=(a_node(),), held=held),
        waiting=waiting,
        running=(HOLDER,),
        history=history_of(past or []),
        catalogue=Catalogue(),
        now=NOW,
    )


def seen(world: World, job: Job) -> Eta:
    eta = foresee(world, job)
    assert eta is not None
    return eta


def test_a_job_that_fits_starts_now():
    job = a_job()
    eta = seen(a_world(job, held=()), job)
    assert (eta.earliest, eta.likely, eta.latest) == (NOW, NOW, NOW)
    assert eta.basis == "There is room for it now."


def test_it_starts_when_such_jobs_usually_end_and_at_the_latest_with_the_timeout_and_its_grace():
    job = a_job()
    eta = seen(a_world(job, past=ended(HOLDER, 50, 296, 297, 298, 299, 300)), job)
    assert (eta.earliest, eta.likely, eta.latest) == (at(296), at(298), at(3630))
    assert "6 of 'job-h'" in eta.basis


def test_where_such_jobs_took_too_differently_there_is_a_range_and_no_single_time():
    job = a_job()
    eta = seen(a_world(job, past=ended(HOLDER, 200, 300, 900, 1500, 2000)), job)
    assert (eta.likely, eta.between) == (None, (at(200), at(2000)))
    assert "too differently for a single time" in eta.basis


def test_one_earlier_run_does_not_show_how_much_they_differ():
    job = a_job()
    eta = seen(a_world(job, past=ended(HOLDER, 900)), job)
    assert (eta.likely, eta.between) == (at(900), (at(500), at(1700)))


def test_jobs_that_go_first_are_taken_to_come_as_often_as_of_late():
    job = a_job(a_pool(cpus=8))
    first = replace(HOUR, priority=1)
    late = [a_job(a_pool(cpus=8), id=f"l{n}", created_at=at(60 * n - 3500), scheduling=first) for n in (1, 2)]
    past = [*ended(HOLDER, *[300] * 5), *(run for one in late for run in ended(running(one), *[600] * 5))]
    world = a_world(job, past=past)
    alone, eta = seen(world, job), seen(replace(world, arrivals=Arrivals(tuple(late), at(-3500))), job)
    assert alone.between == (at(300), at(300))
    assert eta.between == (at(300), at(1500))
    assert "2 jobs were submitted in the last 1 h" in eta.basis
    assert "still to come are not counted" in alone.basis


def test_who_has_a_right_to_what_another_borrows_is_seen_to_take_it_soon():
    tree, borrower = a_tree(a_share("shed", 8), a_share("other", 0)), replace(HOLDER, project="other")
    held = replace(FULL, project="other", stake=tree.stake(borrower, FULL.placements))
    world = a_world(job := a_job(), held=(held,), past=ended(borrower, *[3000] * 5))
    shared = replace(world, snapshot=replace(world.snapshot, tree=tree), running=(borrower,))
    assert seen(shared, job).likely == NOW + STOPPING


def test_without_a_past_nothing_likely_is_told():
    job = a_job()
    eta = seen(a_world(job), job)
    assert (eta.earliest, eta.likely, eta.latest) == (NOW, None, at(3630))
    assert "No job like 'job-h' has ended before." in eta.basis


def test_a_job_that_outlasts_all_before_it_tells_nothing_either():
    job = a_job()
    eta = seen(a_world(job, past=ended(HOLDER, 50, 60)), job)
    assert (eta.earliest, eta.likely) == (NOW, None)
    assert "runs longer than any like it before" in eta.basis


def test_those_before_it_in_the_queue_take_their_time_too():
    first = a_job(a_pool(cpus=8), id="0", created_at=at(-9), scheduling=HOUR)
    job = a_job(a_pool(cpus=8))
    past = [*ended(HOLDER, *[200] * 5), *ended(running(first), *[1000] * 5)]
    eta = seen(a_world(first, job, past=past), job)
    assert (eta.earliest, eta.likely, eta.latest) == (at(1200), at(1200), at(3630 + 3630))


def test_an_unknown_one_that_need_not_end_first_does_no_harm():
    stranger = a_holder("stranger", cpus=1, until=at(9999))
    job = a_job(a_pool(cpus=7))
    held = (replace(FULL, placements=a_holder(cpus=7).placements), stranger)
    eta = seen(a_world(job, held=held, past=ended(HOLDER, *[300] * 5)), job)
    assert eta.likely == at(300)


def test_a_job_too_large_for_the_machines_never_starts():
    job = a_job()
    world = a_world(job)
    assert foresee(replace(world, snapshot=Snapshot(nodes=(), held=())), job) is None


def test_what_is_too_far_to_see_is_not_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("trainshed.core.explain.simulate.MOST_WORK", 100)
    monkeypatch.setattr("trainshed.core.explain.simulate.MOST_ROUGH_WORK", 100)
    ahead = [a_job(a_pool(cpus=8), id=f"0{n}", created_at=at(-9 + n)) for n in range(9)]
    job = a_job(a_pool(cpus=8))
    eta = seen(a_world(*ahead, job, past=ended(HOLDER, 300)), job)
    assert (eta.likely, eta.between, eta.latest) == (None, None, None)
    assert eta.earliest >= NOW
    assert "too far to see" in eta.basis
    assert "too differently" not in eta.basis


def test_the_past_is_that_of_the_same_name_in_the_same_project():
    past = history_of([*ended(HOLDER, 10), *ended(replace(HOLDER, project="other"), 20)])
    assert past.of(HOLDER) == (seconds(10),)


def test_or_else_that_of_the_same_program():
    renamed = replace(HOLDER, display_name="new")
    another = replace(renamed, spec=replace(HOLDER.spec, pools=(replace(a_pool(), args=("--other",)),)))
    past = history_of(ended(HOLDER, 10))
    assert past.of(renamed) == (seconds(10),)
    assert past.of(another) == ()


def others(*lengths: float) -> list[Job]:
    """Other jobs of the project, each of another name."""
    return [replace(item, display_name=f"{item.id}", spec=OTHER) for item in ended(HOLDER, *lengths)]


def test_or_else_it_is_guessed_from_other_jobs_of_the_project_each_name_once():
    job = a_job()
    again = [replace(item, display_name="many", spec=OTHER) for item in ended(HOLDER, *range(500, 520))]
    eta = seen(a_world(job, past=[*others(300, 900), *again]), job)
    assert (eta.earliest, eta.between, eta.latest) == (NOW, (at(300), at(900)), at(3630))
    assert "'job-h': guessed from other jobs of the same project." in eta.basis


def test_jobs_that_still_run_show_that_some_take_long():
    job, long = a_job(), replace(running(a_job(id="long", scheduling=HOUR)), spec=OTHER)
    long = replace(long, status=replace(long.status, started_at=at(-900)))
    world = a_world(job)
    known = history_of(others(300, 310), (HOLDER, long), NOW)
    assert seen(replace(world, history=known), job).between == (at(300), at(2000))


def test_a_job_that_outlasts_all_like_it_is_guessed_from_others_that_took_as_long():
    job = a_job()
    eta = seen(a_world(job, past=[*ended(HOLDER, 50, 60), *others(300)]), job)
    assert (eta.earliest, eta.likely) == (NOW, at(300))
    assert "guessed from other jobs" in eta.basis


def test_what_was_cancelled_or_never_ran_tells_nothing():
    never = replace(a_job(), status=replace(a_job().status, state=JobState.FAILED, ended_at=at(9)))
    assert history_of([*ended(HOLDER, 10, state=JobState.CANCELLED), never]) == History()


def test_a_failed_one_counts():
    assert history_of(ended(HOLDER, 10, state=JobState.FAILED)).of(HOLDER) == (seconds(10),)


@pytest.mark.parametrize("job", [cancelled(HOLDER, at(90)), closing(HOLDER, Outcome.FAILED, since=at(90))])
def test_a_job_that_is_being_stopped_is_gone_soon(job: Job):
    left = rest(history_of(ended(HOLDER, 3000)), job, NOW)
    assert (left.least, left.likely, left.most) == (timedelta(), timedelta(), seconds(20))


def test_a_job_that_is_tried_again_is_not():
    assert rest(History(), closing(HOLDER, Outcome.RETRY), NOW).most == seconds(3530)


def test_a_job_past_its_timeout_has_its_grace():
    assert rest(History(), HOLDER, at(9999)).most == seconds(30)


def test_times_are_counted_from_now_for_a_job_that_would_start_now():
    waiting = a_job(scheduling=HOUR)
    left = rest(history_of(ended(running(waiting), 500)), waiting, T0)
    assert (left.least, left.likely, left.most) == (seconds(500), seconds(500), seconds(3630))


def test_several_jobs_have_the_times_that_each_has_alone():
    jobs = [
        a_job(a_pool(cpus=4), id=str(number), created_at=at(number), scheduling=HOUR) for number in range(6)
    ]
    world = a_world(*jobs, past=ended(HOLDER, 50, 200, 300, 400))
    assert foresee_several(world, jobs) == {job.id: seen(world, job) for job in jobs}


def test_of_several_jobs_one_that_can_never_start_has_no_time():
    strict = Snapshot(nodes=(a_node(),), held=(FULL,), fit=Fit.STRICT)
    large, small = a_job(a_pool(cpus=99), id="l"), a_job(id="s")
    assert set(foresee_several(replace(a_world(large, small), snapshot=strict), (large, small))) == {"s"}

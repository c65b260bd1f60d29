"""One step of a study, and many of them: what becomes of its trials, and when it ends."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.builders import at, seconds
from tests.studies.study_builders import (
    a_study,
    a_trial,
    active,
    advanced,
    asked,
    done,
    failed,
    job_of,
    measured,
    report,
    stopping,
)
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Failure, JobState
from trainshed.core.tuning.advance import StudyPlan, TrialFacts, advance, chosen, completed
from trainshed.core.tuning.measurement import Measurement
from trainshed.core.tuning.stopping_rule import StoppingKind, StoppingRule
from trainshed.core.tuning.study import (
    RuntimeLimit,
    Selection,
    Study,
    StudyLimits,
    StudyState,
    StudyStopping,
    Trial,
    TrialState,
)
from trainshed.core.tuning.suggestion_port import Objective

NOW = at(100)
FINAL = (StudyState.SUCCEEDED, StudyState.FAILED, StudyState.CANCELLED)


def step(study: Study, *trials: Trial, facts: Mapping[int, TrialFacts] | None = None) -> StudyPlan:
    return advance(study, trials, facts or {}, NOW)


def judged(study: Study, trial: Trial, facts: TrialFacts) -> Trial:
    """The trial after one step."""
    plan = step(study, trial, facts={trial.number: facts})
    return plan.changed[0] if plan.changed else trial


def ended_as(study: Study, *trials: Trial) -> StudyPlan:
    """The first step, which must end the study or begin to."""
    plan = step(study, *trials)
    assert plan.status.state is StudyState.STOPPING
    return plan


# ---- what is suggested and launched


def test_a_new_study_asks_for_as_many_points_as_may_run_at_once() -> None:
    assert step(a_study(trials=10, parallel=3)).wanted == 3


def test_no_more_points_are_asked_for_than_trials_are_left() -> None:
    study = a_study(trials=4, parallel=3)
    assert step(study, done(1), done(2), done(3)).wanted == 1
    assert step(study, done(1), done(2), active(3)).wanted == 1


def test_trials_that_wait_or_end_take_the_place_of_new_ones() -> None:
    study = a_study(trials=10, parallel=3)
    facts = {2: TrialFacts(job=job_of(2)), 3: TrialFacts(job=job_of(3))}
    assert step(study, a_trial(1), active(2), stopping(3), facts=facts).wanted == 0


def test_requested_trials_are_launched_in_order_as_far_as_there_is_room() -> None:
    study = a_study(trials=10, parallel=2)
    plan = step(study, active(1), a_trial(2), a_trial(3), facts={1: TrialFacts(job=job_of(1))})
    assert [trial.number for trial in plan.launch] == [2]
    assert plan.wanted == 0


def test_a_trial_that_is_being_stopped_still_takes_its_place() -> None:
    study = a_study(trials=10, parallel=1)
    plan = step(study, stopping(1), a_trial(2), facts={1: TrialFacts(job=job_of(1))})
    assert plan.launch == ()
    assert [trial.number for trial in plan.stop] == [1]


def test_given_trials_are_launched_like_all_others() -> None:
    plan = step(a_study(parallel=2), a_trial(1, is_given=True), a_trial(2, is_given=True))
    assert [trial.number for trial in plan.launch] == [1, 2]


def test_a_study_whose_space_is_exhausted_asks_for_no_point() -> None:
    study = a_study(trials=10, parallel=2, is_exhausted=True)
    assert step(study, done(1), active(2), facts={2: TrialFacts(job=job_of(2))}).wanted == 0


def test_a_study_runs_once_its_first_trial_has_a_job() -> None:
    study = a_study(state=StudyState.PENDING)
    assert step(study, a_trial(1)).status.state is StudyState.PENDING
    plan = step(study, active(1), facts={1: TrialFacts(job=job_of(1))})
    assert plan.status.state is StudyState.RUNNING
    assert plan.status.started_at == NOW


def test_nothing_is_launched_suggested_or_stopped_in_a_step_that_changes_something() -> None:
    plan = step(
        a_study(parallel=3),
        active(1),
        a_trial(2),
        facts={1: TrialFacts(job=job_of(1, JobState.SUCCEEDED), report=report(0.5))},
    )
    assert plan.changed
    assert (plan.launch, plan.stop, plan.wanted) == ((), (), 0)
    assert plan.again_at == NOW


# ---- how trials end


def test_a_trial_whose_job_succeeds_counts_with_its_last_measurement() -> None:
    job = job_of(1, JobState.SUCCEEDED, ended_at=at(50))
    trial = judged(a_study(), active(1), TrialFacts(job=job, report=report(0.9, 0.5)))
    assert trial.state is TrialState.SUCCEEDED
    assert trial.final == Measurement(2, 2.0, {"accuracy": 0.5})
    assert trial.ended_at == at(50)
    assert trial.measurements == report(0.9, 0.5).measurements


def test_a_trial_counts_with_its_best_measurement_where_the_study_says_so() -> None:
    job = job_of(1, JobState.SUCCEEDED)
    facts = TrialFacts(job=job, report=report(0.2, 0.9, 0.5))
    assert judged(a_study(selection=Selection.BEST), active(1), facts).final == Measurement(
        2, 2.0, {"accuracy": 0.9}
    )
    low = a_study(selection=Selection.BEST, objectives=(Objective("accuracy"),))
    assert judged(low, active(1), facts).final == Measurement(1, 1.0, {"accuracy": 0.2})


def test_a_trial_that_reported_nothing_is_infeasible_though_its_job_succeeded() -> None:
    trial = judged(a_study(), active(1), TrialFacts(job=job_of(1, JobState.SUCCEEDED), report=report()))
    assert trial.state is TrialState.INFEASIBLE
    assert "accuracy" in trial.infeasible


def test_a_trial_that_lacks_one_of_two_metrics_is_infeasible() -> None:
    study = a_study(objectives=(Objective("accuracy", maximize=True), Objective("cost")))
    facts = TrialFacts(job=job_of(1, JobState.SUCCEEDED), report=report(0.5))
    assert judged(study, active(1), facts).state is TrialState.INFEASIBLE


def test_metrics_that_were_reported_at_different_steps_count_together() -> None:
    study = a_study(objectives=(Objective("accuracy", maximize=True), Objective("cost")))
    measurements = (Measurement(1, 1.0, {"cost": 3.0}), Measurement(2, 2.0, {"accuracy": 0.5}))
    assert chosen(measurements, study, Selection.LAST) == Measurement(2, 2.0, {"cost": 3.0, "accuracy": 0.5})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_trial_whose_last_value_is_no_number_is_infeasible(value: float) -> None:
    facts = TrialFacts(job=job_of(1, JobState.SUCCEEDED), report=report(0.5, value))
    trial = judged(a_study(), active(1), facts)
    assert trial.state is TrialState.INFEASIBLE
    assert trial.infeasible == f"accuracy was {value} at step 2."
    assert trial.final is None


def test_the_best_measurement_is_a_number_where_there_is_one() -> None:
    facts = TrialFacts(job=job_of(1, JobState.SUCCEEDED), report=report(math.nan, 0.5, math.nan))
    trial = judged(a_study(selection=Selection.BEST), active(1), facts)
    assert trial.final == Measurement(2, 2.0, {"accuracy": 0.5})


def test_a_trial_whose_job_fails_is_infeasible_for_the_same_reason() -> None:
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="It exited with 3.")
    job = job_of(1, JobState.FAILED, failure=failure, ended_at=at(7))
    trial = judged(a_study(), active(1), TrialFacts(job=job, report=report(0.5)))
    assert (trial.state, trial.infeasible) == (TrialState.INFEASIBLE, "It exited with 3.")
    assert trial.measurements == report(0.5).measurements
    assert trial.ended_at == at(7)


def test_a_trial_whose_job_somebody_cancelled_is_infeasible() -> None:
    trial = judged(a_study(), active(1), TrialFacts(job=job_of(1, JobState.CANCELLED), report=report(0.5)))
    assert (trial.state, trial.infeasible) == (TrialState.INFEASIBLE, "Its job was cancelled.")


def test_a_trial_whose_job_was_deleted_is_infeasible() -> None:
    trial = judged(a_study(), active(1), TrialFacts(job=None))
    assert (trial.state, trial.ended_at) == (TrialState.INFEASIBLE, NOW)
    assert "deleted" in trial.infeasible


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.FAILED, JobState.SUCCEEDED])
def test_a_trial_that_was_stopped_counts_with_its_last_measurement_however_its_job_ended(
    state: JobState,
) -> None:
    trial = judged(a_study(), stopping(1), TrialFacts(job=job_of(1, state), report=report(0.2, 0.4)))
    assert trial.state is TrialState.SUCCEEDED
    assert trial.final == Measurement(2, 2.0, {"accuracy": 0.4})


def test_a_trial_that_was_stopped_before_it_reported_is_infeasible() -> None:
    facts = TrialFacts(job=job_of(1, JobState.CANCELLED), report=report())
    trial = judged(a_study(), stopping(1), facts)
    assert trial.state is TrialState.INFEASIBLE
    assert "stopped before it reported accuracy" in trial.infeasible


def test_a_trial_that_is_stopped_while_its_job_waits_had_not_begun() -> None:
    waits = a_trial(1, state=TrialState.STOPPING, job=job_of(1).id, stopped="It was cancelled.")
    facts = TrialFacts(job=job_of(1, JobState.CANCELLED, started_at=None))
    assert judged(a_study(), waits, facts).infeasible == "It had not begun. It was cancelled."


def test_a_trial_has_the_measurements_and_the_start_of_its_job_while_it_runs() -> None:
    job = job_of(1, JobState.RUNNING, started_at=at(3))
    trial = judged(a_study(), active(1, started_at=None), TrialFacts(job=job, report=report(0.1)))
    assert trial.state is TrialState.ACTIVE
    assert trial.started_at == at(3)
    assert trial.measurements == report(0.1).measurements


def test_a_very_long_reason_is_cut() -> None:
    failure = Failure(reason=Reason.PROGRAM_FAILED, message="x" * 5000)
    job = job_of(1, JobState.FAILED, failure=failure)
    assert len(judged(a_study(), active(1), TrialFacts(job=job)).infeasible) == 1000


# ---- jobs that were submitted without a note of it


def test_a_job_that_was_submitted_before_the_study_was_cancelled_is_found_and_stopped() -> None:
    study = a_study(state=StudyState.STOPPING, outcome=StudyState.CANCELLED)
    plan = step(study, a_trial(1), facts={1: TrialFacts(job=job_of(1, JobState.RUNNING))})
    assert plan.changed[0].job == job_of(1).id
    assert plan.changed[0].state is TrialState.STOPPING
    assert plan.status.state is StudyState.STOPPING


def test_a_waiting_trial_of_a_study_that_ends_is_infeasible() -> None:
    study = a_study(state=StudyState.STOPPING, outcome=StudyState.CANCELLED, message="It was cancelled.")
    plan = step(study, a_trial(1), facts={1: TrialFacts()})
    assert plan.changed[0].infeasible == "It had not begun when the study ended. It was cancelled."
    assert plan.status.state is StudyState.CANCELLED


def test_a_waiting_trial_that_is_stopped_is_infeasible_once_it_is_known_to_have_no_job() -> None:
    waits = a_trial(1, state=TrialState.STOPPING, stopped="Its end was asked for.")
    assert step(a_study(), waits).changed == ()
    trial = judged(a_study(), waits, TrialFacts())
    assert trial.infeasible == "It had not begun. Its end was asked for."
    assert judged(a_study(), waits, TrialFacts(job=job_of(1))).job == job_of(1).id


# ---- early stops


WATCHED = StoppingRule(kind=StoppingKind.MEDIAN)
MIDDLING = replace(done(9, 0.5), measurements=report(0.5, 0.5).measurements)  # with which others are compared


def test_a_trial_that_its_rule_ends_is_stored_as_stopping_before_its_job_is_stopped() -> None:
    study = a_study(parallel=3, trial_stopping=WATCHED)
    trials = (active(1, values=(0.2,)), active(2, values=(0.7,)), active(3), MIDDLING)
    facts = {t.number: TrialFacts(job=job_of(t.number, JobState.RUNNING), report=measured(t)) for t in trials}
    plan = step(study, *trials, facts=facts)
    assert [(t.number, t.state) for t in plan.changed] == [(1, TrialState.STOPPING)]
    assert "0.2, is worse than 0.5" in plan.changed[0].stopped
    assert plan.stop == ()
    after = (plan.changed[0], *trials[1:])
    assert [t.number for t in step(study, *after, facts=facts).stop] == [1]


def test_trials_of_a_study_that_drains_may_still_be_stopped_early() -> None:
    study = a_study(state=StudyState.STOPPING, drains=True, trial_stopping=WATCHED)
    trials = (active(1, values=(0.2,)), active(2, values=(0.7,)), MIDDLING)
    facts = {t.number: TrialFacts(job=job_of(t.number, JobState.RUNNING), report=measured(t)) for t in trials}
    assert [t.number for t in step(study, *trials, facts=facts).changed] == [1]


def test_trials_that_may_be_stopped_early_are_looked_at_more_often() -> None:
    facts = {1: TrialFacts(job=job_of(1))}
    watched = step(a_study(trial_stopping=WATCHED), active(1), facts=facts).again_at
    shown = step(a_study(), active(1), facts=facts).again_at
    assert watched is not None and shown is not None
    assert NOW < watched < shown


def looks_after(silence: float, *, is_hinted: bool) -> timedelta:
    """The time to the next look at a trial that reported so many seconds ago."""
    last = (NOW - at(0)).total_seconds() - silence
    measurement = Measurement(elapsed=last, step=1, values={"accuracy": 0.5})
    trial = replace(active(1), measurements=(measurement,))
    facts = {1: TrialFacts(job=job_of(1, JobState.RUNNING), is_hinted=is_hinted)}
    again_at = step(a_study(trial_stopping=WATCHED), trial, facts=facts).again_at
    assert again_at is not None
    return again_at - NOW


def test_a_trial_that_gives_no_hints_is_looked_at_soon_after_a_report_and_later_in_silence() -> None:
    just_now, later, at_last = (looks_after(silence, is_hinted=False) for silence in (0.1, 8, 60))
    assert just_now < later < at_last
    assert just_now <= timedelta(seconds=0.3)
    assert later == timedelta(seconds=1)


def test_a_trial_that_hints_is_looked_at_no_more_often_than_a_silent_one() -> None:
    assert looks_after(0.1, is_hinted=True) == looks_after(60, is_hinted=False)


# ---- how a study ends


def test_a_study_succeeds_when_all_its_trials_have_ended() -> None:
    plan = ended_as(a_study(trials=2), done(1), failed(2))
    assert plan.status.outcome is StudyState.SUCCEEDED
    study = advanced(a_study(trials=2), done(1), failed(2))
    assert study.status.state is StudyState.SUCCEEDED
    assert study.status.message == "All 2 trials have ended."
    assert study.status.ended_at == NOW
    assert study.status.outcome is None


def test_a_study_of_which_no_trial_succeeded_has_failed() -> None:
    status = advanced(a_study(trials=2), failed(1), failed(2)).status
    assert status.state is StudyState.FAILED
    assert "None of them succeeded. The last one: It failed." in status.message


def test_a_study_whose_space_is_exhausted_ends_with_its_last_trial() -> None:
    study = a_study(trials=10, is_exhausted=True)
    facts = {2: TrialFacts(job=job_of(2))}
    assert step(study, done(1), active(2), facts=facts).status.state is StudyState.RUNNING
    status = advanced(study, done(1), done(2)).status
    assert (status.state, status.message) == (
        StudyState.SUCCEEDED,
        "All 2 points of its search space were tried.",
    )


def test_a_study_goes_on_while_a_trial_runs_though_enough_have_ended() -> None:
    plan = step(a_study(trials=2), done(1), active(2), facts={2: TrialFacts(job=job_of(2))})
    assert plan.status.state is StudyState.RUNNING


def test_a_study_fails_at_its_limit_of_failed_trials() -> None:
    study = a_study(trials=10, max_failed=2)
    assert step(study, done(1), failed(2)).status.state is StudyState.RUNNING
    plan = ended_as(study, done(1), failed(2), failed(3))
    assert plan.status.outcome is StudyState.FAILED
    assert plan.status.message == "2 of 3 trials failed. The last one, 3: It failed."


def test_a_study_whose_first_five_trials_all_fail_has_failed() -> None:
    study = a_study(trials=100)
    assert step(study, *(failed(n) for n in range(1, 5))).status.state is StudyState.RUNNING
    assert ended_as(study, *(failed(n) for n in range(1, 6))).status.outcome is StudyState.FAILED


def test_a_study_in_which_more_than_half_fail_has_failed_only_after_twenty_failures() -> None:
    study = a_study(trials=100)
    trials = [done(n) for n in range(1, 20)] + [failed(n) for n in range(20, 39)]
    assert step(study, *trials).status.state is StudyState.RUNNING
    assert ended_as(study, *trials, failed(39)).status.outcome is StudyState.FAILED
    assert step(study, *trials, failed(39), done(40)).status.state is StudyState.RUNNING


def test_trials_that_run_are_stopped_when_too_many_failed() -> None:
    study = a_study(trials=10, max_failed=1, parallel=2)
    facts = {2: TrialFacts(job=job_of(2, JobState.RUNNING))}
    first = step(study, failed(1), active(2), facts=facts)
    assert not first.status.drains
    second = step(replace(study, status=first.status), failed(1), active(2), facts=facts)
    assert [(t.number, t.state) for t in second.changed] == [(2, TrialState.STOPPING)]


# ---- its own rules


def rules(**given: object) -> Study:
    return a_study(trials=100, parallel=4, stopping=StudyStopping(**given))  # type: ignore[arg-type]


def test_a_study_ends_when_as_many_trials_have_ended_as_it_allows() -> None:
    study = rules(most_trials=3)
    assert step(study, done(1), done(2)).wanted == 1
    status = advanced(study, done(1), done(2), done(3)).status
    assert (status.state, status.message) == (
        StudyState.SUCCEEDED,
        "3 trials have ended: its maxNumTrials.",
    )


def test_trials_that_run_may_finish_when_a_rule_ends_their_study() -> None:
    study = rules(most_runtime=RuntimeLimit(length=seconds(100)))
    facts = {2: TrialFacts(job=job_of(2, JobState.RUNNING))}
    first = step(study, done(1), active(2), facts=facts)
    assert first.status.state is StudyState.STOPPING
    assert first.status.drains
    drains = replace(study, status=first.status)
    second = step(drains, done(1), active(2), a_trial(3), facts={**facts, 3: TrialFacts()})
    assert [(t.number, t.state) for t in second.changed] == [(3, TrialState.INFEASIBLE)]
    assert step(drains, done(1), active(2), facts=facts).stop == ()
    assert step(drains, done(1), active(2), facts=facts).wanted == 0
    end = step(drains, done(1), done(2))
    assert end.status.state is StudyState.SUCCEEDED
    assert not end.status.drains


def test_trials_that_run_are_stopped_when_a_rule_ends_their_study_as_soon_as_possible() -> None:
    study = rules(asap=True, most_runtime=RuntimeLimit(length=seconds(100)))
    facts = {1: TrialFacts(job=job_of(1, JobState.RUNNING))}
    first = step(study, active(1), facts=facts)
    second = step(replace(study, status=first.status), active(1), facts=facts)
    assert [t.state for t in second.changed] == [TrialState.STOPPING]
    assert "maximumRuntimeConstraint" in second.changed[0].stopped


def test_as_soon_as_possible_alone_ends_nothing() -> None:
    assert step(rules(asap=True)).status.state is StudyState.RUNNING


def test_time_is_counted_from_the_creation_of_the_study() -> None:
    before = rules(most_runtime=RuntimeLimit(length=seconds(101)))
    assert step(before, done(1)).status.state is StudyState.RUNNING
    ended_as(rules(most_runtime=RuntimeLimit(length=seconds(100))), done(1))
    ended_as(rules(most_runtime=RuntimeLimit(end_at=NOW)), done(1))
    assert step(rules(most_runtime=RuntimeLimit(end_at=at(101)))).status.state is StudyState.RUNNING


def test_the_least_rules_come_before_all_others() -> None:
    most = {"most_trials": 1}
    assert step(rules(least_trials=2, **most), done(1)).status.state is StudyState.RUNNING
    assert step(rules(least_trials=2, **most), done(1)).wanted == 4
    ended_as(rules(least_trials=2, **most), done(1), done(2))
    young = rules(least_runtime=RuntimeLimit(length=seconds(101)), **most)
    plan = step(young, done(1))
    assert plan.status.state is StudyState.RUNNING
    assert plan.again_at is not None
    ended_as(rules(least_runtime=RuntimeLimit(length=seconds(100)), **most), done(1))


def test_a_study_without_progress_ends() -> None:
    study = rules(trials_without_progress=2)
    better = (done(1, 0.1), done(2, 0.2), failed(3))
    assert step(study, *better).status.state is StudyState.RUNNING
    plan = ended_as(study, *better, done(4, 0.2))
    assert plan.status.message == "2 trials in a row brought nothing better."
    assert step(study, *better, done(4, 0.3)).status.state is StudyState.RUNNING
    ended_as(study, failed(1), failed(2))


def test_progress_is_counted_in_the_order_in_which_trials_end() -> None:
    study = rules(trials_without_progress=2)
    late = done(1, 0.5, ended_at=at(50))  # as good as the first, but later
    trials = (late, done(2, 0.5, ended_at=at(10)), done(3, 0.1, ended_at=at(20)))
    ended_as(study, *trials)


def test_a_study_ends_when_nothing_better_came_for_long_enough() -> None:
    study = rules(time_without_progress=seconds(30))
    assert step(study, done(1, 0.5, ended_at=at(71))).status.state is StudyState.RUNNING
    plan = ended_as(study, done(1, 0.5, ended_at=at(70)), done(2, 0.4, ended_at=at(99)))
    assert plan.status.message == "Nothing better came in 30 s."
    assert step(study, done(1, 0.5, ended_at=at(71))).again_at is not None


def looks_in(study: Study, *trials: Trial, facts: Mapping[int, TrialFacts] | None = None) -> float:
    """Seconds until the study looks again though nobody hints."""
    again_at = step(study, *trials, facts=facts).again_at
    assert again_at is not None
    return (again_at - NOW).total_seconds()


def test_a_study_looks_again_at_the_moment_at_which_a_rule_of_time_is_reached() -> None:
    soon = RuntimeLimit(length=seconds(103.5))
    running = {1: TrialFacts(job=job_of(1, JobState.RUNNING))}
    assert looks_in(rules(most_runtime=soon), active(1), facts=running) == 3.5
    assert looks_in(rules(most_runtime=RuntimeLimit(end_at=at(102))), active(1), facts=running) == 2
    assert looks_in(rules(least_runtime=soon, most_trials=1), done(1)) == 3.5
    idle = rules(time_without_progress=seconds(30))
    assert looks_in(idle, done(1, 0.5, ended_at=at(75)), done(2, 0.5, ended_at=at(90))) == 5
    both = rules(least_runtime=soon, most_runtime=RuntimeLimit(length=seconds(160)))
    assert looks_in(both) == 3.5


def test_a_rule_of_time_that_is_reached_already_makes_no_study_look_again() -> None:
    past = RuntimeLimit(length=seconds(50))
    assert step(rules(least_trials=1, most_runtime=past)).again_at is None


def test_a_study_may_have_a_time_limit_that_no_calendar_reaches() -> None:
    age = RuntimeLimit(length=timedelta(seconds=999_999_999_999))
    assert 0 < looks_in(rules(most_runtime=age)) <= 3600


def test_progress_means_nothing_where_there_are_several_objectives() -> None:
    study = replace(rules(trials_without_progress=1))
    two = replace(study.spec, objectives=(Objective("accuracy", maximize=True), Objective("cost")))
    assert step(replace(study, spec=two), failed(1), failed(2)).status.state is StudyState.RUNNING


# ---- stop, cancel, go on


@pytest.mark.parametrize("outcome", [StudyState.CANCELLED, StudyState.SUCCEEDED])
def test_a_study_that_is_asked_to_end_stops_its_trials_and_waits_for_them(outcome: StudyState) -> None:
    study = a_study(parallel=2, state=StudyState.STOPPING, outcome=outcome)
    running = {1: TrialFacts(job=job_of(1, JobState.RUNNING), report=report(0.5))}
    first = step(study, active(1, values=(0.5,)), facts=running)
    assert first.changed[0].state is TrialState.STOPPING
    second = step(study, *first.changed, facts=running)
    assert [t.number for t in second.stop] == [1]
    assert second.status.state is StudyState.STOPPING
    ended = {1: TrialFacts(job=job_of(1, JobState.CANCELLED), report=report(0.5))}
    third = step(study, *first.changed, facts=ended)
    assert third.changed[0].state is TrialState.SUCCEEDED
    assert third.status.state is outcome
    assert third.status.ended_at == NOW


def test_a_study_that_ends_suggests_and_launches_nothing() -> None:
    study = a_study(parallel=5, state=StudyState.STOPPING, outcome=StudyState.SUCCEEDED)
    plan = step(study, stopping(1), facts={1: TrialFacts(job=job_of(1, JobState.CANCELLING))})
    assert (plan.launch, plan.wanted) == ((), 0)


@pytest.mark.parametrize("state", FINAL)
def test_a_study_that_has_ended_is_left_alone(state: StudyState) -> None:
    study = a_study(state=state)
    plan = step(study, active(1), a_trial(2), facts={1: TrialFacts(job=job_of(1, JobState.SUCCEEDED))})
    assert plan == StudyPlan(status=study.status)


def test_a_study_that_goes_on_with_a_higher_limit_asks_for_more() -> None:
    study = replace(a_study(state=StudyState.RUNNING), limits=StudyLimits(trials=4, parallel=2))
    assert step(study, done(1), done(2)).wanted == 2


def test_a_study_that_goes_on_with_the_same_limit_ends_again() -> None:
    assert advanced(a_study(trials=2), done(1), done(2)).status.state is StudyState.SUCCEEDED


# ---- trials that clients run


def test_a_study_of_clients_suggests_and_launches_nothing_by_itself() -> None:
    plan = step(asked(), a_trial(1), active(2, client="a", job=""))
    assert (plan.changed, plan.launch, plan.stop, plan.wanted) == ((), (), (), 0)
    assert plan.again_at is None


def test_a_study_of_clients_ends_at_once_and_its_open_trials_may_be_completed_later() -> None:
    study = asked(most_trials=1)
    open_one = active(2, client="a", job="")
    plan = ended_as(study, done(1), open_one, a_trial(3))
    after = step(replace(study, status=plan.status), done(1), open_one, a_trial(3))
    assert after.status.state is StudyState.SUCCEEDED
    assert [(t.number, t.state) for t in after.changed] == [(3, TrialState.INFEASIBLE)]


def test_clients_are_told_to_stop_when_their_study_ends_as_soon_as_possible() -> None:
    study = asked(most_trials=1, asap=True)
    open_one = active(2, client="a", job="")
    plan = ended_as(study, done(1), open_one)
    after = step(replace(study, status=plan.status), done(1), open_one)
    assert [(t.number, t.state) for t in after.changed] == [(2, TrialState.STOPPING)]
    assert after.status.state is StudyState.SUCCEEDED


def test_a_study_of_clients_does_not_fail_because_its_trials_do() -> None:
    assert step(asked(), *(failed(n) for n in range(1, 30))).status.state is StudyState.RUNNING
    exhausted = replace(asked(), status=replace(asked().status, is_exhausted=True))
    assert advanced(exhausted, failed(1)).status.state is StudyState.SUCCEEDED


def test_a_study_of_clients_with_a_time_limit_is_looked_at_before_the_first_trial() -> None:
    study = replace(asked(), spec=replace(asked().spec, stopping=StudyStopping()))
    timed = StudyStopping(most_runtime=RuntimeLimit(length=timedelta(days=1)))
    assert step(study).again_at is None
    assert step(replace(study, spec=replace(study.spec, stopping=timed))).again_at is not None


def test_a_final_measurement_that_a_client_gives_counts_whatever_the_selection() -> None:
    study = a_study(selection=Selection.BEST)
    final = Measurement(9, 9.0, {"accuracy": 0.1})
    trial = completed(study, active(1, values=(0.9,)), NOW, final=final)
    assert (trial.state, trial.final) == (TrialState.SUCCEEDED, final)


WAITS = Waiting(reason=Reason.WAITS_FOR_SHARE, message="Its share is too small.")


def test_a_study_waits_for_its_share_only_while_a_trial_could_begin() -> None:
    study = a_study(trials=3, waiting=WAITS)
    assert step(study, done(1), a_trial(2)).status.waiting == WAITS
    assert step(study, done(1)).status.waiting is None, "no trial is to begin"
    assert step(study, active(1), a_trial(2)).status.waiting is None, "one at a time"


def test_a_study_that_ends_waits_for_nothing() -> None:
    study = a_study(trials=1, waiting=WAITS, state=StudyState.STOPPING, outcome=StudyState.CANCELLED)
    assert step(study, a_trial(1)).status.waiting is None
    study = a_study(max_failed=1, waiting=WAITS)
    assert step(study, failed(1), a_trial(2)).status.waiting is None

"""Studies and trials for tests, ready made: name only what the test is about."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from tests.builders import T0, a_job, a_pool, at
from trainshed.core.jobs.job import Job, JobSpec, JobState, Status
from trainshed.core.tuning.advance import TrialFacts, advance
from trainshed.core.tuning.measurement import Measurement, TrialReport
from trainshed.core.tuning.search_space import Parameter, ParameterKind, SearchSpace
from trainshed.core.tuning.stopping_rule import StoppingRule
from trainshed.core.tuning.study import (
    Selection,
    Study,
    StudyKind,
    StudyLimits,
    StudySpec,
    StudyState,
    StudyStatus,
    StudyStopping,
    Trial,
    TrialState,
)
from trainshed.core.tuning.suggestion_port import Objective

SPACE = SearchSpace((Parameter(id="lr", kind=ParameterKind.DOUBLE, low=0.0, high=1.0),))
ACCURACY = Objective("accuracy", maximize=True)


def a_study(
    *,
    trials: int = 10,
    parallel: int = 1,
    max_failed: int = 0,
    objectives: tuple[Objective, ...] = (ACCURACY,),
    selection: Selection = Selection.LAST,
    stopping: StudyStopping | None = None,
    trial_stopping: StoppingRule | None = None,
    **status: object,
) -> Study:
    """A study that has begun; `status` are fields of its status."""
    begun = StudyStatus(state=StudyState.RUNNING, started_at=T0)
    return Study(
        id="7",
        project="shed",
        location="here",
        display_name="study",
        spec=StudySpec(
            space=SPACE,
            objectives=objectives,
            selection=selection,
            stopping=stopping or StudyStopping(),
            trial_stopping=trial_stopping,
        ),
        created_at=T0,
        seed=1,
        template=JobSpec(pools=(a_pool(),)),
        limits=StudyLimits(trials=trials, parallel=parallel, failed=max_failed),
        status=replace(begun, **status),
        version=1,
    )


def asked(most_trials: int = 0, asap: bool = False) -> Study:
    """A study whose trials clients run."""
    study = a_study(stopping=StudyStopping(most_trials=most_trials, asap=asap))
    return replace(study, kind=StudyKind.ASKED, template=None)


def a_trial(number: int = 1, **changes: object) -> Trial:
    """One that waits."""
    trial = Trial(study="7", number=number, point={"lr": number / 100}, requested_at=T0)
    return replace(trial, **changes)


def active(number: int = 1, *, values: tuple[float, ...] = (), **changes: object) -> Trial:
    given = {"state": TrialState.ACTIVE, "job": job_of(number).id, "started_at": T0, **changes}
    return a_trial(number, measurements=report(*values).measurements, **given)


def stopping(number: int = 1, why: str = "It is slow.") -> Trial:
    return replace(active(number), state=TrialState.STOPPING, stopped=why)


def done(number: int = 1, value: float = 0.5, ended_at: datetime | None = None) -> Trial:
    final = Measurement(1, 1.0, {"accuracy": value})
    return replace(active(number), state=TrialState.SUCCEEDED, final=final, ended_at=ended_at or at(number))


def failed(number: int = 1, why: str = "It failed.") -> Trial:
    return replace(active(number), state=TrialState.INFEASIBLE, infeasible=why, ended_at=at(number))


def job_of(number: int, state: JobState = JobState.RUNNING, **status: object) -> Job:
    """The job of a trial."""
    begun = Status(state=state, started_at=T0)
    return a_job(id=f"job-{number}", status=replace(begun, **status))


def report(*values: float) -> TrialReport:
    """A value of accuracy for each step."""
    return TrialReport(
        measurements=tuple(
            Measurement(step, float(step), {"accuracy": value}) for step, value in enumerate(values, 1)
        )
    )


def measured(trial: Trial) -> TrialReport:
    return TrialReport(measurements=trial.measurements)


def advanced(study: Study, *trials: Trial, facts: Mapping[int, TrialFacts] | None = None) -> Study:
    """The study after all steps that change something."""
    now = at(100)
    while True:
        plan = advance(study, trials, facts or {}, now)
        if not plan.changed and plan.status == study.status:
            return study
        by_number = {trial.number: trial for trial in plan.changed}
        trials = tuple(by_number.get(trial.number, trial) for trial in trials)
        study = replace(study, status=plan.status)

"""One step of a study: what its trials have become, which to start, which to stop, how many to suggest. Pure.

`control/studies.py` calls `advance` until nothing changes. As in `core/jobs/decide.py`, actions follow from
what is stored: a trial that is stored as REQUESTED is launched, one that is stored as STOPPING is stopped. A
new decision only changes what is stored. So a server that dies between two lines decides the same again.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from trainshed.core.jobs.job import Job, JobState
from trainshed.core.tuning.early_stop import early_stops
from trainshed.core.tuning.measurement import Measurement, TrialReport, missing_sentence
from trainshed.core.tuning.study import Selection, Study, StudyState, StudyStatus, Trial, TrialState
from trainshed.core.tuning.study_end import is_better, room_left, study_end, time_to_rule

SOON = timedelta(seconds=0.25)  # between looks at trials that may be stopped early and have just reported
WATCHED = timedelta(seconds=2)  # ... that have not reported for a while, or hint when they do
PATIENCE = 8  # a look comes after this part of the time for which the trial has been silent
SHOWN = timedelta(seconds=10)  # between looks at trials that only somebody may want to see
LONGEST_WAIT = timedelta(hours=1)  # for a rule of time: it may be reached later than the last date there is
LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFacts:
    """What is known of a trial that is not final. The job of one that was launched is None when deleted.

    Of a trial without a job that is to end there must be facts: its job where the server died, or the study
    changed, after the job was submitted and before that was stored.
    """

    job: Job | None = None
    report: TrialReport | None = None
    is_hinted: bool = False  # somebody says when it has reported more


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    changed: tuple[Trial, ...] = ()  # to write
    status: StudyStatus
    launch: tuple[Trial, ...] = ()  # those that wait for their job
    stop: tuple[Trial, ...] = ()  # those whose job is to be cancelled
    wanted: int = 0  # how many new points to ask for
    again_at: datetime | None = None


def advance(
    study: Study, trials: Sequence[Trial], facts: Mapping[int, TrialFacts], now: datetime
) -> StudyPlan:
    """The next step. `trials` are all of them, by number; `facts` has those that are not final."""
    if study.is_final:
        return StudyPlan(status=study.status)
    judged = [t if t.is_final else _judged(study, t, facts.get(t.number), now) for t in trials]
    status = _status(study, judged, now)
    if study.status.state is StudyState.STOPPING:
        judged = [_ending(trial, status, now) for trial in judged]
        # Nobody can end what clients run: they may complete their trials later.
        if study.template is None or all(trial.is_final for trial in judged):
            state = status.outcome or StudyState.SUCCEEDED
            status = replace(status, state=state, outcome=None, drains=False, ended_at=now)
    if study.spec.trial_stopping is not None:
        judged = _stopped_early(study, judged)
    if status.waiting is not None and not _launched(replace(study, status=status), judged):
        status = replace(status, waiting=None)
    changed = tuple(new for new, old in zip(judged, trials, strict=True) if new != old)
    if changed or status != study.status:
        status = replace(status, updated_at=now)
        return StudyPlan(changed=changed, status=status, again_at=now)
    return StudyPlan(
        status=status,
        launch=_launched(study, trials),
        stop=tuple(trial for trial in trials if trial.state is TrialState.STOPPING and trial.job),
        wanted=_wanted(study, trials, now),
        again_at=_again_at(study, trials, facts, now),
    )


def _judged(study: Study, trial: Trial, known: TrialFacts | None, now: datetime) -> Trial:
    """The trial with what its job has become. Trials that clients run change only when they say so."""
    if study.template is None or known is None:
        return trial
    job = known.job
    if not trial.job:
        if job is None:
            is_stopped = trial.state is TrialState.STOPPING
            return infeasible(trial, f"It had not begun. {trial.stopped}", now) if is_stopped else trial
        state = TrialState.ACTIVE if trial.state is TrialState.REQUESTED else trial.state
        trial = replace(trial, job=job.id, state=state)
    if known.report is not None and not _are_same(known.report.measurements, trial.measurements):
        trial = replace(trial, measurements=known.report.measurements)
    if job is None:
        return _over(study, trial, known, "Its job was deleted before it ended.", now)
    if trial.started_at is None and job.status.started_at is not None:
        trial = replace(trial, started_at=job.status.started_at)
    if not job.is_final:
        return trial
    match job.status.state:
        case JobState.SUCCEEDED:
            trouble = ""
        case JobState.CANCELLED:
            trouble = "Its job was cancelled."
        case _:
            failure = job.status.failure
            trouble = failure.message if failure else "Its job failed."
    return _over(study, trial, known, trouble, job.status.ended_at or now)


def _are_same(left: Sequence[Measurement], right: Sequence[Measurement]) -> bool:
    """By their text: NaN does not equal itself, and what differs at each look would be written at each."""
    if len(left) != len(right):
        return False
    return all(a == b or repr(a) == repr(b) for a, b in zip(left, right, strict=True))


def _over(study: Study, trial: Trial, known: TrialFacts, trouble: str, at: datetime) -> Trial:
    """A trial whose job has ended. One that was stopped early counts with its last measurement."""
    if trouble and not trial.stopped:
        return infeasible(trial, trouble, at)
    return completed(study, trial, at, known.report)


def completed(
    study: Study,
    trial: Trial,
    at: datetime,
    report: TrialReport | None = None,
    final: Measurement | None = None,
) -> Trial:
    """The trial with the measurement that counts; INFEASIBLE where there is none that could.

    A `final` one that is given counts; it has all metrics. Else the study's selection decides.
    """
    metrics = [objective.metric for objective in study.spec.objectives]
    final = final or chosen(trial.measurements, study, study.spec.selection)
    if final is None:
        if trial.stopped:
            late = f"It was stopped before it reported {_listed(metrics)}."
            return infeasible(
                trial, f"{late if trial.started_at else 'It had not begun.'} {trial.stopped}", at
            )
        if study.template is None:
            return infeasible(trial, f"It was completed without a measurement of {_listed(metrics)}.", at)
        looks = report.looks if report is not None else ()
        return infeasible(trial, missing_sentence(metrics, looks), at)
    for metric in metrics:
        if not math.isfinite(value := final.values[metric]):
            return infeasible(trial, f"{metric} was {value} at step {final.step}.", at)
    return replace(trial, state=TrialState.SUCCEEDED, final=final, ended_at=at)


def infeasible(trial: Trial, why: str, at: datetime) -> Trial:
    return replace(trial, state=TrialState.INFEASIBLE, infeasible=why[:LONGEST_REASON], ended_at=at)


def chosen(measurements: Sequence[Measurement], study: Study, selection: Selection) -> Measurement | None:
    """The measurement that counts: the last or the best one, with the latest value of each metric by then."""
    objectives = study.spec.objectives
    metrics = [objective.metric for objective in objectives]
    best: Measurement | None = None
    values: dict[str, float] = {}
    for measurement in measurements:
        values.update(measurement.values)
        if any(metric not in values for metric in metrics):
            continue
        here = replace(measurement, values=dict(values))
        is_kept = best is not None and selection is Selection.BEST and len(metrics) == 1
        if is_kept and best is not None and not _beats(here, best, metrics[0], objectives[0].maximize):
            continue
        best = here
    return best


def _beats(new: Measurement, old: Measurement, metric: str, maximize: bool) -> bool:
    """A value that is no number beats nothing, and every number beats it."""
    if not math.isfinite(new.values[metric]):
        return False
    return not math.isfinite(old.values[metric]) or is_better(
        new.values[metric], old.values[metric], maximize=maximize
    )


def _status(study: Study, trials: Sequence[Trial], now: datetime) -> StudyStatus:
    status = study.status
    if status.state is StudyState.PENDING and any(trial.job or trial.client for trial in trials):
        status = replace(status, state=StudyState.RUNNING, started_at=now)
    if status.state is StudyState.STOPPING:
        return status
    end = study_end(study, trials, now)
    if end is None:
        return status
    return replace(
        status,
        state=StudyState.STOPPING,
        outcome=end.outcome,
        message=end.message,
        drains=end.drains,
        started_at=status.started_at or now,
    )


def _ending(trial: Trial, status: StudyStatus, now: datetime) -> Trial:
    """A trial of a study that ends."""
    why = status.message or "The study was stopped."
    match trial.state:
        case TrialState.REQUESTED:
            return infeasible(trial, f"It had not begun when the study ended. {why}", now)
        case TrialState.ACTIVE if not status.drains:
            return replace(trial, state=TrialState.STOPPING, stopped=f"The study ended. {why}")
        case _:
            return trial


def _stopped_early(study: Study, trials: Sequence[Trial]) -> list[Trial]:
    running = [trial for trial in trials if trial.state is TrialState.ACTIVE and trial.job]
    reasons = early_stops(study, trials, running)
    return [
        replace(trial, state=TrialState.STOPPING, stopped=reasons[trial.number])
        if trial.number in reasons
        else trial
        for trial in trials
    ]


def _launched(study: Study, trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The first of those that wait, as many as may run."""
    if study.template is None or study.status.state is StudyState.STOPPING:
        return ()
    running = sum(trial.state in (TrialState.ACTIVE, TrialState.STOPPING) for trial in trials)
    waiting = [trial for trial in trials if trial.state is TrialState.REQUESTED]
    return tuple(waiting[: max(0, study.limits.parallel - running)])


def _wanted(study: Study, trials: Sequence[Trial], now: datetime) -> int:
    if study.template is None or study.status.state is StudyState.STOPPING or study.status.is_exhausted:
        return 0
    unfinished = sum(not trial.is_final for trial in trials)
    wanted = min(study.limits.parallel - unfinished, study.limits.trials - len(trials))
    room = room_left(study, trials, now)
    return max(0, wanted if room is None else min(wanted, room))


def _again_at(
    study: Study, trials: Sequence[Trial], facts: Mapping[int, TrialFacts], now: datetime
) -> datetime | None:
    """When to look again though nobody hints: measurements grow, and time limits are reached, in silence."""
    waits = (_until_reports(study, trials, facts, now), time_to_rule(study, trials, now))
    wait = min((wait for wait in waits if wait is not None), default=None)
    return None if wait is None else now + min(wait, LONGEST_WAIT)


def _until_reports(
    study: Study, trials: Sequence[Trial], facts: Mapping[int, TrialFacts], now: datetime
) -> timedelta | None:
    """Until the next look at what its jobs have reported; None where none runs."""
    running = [trial for trial in trials if trial.state is TrialState.ACTIVE]
    if study.template is None or not running:
        return None
    if study.spec.trial_stopping is None:
        return SHOWN
    silent = [t for t in running if not facts.get(t.number, TrialFacts()).is_hinted]
    return min((_until_look(trial, now) for trial in silent), default=WATCHED)


def _until_look(trial: Trial, now: datetime) -> timedelta:
    """Soon after a report, later the longer none came: late by a small part of the time between two."""
    if trial.started_at is None:
        return WATCHED  # its job hints when it starts
    last = trial.measurements[-1].elapsed if trial.measurements else 0.0
    silence = now - trial.started_at - timedelta(seconds=last)
    return min(WATCHED, max(SOON, silence / PATIENCE))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)

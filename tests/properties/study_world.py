"""A world in which a study lives: its store, its jobs, and a loop that may die between any two lines.

`StudyWorld` does what `control/studies.py` does, one line at a time, and asserts after each that nothing
forbidden has happened. Jobs end as the plan of the test says; people stop, cancel, resume and add trials.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.builders import T0
from tests.studies.study_builders import job_of, report
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.tuning.advance import StudyPlan, TrialFacts, advance
from trainshed.core.tuning.study import Study, StudyState, Trial, TrialState, next_number

MOST_STEPS = 400


class DiedError(Exception):
    """The server was killed here."""


@dataclass
class StudyWorld:
    study: Study
    now: datetime = T0
    trials: dict[int, Trial] = field(default_factory=dict[int, Trial])
    jobs: dict[int, Job] = field(default_factory=dict[int, Job])  # by the number of their trial
    deleted: set[int] = field(default_factory=set[int])  # trials whose job was deleted
    values: dict[int, tuple[float, ...]] = field(default_factory=dict[int, tuple[float, ...]])
    points_left: int = 1000
    life_left: int = 10**9  # lines until the server dies
    submits: int = 0

    # ---- the loop

    def run(self) -> None:
        """Turns until nothing changes, or the server dies. It always comes to rest."""
        for _ in range(MOST_STEPS):
            if not self.turn():
                return
        raise AssertionError(f"no rest after {MOST_STEPS} steps: {self.study}")

    def turn(self) -> bool:
        """One step, which may die anywhere. Whether something was stored or done."""
        before = self.study, dict(self.trials)
        try:
            return self._turn()
        except DiedError:
            self.life_left = 10**9
            return False
        finally:
            self._check(*before)

    def _turn(self) -> bool:
        plan = self.plan()
        if plan.changed or plan.status != self.study.status:
            self._line()
            assert not self.study.is_final
            self._store(replace(self.study, status=plan.status), plan.changed)
            return True
        return self._act(plan)

    def plan(self) -> StudyPlan:
        return advance(self.study, self._all(), self._facts(), self.now)

    def _act(self, plan: StudyPlan) -> bool:
        acted = False
        for trial in plan.stop:
            self._line()
            job = self.jobs.get(trial.number)
            if job is not None and not job.is_final and job.status.cancel_asked_at is None:
                self.jobs[trial.number] = _with(job, JobState.CANCELLING, cancel_asked_at=self.now)
                acted = True
        launched = [self._launch(trial) for trial in plan.launch]
        if launched:
            self._line()
            self._store(self.study, launched)
            return True
        if not plan.wanted:
            return acted
        count = min(plan.wanted, self.points_left)
        first = next_number(self.study, self._all())
        new = [
            Trial(study=self.study.id, number=first + at, point={"lr": 0.5}, requested_at=self.now)
            for at in range(count)
        ]
        self._line()
        self.points_left -= count
        status = replace(self.study.status, is_exhausted=count < plan.wanted)
        self._store(replace(self.study, status=status), new)
        return True

    def _launch(self, trial: Trial) -> Trial:
        """Submit under the trial's key: a second submit gives the first job."""
        self._line()
        assert trial.number not in self.deleted
        if trial.number not in self.jobs:
            self.submits += 1
            self.jobs[trial.number] = job_of(trial.number, JobState.QUEUED, started_at=None)
        return replace(trial, state=TrialState.ACTIVE, job=self.jobs[trial.number].id)

    def _facts(self) -> dict[int, TrialFacts]:
        """As the loop reads them: of a trial without a job only where it is to end."""
        is_ending = self.study.status.state is StudyState.STOPPING
        facts: dict[int, TrialFacts] = {}
        for number, trial in self.trials.items():
            is_to_end = is_ending or trial.state is TrialState.STOPPING
            if trial.is_final or not (trial.job or (is_to_end and self.study.template is not None)):
                continue
            job = self.jobs.get(number)
            has_begun = job is not None and job.status.started_at is not None
            values = self.values.get(number, ())
            facts[number] = TrialFacts(job=job, report=report(*values) if has_begun else None)
        return facts

    def _store(self, study: Study, trials: "list[Trial] | tuple[Trial, ...]") -> None:
        self.study = replace(study, version=study.version + 1)
        self.trials |= {trial.number: trial for trial in trials}

    def _line(self) -> None:
        self.life_left -= 1
        if self.life_left == 0:
            raise DiedError

    def _all(self) -> list[Trial]:
        return [self.trials[number] for number in sorted(self.trials)]

    # ---- what happens to it

    def job_moves(self, number: int, state: JobState, values: tuple[float, ...] = ()) -> None:
        job = self.jobs.get(number)
        if job is None or job.is_final or number in self.deleted:
            return
        if state is JobState.SUCCEEDED and job.status.cancel_asked_at is not None:
            state = JobState.CANCELLED
        self.values[number] = self.values.get(number, ()) + values
        fields: dict[str, object] = {"started_at": job.status.started_at or self.now}
        if state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED):
            fields["ended_at"] = self.now
        self.jobs[number] = _with(job, state, **fields)

    def delete_job(self, number: int) -> None:
        if number in self.jobs and self.trials[number].job:
            del self.jobs[number]
            self.deleted.add(number)

    def ask_to_end(self, outcome: StudyState) -> None:
        if self.study.is_final:
            return
        status = replace(
            self.study.status, state=StudyState.STOPPING, outcome=outcome, drains=False, message="Asked."
        )
        self._store(replace(self.study, status=status), ())

    def resume(self, trials: int) -> None:
        if not self.study.is_final:
            return
        status = replace(
            self.study.status, state=StudyState.RUNNING, message="", ended_at=None, is_exhausted=False
        )
        limits = replace(self.study.limits, trials=len(self.trials) + trials)
        self._store(replace(self.study, status=status, limits=limits), ())

    def stop_trial(self, number: int) -> None:
        trial = self.trials.get(number)
        if trial is not None and not trial.is_final:
            self._store(self.study, (replace(trial, state=TrialState.STOPPING, stopped="Asked."),))

    def add_trial(self) -> None:
        if self.study.is_final:
            return
        number = next_number(self.study, self._all())
        most = max(self.study.limits.trials, len(self.trials) + 1)
        study = replace(self.study, limits=replace(self.study.limits, trials=most))
        new = Trial(study=study.id, number=number, point={"lr": 0.1}, requested_at=self.now, is_given=True)
        self._store(study, (new,))

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def finish_jobs(self) -> None:
        """All jobs end, as they do sooner or later."""
        for number, job in list(self.jobs.items()):
            is_cancelled = job.status.cancel_asked_at is not None
            state = JobState.CANCELLED if is_cancelled else JobState.SUCCEEDED
            self.job_moves(number, state, (0.5,))

    # ---- what must always hold

    def _check(self, before: Study, trials: Mapping[int, Trial]) -> None:
        assert set(trials) <= set(self.trials), "a trial was lost"
        assert min(set(self.trials) - set(trials), default=math.inf) > max(trials, default=0), "numbers rise"
        for number, old in trials.items():
            new = self.trials[number]
            assert new.point == old.point
            if old.is_final:
                assert new == old, "a trial that has ended changed"
            assert not old.job or new.job == old.job
            assert not old.started_at or new.started_at == old.started_at
        if before.is_final:
            assert self.study == before
            assert self.trials == trials
        for trial in self.trials.values():
            assert (trial.ended_at is not None) == trial.is_final
            assert (trial.state is TrialState.SUCCEEDED) == (trial.final is not None)
            assert (trial.state is TrialState.INFEASIBLE) == bool(trial.infeasible)
        finals = [trial.final for trial in self.trials.values() if trial.final is not None]
        assert all(math.isfinite(value) for final in finals for value in final.values.values())
        suggested = [t for t in self.trials.values() if not t.is_final and not t.is_given]
        assert len(suggested) <= self.study.limits.parallel
        running = [number for number, job in self.jobs.items() if not job.is_final]
        assert len(running) <= self.study.limits.parallel
        if self.study.is_final:
            assert self.study.status.ended_at is not None
            assert all(trial.is_final for trial in self.trials.values())
            assert not running, "a job runs on after its study has ended"


def _with(job: Job, state: JobState, **fields: object) -> Job:
    return replace(job, status=replace(job.status, state=state, **fields))

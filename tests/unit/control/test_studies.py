"""StudyLoop over a store in a file: a trial that ends before the loop knows of its job finds that job.

A trial that its share may not have now waits, and is tried again at a pace.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.builders import T0
from tests.studies.study_builders import a_study, a_trial, job_of, report
from trainshed.control.queue import WorkQueue
from trainshed.control.studies import TRIED_EVERY, StudyLoop
from trainshed.core.errors import Exhausted, Invalid, Unavailable, Violation
from trainshed.core.event import Reason
from trainshed.core.jobs.job import Job, JobState
from trainshed.core.tuning.measurement import TrialReport
from trainshed.core.tuning.search_space import TrialPoint
from trainshed.core.tuning.study import Study, StudyState, Trial, TrialState
from trainshed.core.tuning.suggestion_port import SuggestionRequest
from trainshed.store import SqlStore


@dataclass
class StillClock:
    time: datetime = T0

    def now(self) -> datetime:
        return self.time


class NoHints:
    def watch(self, job: Job, hint: Callable[[], None]) -> bool:
        return False


class NoSuggester:
    async def suggest(self, request: SuggestionRequest) -> Sequence[TrialPoint]:
        raise Unavailable("Nothing is to be suggested here.")


class OneReport:
    """Every job that has begun has reported one value."""

    async def read(self, job: Job, metrics: Sequence[str], pattern: str = "") -> TrialReport:
        return report(0.5)

    def forget(self, job_id: str) -> None:
        pass


@dataclass
class SubmittedJobs:
    """The jobs that were submitted before the server died, by the numbers of their trials."""

    store: SqlStore
    looked_for: list[int] = field(default_factory=list[int])
    cancelled: list[str] = field(default_factory=list[str])

    async def submit(self, study: Study, trial: Trial) -> Job:
        raise AssertionError("a study that ends starts nothing")

    async def find(self, study: Study, trial: Trial) -> Job | None:
        self.looked_for.append(trial.number)
        return await self.store.load(job_of(trial.number).id)

    async def cancel(self, job: Job) -> None:
        self.cancelled.append(job.id)
        ended = replace(job.status, state=JobState.CANCELLED, cancel_asked_at=T0, ended_at=T0)
        await self.store.write(job, ended)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    made = SqlStore(f"sqlite:///{tmp_path}/jobs.db")
    await made.start()
    yield made
    await made.close()


@dataclass
class JobsOfShare(SubmittedJobs):
    """A share that may have jobs of trials, or has become too small for one."""

    refusal: Exception | None = None
    room: int = 100  # jobs until it is too small
    asked: list[int] = field(default_factory=list[int])

    async def submit(self, study: Study, trial: Trial) -> Job:
        self.asked.append(trial.number)
        self.room -= 1
        if self.refusal is not None or self.room < 0:
            raise self.refusal or TOO_SMALL
        return await self.store.insert(job_of(trial.number), ())


TOO_SMALL = Exhausted("Share 'a' may have 1 CPU, and the job asks for 2 CPUs.")


def a_loop(store: SqlStore, jobs: SubmittedJobs, clock: StillClock | None = None) -> StudyLoop:
    clock = clock or StillClock()
    return StudyLoop(
        studies=store.studies,
        jobs=store,
        measurements=OneReport(),
        hints=NoHints(),
        suggester=NoSuggester(),
        clock=clock,
        queue=WorkQueue(clock),
        submit=jobs.submit,
        find=jobs.find,
        cancel=jobs.cancel,
        tell=lambda study: None,
    )


async def turned(store: SqlStore, jobs: SubmittedJobs, study: Study, *trials: Trial) -> tuple[Trial, ...]:
    """The trials after a turn of the loop, and another as the end of a job hints it."""
    await store.studies.insert_study(study, trials=trials)
    loop = a_loop(store, jobs)
    await loop.turn(study.id)
    await loop.turn(study.id)
    return await store.studies.trials(study.id)


async def test_a_job_that_was_submitted_before_the_server_died_is_found_and_ended_with_its_study(
    store: SqlStore,
) -> None:
    jobs = SubmittedJobs(store)
    await store.insert(job_of(1), ())
    study = a_study(state=StudyState.STOPPING, outcome=StudyState.CANCELLED)
    [trial] = await turned(store, jobs, study, a_trial(1))
    assert jobs.cancelled == ["job-1"]
    assert (trial.job, trial.is_final) == ("job-1", True)
    ended = await store.studies.load_study(study.id)
    assert ended is not None and ended.status.state is StudyState.CANCELLED


async def test_a_trial_that_was_never_submitted_ends_without_a_job(store: SqlStore) -> None:
    jobs = SubmittedJobs(store)
    study = a_study(state=StudyState.STOPPING, outcome=StudyState.SUCCEEDED)
    [trial] = await turned(store, jobs, study, a_trial(1))
    assert (jobs.looked_for[0], jobs.cancelled) == (1, [])
    assert (trial.state, trial.job) == (TrialState.INFEASIBLE, "")
    assert "It had not begun when the study ended." in trial.infeasible


async def test_a_job_is_looked_for_only_where_the_next_step_may_end_its_trial(store: SqlStore) -> None:
    jobs = SubmittedJobs(store)
    await store.insert(job_of(2), ())
    one_stops = a_trial(2, state=TrialState.STOPPING, stopped="It is slow.")
    waiting = a_study(parallel=1, trials=2)
    trials = await turned(
        store, jobs, waiting, replace(a_trial(1), job="job-1", state=TrialState.ACTIVE), one_stops
    )
    assert set(jobs.looked_for) == {2}
    assert (trials[1].job, jobs.cancelled) == ("job-2", ["job-2"])


async def stored_study(store: SqlStore, study: Study) -> Study:
    stored = await store.studies.load_study(study.id)
    assert stored is not None
    return stored


async def test_a_trial_whose_share_has_become_too_small_waits_and_begins_when_it_is_raised(
    store: SqlStore,
) -> None:
    jobs, clock = JobsOfShare(store, refusal=TOO_SMALL), StillClock()
    study = a_study(trials=1, max_failed=1)
    await store.studies.insert_study(study, trials=[a_trial(1)])
    loop = a_loop(store, jobs, clock)
    assert await loop.turn(study.id) == T0 + TRIED_EVERY
    stored = await stored_study(store, study)
    waiting = stored.status.waiting
    assert waiting is not None
    assert (stored.status.state, waiting.reason) == (StudyState.RUNNING, Reason.WAITS_FOR_SHARE)
    assert TOO_SMALL.message in waiting.message
    [trial] = await store.studies.trials(study.id)
    assert (trial.state, trial.infeasible) == (TrialState.REQUESTED, "")

    jobs.refusal = None
    clock.time += TRIED_EVERY
    await loop.turn(study.id)
    [trial] = await store.studies.trials(study.id)
    assert (trial.state, trial.job) == (TrialState.ACTIVE, "job-1")
    assert (await stored_study(store, study)).status.waiting is None


async def test_a_trial_that_waits_is_tried_at_a_pace_however_often_its_study_is_hinted_and_alone(
    store: SqlStore,
) -> None:
    jobs, clock = JobsOfShare(store, refusal=TOO_SMALL), StillClock()
    study = a_study(trials=3, parallel=3)
    await store.studies.insert_study(study, trials=[a_trial(number) for number in (1, 2, 3)])
    loop = a_loop(store, jobs, clock)
    for _ in range(5):
        await loop.turn(study.id)
    assert jobs.asked == [1]
    version = (await stored_study(store, study)).version
    clock.time += TRIED_EVERY + timedelta(seconds=1)
    await loop.turn(study.id)
    assert jobs.asked == [1, 1]
    assert (await stored_study(store, study)).version == version, "nothing has changed"


async def test_trials_that_began_before_the_share_was_too_small_run_on(store: SqlStore) -> None:
    jobs = JobsOfShare(store, room=2)
    study = a_study(trials=3, parallel=3)
    trials = await turned(store, jobs, study, a_trial(1), a_trial(2), a_trial(3))
    assert [trial.job for trial in trials] == ["job-1", "job-2", ""]
    stored = await stored_study(store, study)
    assert stored.status.waiting is not None and not jobs.cancelled


async def test_a_trial_whose_job_is_wrong_does_not_wait(store: SqlStore) -> None:
    refusal = Invalid((Violation("job_spec.persistent_resource_id", "names one that is not there."),))
    jobs = JobsOfShare(store, refusal=refusal)
    [trial] = await turned(store, jobs, a_study(trials=1), a_trial(1))
    assert trial.state is TrialState.INFEASIBLE
    assert "names one that is not there" in trial.infeasible

"""StudyLoop over a store in a file: a trial that ends before the loop knows of its job finds that job."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest

from tests.builders import T0
from tests.study_builders import a_study, a_trial, job_of, report
from trainshed.control.queue import WorkQueue
from trainshed.control.studies import StudyLoop
from trainshed.core.errors import Unavailable
from trainshed.core.job import Job, JobState
from trainshed.core.measurement import TrialReport
from trainshed.core.search_space import TrialPoint
from trainshed.core.study import Study, StudyState, Trial, TrialState
from trainshed.core.suggestion_port import SuggestionRequest
from trainshed.store import SqlStore


class StillClock:
    def now(self) -> datetime:
        return T0


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


def a_loop(store: SqlStore, jobs: SubmittedJobs) -> StudyLoop:
    clock = StillClock()
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

"""What counts of a job's time: by day, and no longer than its last replica ran."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from tests.builders import a_job, a_pool, an_admission
from trainshed.core.day_use import DayUse, day_uses, open_uses
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Job, JobState, Scheduling, Status, planned_replicas
from trainshed.core.jobs.replica import Exit, Phase
from trainshed.core.ledger import Interval, TimeClass, account

EVENING = datetime(2026, 11, 30, 23, 59, 50, tzinfo=UTC)
LAST, NEXT = date(2026, 11, 30), date(2026, 12, 1)


def at(seconds: float) -> datetime:
    return EVENING + timedelta(seconds=seconds)


class Life:
    """A job of two replicas that is admitted in the evening."""

    def __init__(self, **more: object) -> None:
        job = replace(a_job(a_pool(2, gpus=1), **more), created_at=EVENING)  # pyright: ignore[reportArgumentType]
        self.uses: Counter[DayUse] = Counter()
        self.intervals: list[Interval] = []
        self.job: Job = job
        self.write(
            0,
            state=JobState.PENDING,
            admission=an_admission(job),
            admitted_at=EVENING,
            replicas=planned_replicas(job.spec),
        )

    def write(self, seconds: float, **changes: object) -> None:
        status: Status = replace(self.job.status, updated_at=at(seconds), **changes)  # pyright: ignore[reportArgumentType]
        status, closed = account(self.job, status, at(seconds))
        self.intervals += closed
        for use in day_uses(self.job, status, closed):
            self.uses[use._replace(micros=0)] += use.micros
        self.job = replace(self.job, status=status)

    def run(self) -> None:
        running = [replace(r, phase=Phase.RUNNING, started_at=at(0)) for r in self.job.status.replicas]
        self.write(1, state=JobState.RUNNING, started_at=at(0), replicas=tuple(running))

    def end(self, *ends: float) -> tuple[object, ...]:
        pairs = zip(self.job.status.replicas, ends, strict=True)
        return tuple(
            replace(r, phase=Phase.ENDED, exit=Exit(code=0), ended_at=at(moment)) for r, moment in pairs
        )

    def seconds(self, *uses: DayUse) -> dict[tuple[date | None, str], float]:
        counted: Counter[tuple[date | None, str]] = Counter()
        for use in uses or (use._replace(micros=micros) for use, micros in self.uses.items()):
            counted[use.day, use.spent_on.value] += use.micros
        return {key: micros / 1e6 for key, micros in counted.items()}


def test_time_is_told_by_the_days_of_utc():
    life = Life()
    life.run()
    life.write(30, state=JobState.SUCCEEDED, replicas=life.end(30, 30), ended_at=at(30))
    assert life.seconds() == {(LAST, "COMPUTED"): 20, (NEXT, "COMPUTED"): 40}


def test_a_job_costs_until_its_last_replica_has_ended_and_not_until_that_is_noticed():
    life = Life()
    life.run()
    life.write(60, state=JobState.SUCCEEDED, replicas=life.end(5, 8), ended_at=at(60))
    assert life.seconds() == {(LAST, "COMPUTED"): 13, (LAST, "IDLE"): 3}


def test_storing_outputs_costs_nothing_while_it_lasts_and_afterwards():
    life = Life()
    life.run()
    stores = Waiting(reason=Reason.STORING_OUTPUTS, message="")
    life.write(8, replicas=life.end(5, 8), waiting=stores)
    assert life.seconds() == {(LAST, "COMPUTED"): 13, (LAST, "IDLE"): 3}
    assert open_uses(life.job, at(60)) == ()
    life.write(70, state=JobState.SUCCEEDED, waiting=None, ended_at=at(70))
    assert life.seconds() == {(LAST, "COMPUTED"): 13, (LAST, "IDLE"): 3}
    assert any(interval.spent_on is TimeClass.CHECKPOINTED for interval in life.intervals)


def test_a_replica_that_is_held_for_a_look_costs_on():
    life = Life()
    life.run()
    life.write(5, replicas=life.end(5, 5), waiting=Waiting(reason=Reason.HELD, message=""))
    assert life.seconds(*open_uses(life.job, at(9)))[LAST, "HELD"] == 8


def test_a_running_job_counts_up_to_now():
    life = Life()
    life.run()
    assert life.seconds(*open_uses(life.job, at(12))) == {(LAST, "COMPUTED"): 20, (NEXT, "COMPUTED"): 4}


def test_a_waiting_job_costs_nothing():
    assert open_uses(a_job(a_pool(2)), at(50)) == ()


def test_a_use_tells_the_machine_the_type_of_gpu_and_spot():
    life = Life(scheduling=Scheduling(strategy="SPOT"))
    pool = replace(life.job.spec.pools[0], machine_type="n1-standard-4", accelerator="NVIDIA_TESLA_T4")
    admission = an_admission(life.job)
    places = tuple(replace(place, gpus=(f"gpu{place.index}",)) for place in admission.placements)
    status = replace(life.job.status, admission=replace(admission, placements=places))
    life.job = replace(life.job, spec=replace(life.job.spec, pools=(pool,)), status=status)
    (use,) = open_uses(life.job, at(1))
    assert (use.machine_type, use.accelerator, use.is_spot) == ("n1-standard-4", "NVIDIA_TESLA_T4", True)
    assert (use.gpus, use.micros) == (1, 2_000_000)

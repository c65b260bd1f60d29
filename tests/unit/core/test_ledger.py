"""Which class a run's time goes into, write by write."""

from dataclasses import replace
from datetime import datetime

from tests.builders import T0, a_job, a_pool, an_admission, at, seconds
from trainshed.core.event import Reason, Waiting
from trainshed.core.jobs.job import Closing, Job, JobState, Outcome, Scheduling, Status, planned_replicas
from trainshed.core.jobs.replica import Exit, Phase, Replica
from trainshed.core.ledger import Interval, TimeClass, account


class Story:
    """A job, written again and again; `told` are all intervals so far."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.told: list[Interval] = []

    def write(self, status: Status, now: float) -> None:
        written, closed = account(self.job, status, at(now))
        self.job = replace(self.job, status=written)
        self.told += closed

    def admit(self, now: float, **changes: object) -> None:
        admitted = replace(
            self.job.status,
            state=JobState.PENDING,
            admission=an_admission(self.job),
            admitted_at=at(now),
            replicas=planned_replicas(self.job.spec),
        )
        self.write(replace(admitted, **changes), now)

    def replicas(self, *changes: dict[str, object]) -> tuple[Replica, ...]:
        pairs = zip(self.job.status.replicas, changes, strict=True)
        return tuple(replace(replica, **change) for replica, change in pairs)

    def of(self, index: int = 0) -> list[tuple[str, float, float]]:
        return [
            (i.spent_on.value, _seconds(i.from_at), _seconds(i.to_at))
            for i in self.told
            if i.key.name.index == index
        ]


def _seconds(moment: datetime) -> float:
    return (moment - T0).total_seconds()


def running(started: float) -> dict[str, object]:
    return {"phase": Phase.RUNNING, "started_at": at(started), "not_before": None}


def ended(started: float, end: float, code: int = 0) -> dict[str, object]:
    return {"phase": Phase.ENDED, "started_at": at(started), "ended_at": at(end), "exit": Exit(code=code)}


def final(status: Status, now: float) -> Status:
    return replace(status, state=JobState.SUCCEEDED, closing=None, waiting=None, ended_at=at(now))


def waits(reason: Reason) -> Waiting:
    return Waiting(reason=reason, message="", remedy="")


def test_there_are_nine_classes_and_no_other():
    assert [kind.value for kind in TimeClass] == [
        "QUEUED",
        "PULLED",
        "SET_UP",
        "WAITED_FOR_GANG",
        "COMPUTED",
        "CHECKPOINTED",
        "LOST",
        "HELD",
        "IDLE",
    ]


def test_what_was_prepared_before_the_admission_is_pulled():
    story = Story(a_job(a_pool()))
    story.admit(9, preparing_since=at(2), prepared_at=at(7))
    assert story.of() == [("QUEUED", 0, 2), ("PULLED", 2, 7), ("QUEUED", 7, 9)]
    assert story.told[0].node == ""


def test_a_job_that_never_got_a_place_was_queued():
    story = Story(a_job(a_pool(2)))
    story.write(replace(Status(), cancel_asked_at=at(3), state=JobState.CANCELLING), 3)
    assert story.told == []
    story.write(final(story.job.status, 4), 4)
    assert story.of(0) == story.of(1) == [("QUEUED", 0, 4)]


def test_who_started_first_waits_for_the_gang():
    story = Story(a_job(a_pool(2)))
    story.admit(1)
    story.write(replace(story.job.status, replicas=story.replicas(running(2), {})), 3)
    both = story.replicas(running(2), running(5))
    story.write(replace(story.job.status, state=JobState.RUNNING, replicas=both), 6)
    story.write(final(replace(story.job.status, replicas=story.replicas(ended(2, 8), ended(5, 9))), 9), 9)
    assert story.of(0) == [
        ("QUEUED", 0, 1),
        ("SET_UP", 1, 2),
        ("WAITED_FOR_GANG", 2, 5),
        ("COMPUTED", 5, 8),
        ("IDLE", 8, 9),
    ]
    assert story.of(1) == [("QUEUED", 0, 1), ("SET_UP", 1, 5), ("COMPUTED", 5, 9)]


def test_who_ended_before_the_gang_was_there_never_computed():
    story = Story(a_job(a_pool(2)))
    story.admit(1)
    both = story.replicas(ended(2, 3, code=1), running(5))
    story.write(replace(story.job.status, state=JobState.RUNNING, replicas=both), 6)
    assert story.of(0) == [("QUEUED", 0, 1), ("SET_UP", 1, 2), ("WAITED_FOR_GANG", 2, 3)]
    assert [i.exit for i in story.told if i.exit] == [Exit(code=1)]


def test_a_run_that_never_came_back_was_lost_since_it_was_last_seen():
    story = Story(a_job(a_pool()))
    story.admit(1)
    story.write(replace(story.job.status, state=JobState.RUNNING, replicas=story.replicas(running(1))), 2)
    missing = story.replicas({"phase": Phase.MISSING, "missing_since": at(4)})
    story.write(replace(story.job.status, replicas=missing), 4)
    gone = story.replicas({"phase": Phase.ENDED, "missing_since": None, "exit": Exit(), "ended_at": at(6)})
    story.write(final(replace(story.job.status, replicas=gone), 6), 6)
    assert story.of()[1:] == [("COMPUTED", 1, 4), ("LOST", 4, 6)]
    assert story.told[-1].exit == Exit()


def test_a_run_that_came_back_was_never_lost():
    story = Story(a_job(a_pool()))
    story.admit(1)
    story.write(replace(story.job.status, state=JobState.RUNNING, replicas=story.replicas(running(1))), 2)
    missing = story.replicas({"phase": Phase.MISSING, "missing_since": at(4)})
    story.write(replace(story.job.status, replicas=missing), 4)
    back = story.replicas({**running(1), "missing_since": None})
    story.write(replace(story.job.status, replicas=back), 5)
    story.write(final(replace(story.job.status, replicas=story.replicas(ended(1, 9))), 9), 9)
    assert story.of()[1:] == [("COMPUTED", 1, 9)]


def test_places_are_held_while_they_are_kept_for_a_look_and_checkpointed_while_outputs_are_stored():
    story = Story(a_job(a_pool(), scheduling=Scheduling(hold=seconds(60))))
    story.admit(1)
    closing = Closing(outcome=Outcome.FAILED, since=at(3))
    over = replace(story.job.status, closing=closing, replicas=story.replicas(ended(1, 2, code=1)))
    story.write(replace(over, waiting=waits(Reason.HELD)), 3)
    story.write(replace(story.job.status, waiting=waits(Reason.STORING_OUTPUTS)), 10)
    story.write(final(story.job.status, 12), 12)
    assert story.of()[1:] == [("COMPUTED", 1, 2), ("IDLE", 2, 3), ("HELD", 3, 10), ("CHECKPOINTED", 10, 12)]


def test_a_program_that_took_no_time_leaves_its_exit():
    story = Story(a_job(a_pool()))
    story.admit(1)
    story.write(final(replace(story.job.status, replicas=story.replicas(ended(1, 1, code=7))), 1), 1)
    assert story.of() == [("QUEUED", 0, 1), ("COMPUTED", 1, 1)]
    assert story.told[-1].exit == Exit(code=7)


def test_the_backends_clock_counts_only_within_the_bounds_of_ours():
    story = Story(a_job(a_pool()))
    story.admit(10)
    ahead = story.replicas(running(99))
    story.write(replace(story.job.status, state=JobState.RUNNING, replicas=ahead), 12)
    story.write(final(replace(story.job.status, replicas=story.replicas(ended(99, 120))), 20), 20)
    assert story.of() == [("QUEUED", 0, 10), ("SET_UP", 10, 12), ("COMPUTED", 12, 20)]


def test_a_write_that_moves_no_run_tells_nothing():
    story = Story(a_job(a_pool()))
    story.admit(1)
    before = story.job.status
    story.write(replace(before, waiting=waits(Reason.STARTING)), 2)
    assert story.job.status.replicas == before.replicas
    assert len(story.told) == 1

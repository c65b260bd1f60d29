"""Jobs, events and conditions for the store's contract."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainshed.core.event import Event, Reason, Waiting
from trainshed.core.jobs.job import (
    Closing,
    Failure,
    Job,
    JobSpec,
    JobState,
    Outcome,
    Pool,
    RestartRule,
    Scheduling,
    Status,
)
from trainshed.core.jobs.origin import Origin
from trainshed.core.jobs.replica import Exit, Phase, Replica
from trainshed.core.ports import Operation
from trainshed.core.query import AllOf, AnyOf, Compare, Condition, NotOf, Operator, QueryField
from trainshed.core.queue.fleet import Admission, Placement

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SPEC = JobSpec(pools=(Pool(machine_type="n1-standard-4", replicas=1, image="trainshed/python:3"),))


def a_job(number: int = 1, **changes: object) -> Job:
    job = Job(
        id=str(1000 + number),
        project="p",
        location="us-central1",
        display_name=f"job {number}",
        spec=SPEC,
        created_at=T0 + timedelta(seconds=number),
    )
    return replace(job, **changes)


def an_event(message: str = "it runs", **changes: object) -> Event:
    return replace(Event(at=T0, reason=Reason.RUNNING, message=message), **changes)


def full_job() -> Job:
    """A job in which every field says something."""
    spec = JobSpec(
        pools=(
            Pool(
                machine_type="a2-highgpu-1g",
                cpus=11.5,
                memory=2**36,
                accelerator="A100",
                accelerators=1,
                replicas=2,
                image="trainshed/python:3",
                command=("python", "-c"),
                args=("--lr", "0.1", "naïve \N{SNOWMAN} \0"),
                env=(("A", "1"), ("A", "again")),
                packages=("gs://bucket/package.tar.gz",),
                module="trainer.task",
                is_reducer=True,
                extras={"diskSpec": {"bootDiskSizeGb": 100, "list": [1, None, True]}},
            ),
            Pool(),
        ),
        scheduling=Scheduling(
            timeout=timedelta(hours=1, microseconds=1),
            max_wait=timedelta(0),
            strategy="SPOT",
            priority=-3,
            restart=RestartRule(retry_codes=((1, 2), (137, 137)), replica_restarts=0, whole_gang=True),
        ),
        output="gs://bucket/out",
        web_access=True,
        code="c0de" * 16,
        extras={"network": "n"},
    )
    status = Status(
        state=JobState.CANCELLING,
        attempt=2,
        admission=Admission(
            placements=(
                Placement(pool=0, index=0, node="n", host="h", cpus=1.5, memory=1, gpus=("0", "1"), port=9),
            ),
            admitted_at=T0,
            master_port=7,
            cuts=("It asked for 8 GPUs and got 1.",),
        ),
        replicas=(
            Replica(pool=0, index=0, phase=Phase.ENDED, run=3, exit=Exit(code=0), started_at=T0, ended_at=T0),
            Replica(pool=0, index=1, phase=Phase.ENDED, exit=Exit(signal=9), not_before=T0, missing_since=T0),
            Replica(pool=1, index=0, phase=Phase.ENDED, exit=Exit()),
        ),
        closing=Closing(
            outcome=Outcome.FAILED,
            since=T0,
            failure=Failure(reason=Reason.PROGRAM_FAILED, message="m", task="t"),
        ),
        waiting=Waiting(reason=Reason.NO_NODES, message="m", remedy="r"),
        failure=Failure(reason=Reason.TIMED_OUT, message="m"),
        cancel_asked_at=T0,
        admitted_at=T0,
        started_at=T0 + timedelta(microseconds=1),
        ended_at=T0,
        updated_at=T0,
    )
    return replace(
        a_job(),
        spec=spec,
        status=status,
        labels={"team": "vision", 'od"d': "x"},
        submitter="Ada",
        extras={"encryption": {"k": 1}},
    )


def ended(state: JobState = JobState.SUCCEEDED) -> Status:
    return Status(state=state, started_at=T0, ended_at=T0 + timedelta(minutes=1), updated_at=T0)


RUNNING = Status(state=JobState.RUNNING, attempt=1, started_at=T0, updated_at=T0 + timedelta(minutes=2))


def a_deletion(job: Job) -> Operation:
    return Operation(name=f"{job.name}/operations/1", kind="delete", target=job.name, created_at=T0)


def varied_jobs() -> list[Job]:
    names = [
        "train",
        "Train",
        "train-1",
        "train_1",
        "trainX1",
        "100%",
        "100x",
        "a[b]c",
        "abc",
        "wh?t",
        "a\\b",
        "ü",
        "*",
    ]
    labels = [
        {},
        {"team": "vision"},
        {"team": "VISION"},
        {"team": ""},
        {'od"d': "1", "a.b": "2"},
        {"team": "vis"},
        {"who": 'said "o" \N{LATIN CAPITAL LETTER U WITH DIAERESIS}'},
    ]
    states = [Status(), RUNNING, ended(), ended(JobState.FAILED)]
    return [
        a_job(
            n,
            display_name=names[n % len(names)],
            labels=labels[n % len(labels)],
            status=states[n % len(states)],
            submitter="" if n % 3 else "Ada \N{SNOWMAN}",
            origin=None if n % 7 else Origin(kind="pipeline", record={"n": n}),
        )
        for n in range(39)
    ]


def conditions() -> list[Condition]:
    texts = [
        "train",
        "train*",
        "*1",
        "t*1",
        "100%",
        "10*",
        "100_",
        "a[b]c",
        "a[*",
        "wh?t",
        "wh*t",
        "a\\b",
        "*",
        "ü*",
        "",
    ]
    found: list[Condition] = [Compare(QueryField.DISPLAY_NAME, op, text) for op in Operator for text in texts]
    found += [
        Compare(QueryField.LABEL, op, text, "team") for op in Operator for text in ("vision", "vis*", "*", "")
    ]
    found += [
        Compare(QueryField.LABEL, Operator.EQ, "1", 'od"d'),
        Compare(QueryField.LABEL, Operator.LIKE, "*", "a.b"),
    ]
    found += [Compare(QueryField.STATE, op, "RUNNING") for op in (Operator.EQ, Operator.NE)]
    moments = [T0, T0 + timedelta(seconds=7), T0 + timedelta(minutes=1)]
    times = (QueryField.CREATED, QueryField.UPDATED, QueryField.STARTED, QueryField.ENDED)
    found += [
        Compare(field, op, at)
        for field in times
        for op in Operator
        if op is not Operator.LIKE
        for at in moments
    ]
    found += [Compare(QueryField.ID, op, "1007") for op in Operator]
    found += [
        Compare(QueryField.TEXT, Operator.LIKE, text)
        for text in (*texts, "VIS", "1007", "team", "Ü", 'o"', "ada")
    ]
    found += [
        Compare(field, op, text)
        for field, text in (
            (QueryField.KIND, "custom"),
            (QueryField.KIND, "pipe*"),
            (QueryField.SUBMITTER, "Ada \N{SNOWMAN}"),
            (QueryField.SUBMITTER, "A*"),
            (QueryField.PROJECT, "p"),
            (QueryField.LOCATION, "us*"),
        )
        for op in (Operator.EQ, Operator.NE, Operator.LIKE)
    ]
    found += [AllOf(()), AnyOf(()), NotOf(AllOf(()))]
    pick = random.Random(7)
    for _ in range(60):
        some = tuple(pick.choice(found) for _ in range(pick.randint(1, 3)))
        found.append(pick.choice([AllOf(some), AnyOf(some), NotOf(some[0])]))
    return found

from datetime import timedelta

from tests.unit.wire.bodies import NOW, a_job
from trainshed.core.event import Event, Reason, Severity, Waiting
from trainshed.core.jobs.job import Failure, JobState
from trainshed.core.jobs.replica import Exit, Phase, Replica
from trainshed.core.logs import Line, OutputStream
from trainshed.core.ports import Operation
from trainshed.core.queue.fleet import Admission, Placement
from trainshed.wire.job_status import render_events, render_job_status
from trainshed.wire.log_entry import render_event_entry, render_line
from trainshed.wire.operation import render_operation

TIME = "2026-01-31T12:00:00.000005Z"
EVENT = Event(
    at=NOW,
    reason=Reason.REPLICA_RESTARTED,
    message="Again.",
    severity=Severity.WARNING,
    attempt=2,
    task="workerpool1-0",
    sequence=7,
)


def line(**changes: object) -> Line:
    fields: dict[str, object] = {
        "job": "123",
        "attempt": 1,
        "pool": 0,
        "index": 2,
        "stream": OutputStream.STDOUT,
        "at_ns": 1_000_000_001,
        "sequence": 40,
        "text": "hello",
    }
    return Line(**(fields | changes))  # pyright: ignore[reportArgumentType]


def test_an_operation_is_done_and_of_types_that_clients_know() -> None:
    name = "projects/p1/locations/us-central1/operations/9"
    assert render_operation(Operation(name=name, kind="delete", target="t", created_at=NOW)) == {
        "name": name,
        "metadata": {
            "@type": "type.googleapis.com/google.cloud.aiplatform.v1.DeleteOperationMetadata",
            "genericMetadata": {"createTime": TIME, "updateTime": TIME},
        },
        "done": True,
        "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
    }


def test_a_line_becomes_an_entry_of_its_task() -> None:
    entry = render_line(line(), a_job())
    assert entry == {
        "logName": "projects/p1/logs/workerpool0-2",
        "timestamp": "1970-01-01T00:00:01.000000001Z",
        "receiveTimestamp": "1970-01-01T00:00:01.000000001Z",
        "insertId": line().insert_id,
        "severity": "INFO",
        "resource": {
            "type": "ml_job",
            "labels": {"project_id": "p1", "job_id": "123", "task_name": "workerpool0-2"},
        },
        "labels": {
            "ml.googleapis.com/job_id": "123",
            "ml.googleapis.com/task_name": "workerpool0-2",
            "trainshed/attempt": "1",
            "trainshed/stream": "stdout",
            "trainshed/sequence": "40",
        },
        "jsonPayload": {"message": "hello"},
    }


def test_what_a_program_says_on_stderr_is_an_error() -> None:
    assert render_line(line(stream=OutputStream.STDERR), a_job())["severity"] == "ERROR"


def test_an_event_becomes_an_entry_of_the_service_before_lines_of_its_moment() -> None:
    entry = render_event_entry(EVENT, a_job())
    assert entry["timestamp"] == "2026-01-31T12:00:00.000005000Z"
    assert entry["resource"]["labels"]["task_name"] == "service"
    assert entry["severity"] == "WARNING"
    assert entry["jsonPayload"] == {
        "message": "Again.",
        "reason": "REPLICA_RESTARTED",
        "task": "workerpool1-0",
    }
    assert entry["insertId"] < line().insert_id


def test_history_is_told_event_by_event() -> None:
    assert render_events([EVENT]) == [
        {
            "time": TIME,
            "reason": "REPLICA_RESTARTED",
            "severity": "WARNING",
            "message": "Again.",
            "attempt": 2,
            "task": "workerpool1-0",
            "sequence": 7,
        }
    ]


def test_a_waiting_job_says_why_and_what_would_help() -> None:
    waiting = Waiting(reason=Reason.WAITS_FOR_CAPACITY, message="4 CPUs asked, 2 free.", remedy="Wait.")
    answer = render_job_status(a_job(waiting=waiting))
    assert answer["state"] == "JOB_STATE_QUEUED"
    assert answer["waiting"] == {
        "reason": "WAITS_FOR_CAPACITY",
        "message": "4 CPUs asked, 2 free.",
        "remedy": "Wait.",
    }
    assert answer["times"] == {"created": TIME}
    assert answer["replicas"] == []


def test_each_replica_is_told_with_its_place_and_its_end() -> None:
    place = Placement(pool=0, index=0, node="n", host="h", cpus=1.5, memory=2**40, gpus=("0", "1"), port=4000)
    job = a_job(
        state=JobState.FAILED,
        attempt=1,
        admission=Admission(placements=(place,), admitted_at=NOW, cuts=("2 CPUs cut.",)),
        replicas=(
            Replica(
                pool=0, index=0, phase=Phase.ENDED, run=3, exit=Exit(signal=9), started_at=NOW, ended_at=NOW
            ),
            Replica(pool=1, index=0),
        ),
        failure=Failure(reason=Reason.RETRIES_EXHAUSTED, message="No more.", task="workerpool0-0"),
        admitted_at=NOW,
        started_at=NOW,
        ended_at=NOW + timedelta(seconds=1),
    )
    answer = render_job_status(job)
    assert answer["replicas"] == [
        {
            "task": "workerpool0-0",
            "phase": "ENDED",
            "restarts": 3,
            "exit": {"text": "was killed by signal 9 (SIGKILL)", "signal": 9},
            "startTime": TIME,
            "endTime": TIME,
            "node": "n",
            "cpus": 1.5,
            "memoryBytes": str(2**40),
            "gpus": ["0", "1"],
            "port": 4000,
        },
        {"task": "workerpool1-0", "phase": "PLANNED", "restarts": 0},
    ]
    assert answer["failure"] == {
        "reason": "RETRIES_EXHAUSTED",
        "message": "No more.",
        "task": "workerpool0-0",
    }
    assert answer["cuts"] == ["2 CPUs cut."]
    assert list(answer["times"]) == ["created", "admitted", "started", "ended"]

"""Our own answers about a job: state, replicas, waiting reason, failure, events. For `api/custom_jobs.py`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from trainshed.core.event import Event, Waiting
from trainshed.core.jobs.job import Job, JobState, OwnerKind
from trainshed.core.jobs.replica import Exit, Replica
from trainshed.core.jobs.verdict import Verdict
from trainshed.core.model import model_of
from trainshed.core.names import task_name
from trainshed.core.queue.fleet import Placement
from trainshed.wire import enums
from trainshed.wire.scalars import time_text
from trainshed.wire.training_pipeline import pipeline_name


def render_waiting(waiting: Waiting) -> dict[str, str]:
    remedy = {"remedy": waiting.remedy} if waiting.remedy else {}
    return {"reason": waiting.reason.value, "message": waiting.message, **remedy}


def render_job_status(job: Job) -> dict[str, Any]:
    status = job.status
    places = status.admission.by_replica() if status.admission else {}
    answer: dict[str, Any] = {
        "name": job.name,
        "displayName": job.display_name,
        "state": enums.state_name(status.state),
        "attempt": status.attempt,
        "times": _times(
            created=job.created_at,
            preparing=status.preparing_since,
            prepared=status.prepared_at,
            admitted=status.admitted_at,
            started=status.started_at,
            ended=status.ended_at,
        ),
        "replicas": [
            _replica(replica, places.get((replica.pool, replica.index))) for replica in status.replicas
        ],
        "cuts": list(status.admission.cuts) if status.admission else [],
    }
    if status.admission and status.admission.site:
        answer["site"] = {"name": status.admission.site, "message": status.admission.why}
    if status.waiting:
        answer["waiting"] = render_waiting(status.waiting)
    if status.hang:
        hang = status.hang
        answer["hang"] = {
            "kind": hang.kind.value,
            "since": time_text(hang.since),
            "noticedTime": time_text(hang.noticed_at),
            "message": hang.message,
        }
    if status.failure:
        failure = status.failure
        failure_body: dict[str, Any] = {"reason": failure.reason.value, "message": failure.message}
        if failure.task:
            failure_body["task"] = failure.task
        if failure.verdict:
            failure_body["verdict"] = _verdict(failure.verdict)
        answer["failure"] = failure_body
    if status.closing:
        answer["closing"] = {
            "outcome": status.closing.outcome.value,
            "since": time_text(status.closing.since),
        }
    if status.cancel_asked_at:
        answer["cancelAskedTime"] = time_text(status.cancel_asked_at)
    if job.kind:
        answer["kind"] = job.kind
    if job.submitter:
        answer["submitter"] = job.submitter
    if job.owner is not None:
        answer["owner"] = str(job.owner)
    if job.owner is not None and job.owner.kind is OwnerKind.PIPELINE:
        answer["pipeline"] = pipeline_name(job)
        if (model := model_of(job)) is not None and status.state is JobState.SUCCEEDED:
            answer["model"] = model.name
    return answer


def render_events(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [render_event(event) for event in events]


def render_event(event: Event) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "time": time_text(event.at),
        "reason": event.reason.value,
        "severity": event.severity.value,
        "message": event.message,
        "attempt": event.attempt,
        "sequence": event.sequence,
    }
    if event.task:
        answer["task"] = event.task
    return answer


def _replica(replica: Replica, place: Placement | None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "task": task_name(replica.pool, replica.index),
        "phase": replica.phase.value,
        "restarts": replica.run,
    }
    if replica.uncounted:
        answer["interruptions"] = replica.uncounted
    if replica.exit is not None:
        answer["exit"] = render_exit(replica.exit)
    if replica.started_at is not None:
        answer["startTime"] = time_text(replica.started_at)
    if replica.ended_at is not None:
        answer["endTime"] = time_text(replica.ended_at)
    if replica.not_before is not None:
        answer["notBefore"] = time_text(replica.not_before)
    if place is not None:
        answer |= {
            "node": place.node,
            "cpus": place.cpus,
            "memoryBytes": str(place.memory),
            "gpus": list(place.gpus),
            "port": place.port,
        }
    return answer


def render_exit(exit: Exit) -> dict[str, Any]:
    answer: dict[str, Any] = {"text": str(exit)}
    if exit.code is not None:
        answer["code"] = exit.code
    if exit.signal is not None:
        answer["signal"] = exit.signal
    return answer


def _verdict(verdict: Verdict) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "cause": verdict.cause.value,
        "summary": verdict.summary,
        "lines": list(verdict.lines),
        "retryMayHelp": verdict.retry_may_help,
        "advice": verdict.advice,
    }
    if verdict.task:
        answer |= {"task": verdict.task, "ending": verdict.ending}
    return answer


def _times(**phases: datetime | None) -> dict[str, str]:
    """When each phase was reached, in order. Phases that are still to come are left out."""
    return {phase: time_text(at) for phase, at in phases.items() if at is not None}

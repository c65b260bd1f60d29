"""Lines and events as Cloud Logging's LogEntry. For `api/log_entries.py`.

Stdout is INFO and stderr is ERROR, as in Vertex AI; an event has its own severity. Timestamps always have
nine digits, since clients compare them as text. The message is in `jsonPayload`, where every reader looks
first. Events have the task "service", as Vertex AI's own messages do. Their insert ids sort before those of
lines of the same time. Callers pass both in order of (timestamp, insertId). A job and its replicas appear
under the names of the job's own API (`core/jobs/task_names.py`).
"""

from typing import Any
from urllib.parse import quote

from trainshed.core.event import Event
from trainshed.core.jobs.job import Job
from trainshed.core.jobs.task_names import known_as, task_called, with_task_names
from trainshed.core.logs import Line, OutputStream, event_insert_id
from trainshed.wire.scalars import nanos_text, time_text

SERVICE = "service"


def render_line(line: Line, job: Job, called: str = "") -> dict[str, Any]:
    """`called`: the id of the study that was asked for, where the job runs a trial of it."""
    entry = _entry(job, task_called(job, line.task), nanos_text(line.at_ns), called)
    entry["insertId"] = line.insert_id
    entry["severity"] = "INFO" if line.stream is OutputStream.STDOUT else "ERROR"
    entry["jsonPayload"] = {"message": line.text}
    entry["labels"] |= {
        "trainshed/attempt": str(line.attempt),
        "trainshed/stream": line.stream.value,
        "trainshed/sequence": str(line.sequence),
    }
    return entry


def render_event_entry(event: Event, job: Job, called: str = "") -> dict[str, Any]:
    entry = _entry(job, SERVICE, time_text(event.at)[:-1] + "000Z", called)
    entry["insertId"] = event_insert_id(job.id, event)
    entry["severity"] = event.severity.value
    entry["jsonPayload"] = {"message": with_task_names(job, event.message), "reason": event.reason.value}
    entry["labels"] |= {
        "trainshed/attempt": str(event.attempt),
        "trainshed/sequence": str(event.sequence),
    }
    if event.task:
        entry["jsonPayload"]["task"] = task_called(job, event.task)
    return entry


def _entry(job: Job, task: str, at: str, called: str) -> dict[str, Any]:
    called = called or known_as(job)
    # AI Platform's own readers use these labels.
    labels = {"ml.googleapis.com/job_id": called, "ml.googleapis.com/task_name": task}
    if job.origin is not None and job.origin.trial:
        labels["ml.googleapis.com/trial_id"] = job.origin.trial
    return {
        "logName": f"projects/{job.project}/logs/{quote(task, safe='')}",
        "timestamp": at,
        "receiveTimestamp": at,
        "resource": {
            "type": "ml_job",
            "labels": {"project_id": job.project, "job_id": called, "task_name": task},
        },
        "labels": labels,
    }

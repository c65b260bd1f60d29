"""A job's log as gcloud prints it: severity, time, task and text of every line, until the job ends.

gcloud asks every minute and never learns that the job has ended; here the server pushes both.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trainshed.cli import words
from trainshed.client import Client, Json
from trainshed.client.api import is_final

SERVICE = "service"
SEVERITIES = {"stdout": "INFO", "stderr": "ERROR"}


@dataclass(frozen=True, slots=True)
class LogRecord:
    severity: str
    time: str
    task: str
    text: str
    trial: str = ""  # of a tuning job


def records(client: Client, custom_job: Json, task: str | None) -> Iterator[LogRecord]:
    """The lines as they come, and what the service says: of an ended job in between, else before and after.

    A running job's lines cannot be waited for with what is known already: it may be silent for long.
    """
    job = str(custom_job["name"])
    events: list[Json] = client.events(job) if task in (None, SERVICE) else []
    waiting = deque(events)
    if not is_final(custom_job):
        yield from map(_event, _until(waiting, None))
    if task != SERVICE:
        for line in client.tail(job, follow=True, task=task):
            at = line.get("timestamp")
            yield from map(_event, _until(waiting, words.moment(at)))
            severity = SEVERITIES.get(str(line.get("stream")), "DEFAULT")
            yield LogRecord(severity, _time(at), str(line.get("task", "")), str(line.get("text", "")))
    yield from map(_event, waiting)
    if task in (None, SERVICE):
        client.wait(job)
        yield from map(_event, client.events(job)[len(events) :])


def _until(events: deque[Json], at: datetime | None) -> Iterator[Json]:
    """Takes out the events up to the given moment; all of them where there is none."""
    while events:
        then = words.moment(events[0].get("time"))
        if at and then and then > at:
            return
        yield events.popleft()


def _event(event: Json) -> LogRecord:
    text = str(event.get("message", ""))
    return LogRecord(str(event.get("severity", "")), _time(event.get("time")), SERVICE, text)


def _time(text: object) -> str:
    at = words.moment(text)
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %z") if at else ""


def print_row(cells: tuple[str, ...], *, beside: bool = False) -> None:
    """One record, at once; on stderr where the output is for something else. Harmless to a terminal."""
    import sys

    from trainshed.cli.follow import encoded
    from trainshed.cli.paint import harmless

    stream = sys.stderr if beside else sys.stdout
    *head, text = cells
    row = "\t".join((*head, harmless(text) if stream.isatty() else text))
    stream.buffer.write(encoded(row) + b"\n")
    stream.buffer.flush()

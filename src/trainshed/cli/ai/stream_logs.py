"""`trainshed ai custom-jobs stream-logs`: severity, time, task and text of every line, until the job ends.

gcloud asks every minute and never learns that the job has ended; here the server pushes both.
"""

import sys
from collections import deque
from collections.abc import Iterator
from datetime import datetime

import click

from trainshed.cli import words
from trainshed.cli.ai.flags import spoken
from trainshed.cli.complete import jobs
from trainshed.client import Client, Json
from trainshed.client.api import is_final

SERVICE = "service"
SEVERITIES = {"stdout": "INFO", "stderr": "ERROR"}


@click.command("stream-logs", short_help="Print what a job's replicas write, until the job ends.")
@click.argument("job", metavar="CUSTOM_JOB", shell_complete=jobs)
@click.option("--task-name", metavar="NAME", help="Only lines of this task, such as workerpool0-0.")
@click.option(
    "--polling-interval",
    type=click.IntRange(1),
    metavar="SECONDS",
    expose_value=False,
    help="Taken, not needed.",
)
@click.option(
    "--allow-multiline-logs", is_flag=True, expose_value=False, help="Taken: a line is a record here."
)
@spoken
def command(client: Client, job: str, task_name: str | None) -> None:
    """Print what a job's replicas write, until the job ends.

    \b
    Example:
      trainshed ai custom-jobs stream-logs 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.follow import encoded
    from trainshed.cli.paint import harmless

    found = client.get(job)
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    terminal = sys.stdout.isatty()
    for record in _records(client, found, task_name):
        text = "\t".join((*record[:3], harmless(record[3]) if terminal else record[3]))
        sys.stdout.buffer.write(encoded(text) + b"\n")
        sys.stdout.buffer.flush()


def _records(client: Client, found: Json, task: str | None) -> Iterator[tuple[str, str, str, str]]:
    """The lines as they come, and what the service says: of an ended job in between, else before and after.

    A running job's lines cannot be waited for with what is known already: it may be silent for long.
    """
    job = str(found["name"])
    told: list[Json] = client.events(job) if task in (None, SERVICE) else []
    said = deque(told)
    if not is_final(found):
        yield from map(_event, _until(said, None))
    if task != SERVICE:
        for line in client.tail(job, follow=True, task=task):
            yield from map(_event, _until(said, words.moment(line.get("timestamp"))))
            severity = SEVERITIES.get(str(line.get("stream")), "DEFAULT")
            yield severity, _time(line.get("timestamp")), str(line.get("task", "")), str(line.get("text", ""))
    yield from map(_event, said)
    if task in (None, SERVICE):
        client.wait(job)
        yield from map(_event, client.events(job)[len(told) :])


def _until(events: deque[Json], at: datetime | None) -> Iterator[Json]:
    """Takes out the events up to the given moment; all of them where there is none."""
    while events:
        then = words.moment(events[0].get("time"))
        if at and then and then > at:
            return
        yield events.popleft()


def _event(event: Json) -> tuple[str, str, str, str]:
    return str(event.get("severity", "")), _time(event.get("time")), SERVICE, str(event.get("message", ""))


def _time(text: object) -> str:
    at = words.moment(text)
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S %z") if at else ""

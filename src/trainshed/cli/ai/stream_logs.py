"""`trainshed ai custom-jobs stream-logs`: severity, time, task and text of every line, until the job ends."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from trainshed.cli.ai.flags import spoken
from trainshed.cli.complete import jobs
from trainshed.client import Client

R = TypeVar("R")


def streaming(function: Callable[..., R]) -> Callable[..., R]:
    """Gives a command the flags gcloud's stream-logs takes; two of them have nothing to do here."""

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
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> R:
        return function(*args, **kwargs)

    return wrapped


@click.command("stream-logs", short_help="Print what a job's replicas write, until the job ends.")
@click.argument("job", metavar="CUSTOM_JOB", shell_complete=jobs)
@streaming
@spoken
def command(client: Client, job: str, task_name: str | None) -> None:
    """Print what a job's replicas write, until the job ends.

    \b
    Example:
      trainshed ai custom-jobs stream-logs 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.ai.records import print_row, records

    custom_job = client.get(job)
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    for record in records(client, custom_job, task_name):
        print_row((record.severity, record.time, record.task, record.text))

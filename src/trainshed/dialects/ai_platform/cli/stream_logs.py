"""`trainshed ai-platform jobs stream-logs`: severity, time, task, trial and text of every line.

Tasks have the names they have there: `master-replica-0`, `worker-replica-3`, `ps-replica-0`.
"""

import re
from collections.abc import Iterator

import click

from trainshed.cli.ai.flags import spoken
from trainshed.cli.ai.stream_logs import streaming
from trainshed.client import Client, Json
from trainshed.dialects.ai_platform.cli.complete import training_jobs
from trainshed.dialects.ai_platform.client import TrainingJobsClient

ROLES = ("master", "worker", "ps", "evaluator")  # by their pool
_TASK = re.compile(r"workerpool([0-3])-(\d+)")
_ROLE = re.compile(rf"({'|'.join(ROLES)})-replica-(\d+)")


@click.command("stream-logs", short_help="Print what a job's replicas write, until the job ends.")
@click.argument("job", metavar="JOB", shell_complete=training_jobs)
@streaming
@spoken
def command(client: Client, job: str, task_name: str | None) -> None:
    """Print what a job's replicas write, until the job ends.

    \b
    Example:
      trainshed ai-platform jobs stream-logs digits_1
    """
    from trainshed.cli.ai.records import print_row

    jobs = TrainingJobsClient(client)
    for row in rows(client, jobs.behind(jobs.get(job)), task_name):
        print_row(row)


def rows(client: Client, job: Json, task: str | None = None) -> Iterator[tuple[str, ...]]:
    """Each record's cells. Trials are a tuning job's: the column is empty."""
    from trainshed.cli.ai.records import records

    for record in records(client, job, _pooled(task)):
        yield record.severity, record.time, _called(record.task), "", record.text


def _called(task: str) -> str:
    return _TASK.sub(lambda match: f"{ROLES[int(match[1])]}-replica-{match[2]}", task)


def _pooled(task: str | None) -> str | None:
    if task is None:
        return None
    return _ROLE.sub(lambda match: f"workerpool{ROLES.index(match[1])}-{match[2]}", task)

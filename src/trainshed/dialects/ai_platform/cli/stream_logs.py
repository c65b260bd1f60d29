"""`trainshed ai-platform jobs stream-logs`: severity, time, task, trial and text of every line.

Tasks have the names they have there: `master-replica-0`, `worker-replica-3`, `ps-replica-0`.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trainshed.cli.ai.flags import spoken
from trainshed.cli.ai.stream_logs import streaming
from trainshed.client import Client, Json
from trainshed.dialects.ai_platform.cli.complete import training_jobs
from trainshed.dialects.ai_platform.client import TrainingJobsClient

if TYPE_CHECKING:
    from trainshed.cli.ai.records import LogRecord

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

    for row in rows(client, TrainingJobsClient(client).get(job), task_name):
        print_row(row)


def rows(client: Client, job: Json, task: str | None = None) -> Iterator[tuple[str, ...]]:
    """Each record's cells. Only those of a job that tunes have a trial."""
    from trainshed.cli.ai.records import records

    jobs = TrainingJobsClient(client)
    if job.get("trainingInput", {}).get("hyperparameters"):
        source = _trial_records(client, jobs, str(job["jobId"]), task)
    else:
        source = records(client, jobs.behind(job), _pooled(task))
    for record in source:
        yield record.severity, record.time, _called(record.task), record.trial, record.text


def _trial_records(
    client: Client, jobs: TrainingJobsClient, job: str, task: str | None
) -> "Iterator[LogRecord]":
    from trainshed.cli.ai.tuning.trial_records import trial_records
    from trainshed.client.api import is_final
    from trainshed.client.studies import StudiesClient

    studies = StudiesClient(client)
    return trial_records(
        lambda since: studies.entries(client.project, job, since, task or ""),
        lambda: is_final(jobs.get(job)),
    )


def _called(task: str) -> str:
    return _TASK.sub(lambda match: f"{ROLES[int(match[1])]}-replica-{match[2]}", task)


def _pooled(task: str | None) -> str | None:
    if task is None:
        return None
    return _ROLE.sub(lambda match: f"workerpool{ROLES.index(match[1])}-{match[2]}", task)

"""`trainshed ai hp-tuning-jobs stream-logs`: severity, time, trial and task, and text of every line."""

import click

from trainshed.cli.ai.flags import spoken
from trainshed.cli.ai.stream_logs import streaming
from trainshed.client import Client


@click.command("stream-logs", short_help="Print what the trials of a tuning job write, until it ends.")
@click.argument("job", metavar="HP_TUNING_JOB")
@streaming
@spoken
def command(client: Client, job: str, task_name: str | None) -> None:
    """Print what the trials of a tuning job write, until it ends.

    \b
    Example:
      trainshed ai hp-tuning-jobs stream-logs 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.ai.records import print_row
    from trainshed.cli.ai.tuning.trial_records import trial_records
    from trainshed.client.api import is_final
    from trainshed.client.studies import StudiesClient

    studies = StudiesClient(client)
    name = str(studies.view(job)["name"])
    _, project, *_, identity = name.split("/")
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    for record in trial_records(
        lambda since: studies.entries(project, identity, since, task_name or ""),
        lambda: is_final(studies.view(name)),
    ):
        print_row((record.severity, record.time, f"trial-{record.trial}/{record.task}", record.text))

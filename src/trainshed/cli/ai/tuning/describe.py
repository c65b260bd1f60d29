"""`trainshed ai hp-tuning-jobs describe`: the tuning job with its trials, as YAML or as --format says."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client


@click.command("describe", short_help="Print a tuning job.")
@click.argument("job", metavar="HP_TUNING_JOB")
@formatted
@spoken
def command(client: Client, job: str, form: str | None) -> None:
    """Print a tuning job.

    \b
    Example:
      trainshed ai hp-tuning-jobs describe 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.ai.output import Output
    from trainshed.client.studies import StudiesClient

    output = Output.parse(form or "yaml")
    description = StudiesClient(client).get(job)
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    output.show(description)

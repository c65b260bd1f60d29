"""`trainshed ai hp-tuning-jobs list`: the tuning jobs as YAML, or as --format says."""

import click

from trainshed.cli.ai.choice import Choice, choosing
from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.ai.list_jobs import show_jobs
from trainshed.client import Client


@click.command("list", short_help="List tuning jobs.")
@click.option("--uri", is_flag=True, help="Print the jobs' addresses.")
@formatted
@spoken
@choosing
def command(client: Client, choice: Choice, uri: bool, form: str | None) -> None:
    """List tuning jobs.

    \b
    Example:
      trainshed ai hp-tuning-jobs list --region=us-central1 \\
        --format='table(name.basename(),displayName,state)'
    """
    from trainshed.cli.ai.output import Output
    from trainshed.client.studies import StudiesClient

    output = Output.parse(form or "yaml")
    shown = choice.of(StudiesClient(client).all(limit=choice.asked))
    show_jobs(client, output, shown, uri)

"""`trainshed ai persistent-resources list`: the resources as YAML, or as --format says."""

import click

from trainshed.cli.ai.choice import Choice, choosing
from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.ai.list_jobs import show_jobs
from trainshed.client import Client


@click.command("list", short_help="List persistent resources.")
@click.option("--uri", is_flag=True, help="Print their addresses.")
@formatted
@spoken
@choosing
def command(client: Client, choice: Choice, uri: bool, form: str | None) -> None:
    """List persistent resources.

    \b
    Example:
      trainshed ai persistent-resources list --region=us-central1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "yaml")
    show_jobs(client, output, choice.of(client.resources().find()), uri)

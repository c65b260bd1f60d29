"""`trainshed ai custom-jobs list`: the jobs as YAML, or as --format says."""

from typing import TYPE_CHECKING

import click

from trainshed.cli.ai.choice import Choice, choosing
from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client, Json

if TYPE_CHECKING:
    from trainshed.cli.ai.output import Output


@click.command("list", short_help="List jobs.")
@click.option("--uri", is_flag=True, help="Print the jobs' addresses.")
@formatted
@spoken
@choosing
def command(client: Client, choice: Choice, uri: bool, form: str | None) -> None:
    """List jobs.

    \b
    Example:
      trainshed ai custom-jobs list --region=us-central1 --filter=state=JOB_STATE_FAILED \\
        --format='table(name.basename(),displayName,createTime)'
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "yaml")
    shown = choice.of(client.jobs(limit=choice.asked))
    show_jobs(client, output, shown, uri)


def show_jobs(client: Client, output: "Output", shown: list[Json], uri: bool) -> None:
    """What `list` prints of whichever resource."""
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    if not shown:
        click.echo("Listed 0 items.", err=True)
    if uri:
        for job in shown:
            click.echo(f"{client.url}/v1/{job['name']}")
    else:
        output.many(shown)

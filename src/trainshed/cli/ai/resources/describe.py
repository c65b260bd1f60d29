"""`trainshed ai persistent-resources describe`: the resource as the API has it."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client


@click.command("describe", short_help="Print a persistent resource.")
@click.argument("resource", metavar="PERSISTENT_RESOURCE")
@formatted
@spoken
def command(client: Client, resource: str, form: str | None) -> None:
    """Print a persistent resource.

    \b
    Example:
      trainshed ai persistent-resources describe team --region=us-central1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "yaml")
    description = client.resources().get(resource)
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    output.show(description)

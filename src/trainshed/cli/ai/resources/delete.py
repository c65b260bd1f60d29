"""`trainshed ai persistent-resources delete`: gives its machines back to everybody."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client


@click.command("delete", short_help="Delete a persistent resource that has no jobs.")
@click.argument("resource", metavar="PERSISTENT_RESOURCE")
@formatted
@spoken
def command(client: Client, resource: str, form: str | None) -> None:
    """Delete a persistent resource that has no jobs.

    \b
    Example:
      trainshed ai persistent-resources delete team --region=us-central1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "none")
    operation = client.resources().delete(resource)
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(f"Request to delete the PersistentResource [{resource}] has been sent.", err=True)
    output.show(operation)

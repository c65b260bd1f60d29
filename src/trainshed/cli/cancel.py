"""`trainshed cancel`: asks jobs to end. One that cannot be cancelled does not keep the others from it."""

import click

from trainshed.cli.options import connected
from trainshed.client import Client


@click.command("cancel", short_help="Cancel jobs: their processes are asked to stop, then made to.")
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@connected
def command(client: Client, jobs: tuple[str, ...]) -> int:
    """Cancel jobs: their processes are asked to stop, then made to.

    \b
    Example:
      trainshed cancel digits
    """
    from trainshed.cli.each import each

    return each(client, jobs, client.cancel, "cancelling")

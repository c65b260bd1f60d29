"""`trainshed delete`: removes ended jobs and all that is kept of them."""

import click

from trainshed.cli.options import connected
from trainshed.client import Client


@click.command("delete", short_help="Delete ended jobs with their logs.")
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@connected
def command(client: Client, jobs: tuple[str, ...]) -> int:
    """Delete ended jobs with their logs.

    A job that still runs is refused: cancel it first.

    \b
    Example:
      trainshed delete digits
    """
    from trainshed.cli.each import each

    return each(client, jobs, client.delete, "deleted")

"""`trainshed delete`: removes ended jobs and all that is kept of them."""

import click

from trainshed.cli.options import as_json, connected, jobs_argument
from trainshed.client import Client


@click.command("delete", short_help="Delete ended jobs with their logs.")
@jobs_argument
@as_json
@connected
def command(client: Client, jobs: tuple[str, ...], as_json: bool) -> int:
    """Delete ended jobs with their logs.

    A job that still runs is refused: cancel it first.

    \b
    Example:
      trainshed delete digits
    """
    from trainshed.cli.each import each

    return each(client, jobs, client.delete, "deleted", as_json=as_json)

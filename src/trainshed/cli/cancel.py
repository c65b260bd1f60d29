"""`trainshed cancel`: asks jobs to end. One that cannot be cancelled does not keep the others from it."""

import click

from trainshed.cli.options import as_json, connected, jobs_argument
from trainshed.client import Client


@click.command("cancel", short_help="Cancel jobs: their processes are asked to stop, then made to.")
@jobs_argument
@as_json
@connected
def command(client: Client, jobs: tuple[str, ...], as_json: bool) -> int:
    """Cancel jobs: their processes are asked to stop, then made to.

    \b
    Example:
      trainshed cancel digits
    """
    from trainshed.cli.each import each

    return each(client, jobs, client.cancel, "cancelling", as_json=as_json)

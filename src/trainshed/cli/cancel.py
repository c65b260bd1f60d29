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

    Of several jobs of one name the one that has not ended is meant.

    \b
    Example:
      trainshed cancel digits
    """
    from trainshed.cli.each import each

    return each(client, jobs, client.cancel, "cancelling", alive=True, as_json=as_json)

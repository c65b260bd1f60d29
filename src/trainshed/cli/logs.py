"""`trainshed logs`: what replicas wrote, as they wrote it."""

import click

from trainshed.cli.options import as_json, connected
from trainshed.client import Client


@click.command("logs", short_help="Print what a job's replicas wrote.")
@click.argument("job")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
@click.option("--replica", metavar="NAME", help="Only this replica, such as workerpool0-1.")
@click.option("--attempt", metavar="N", type=click.IntRange(0), help="Only this attempt. [default: all]")
@click.option("--tail", "limit", metavar="N", type=click.IntRange(1), help="Begin with the last N lines.")
@as_json
@connected
def command(
    client: Client,
    job: str,
    *,
    follow: bool,
    replica: str | None,
    attempt: int | None,
    limit: int | None,
    as_json: bool,
) -> int:
    """Print what a job's replicas wrote.

    Lines of a job with several replicas begin with the replica's name. Into a file or a pipe go the very
    bytes the program wrote.

    \b
    Example:
      trainshed logs -f digits --replica workerpool0-0
    """
    from trainshed.cli.find import find
    from trainshed.cli.follow import DETACHED, printer

    found = find(client, job)
    show = printer(found, as_json=as_json, single=replica is not None)
    lines = client.tail(found["name"], follow=follow, task=replica, attempt=attempt, limit=limit)
    try:
        show.print_all(lines)
    except KeyboardInterrupt:
        return DETACHED
    return 0

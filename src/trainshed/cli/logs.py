"""`trainshed logs`: what replicas wrote, as they wrote it."""

from typing import TypedDict, Unpack

import click

from trainshed.cli.failure import Misuse
from trainshed.cli.grep import Grep
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.client import Client


class Chosen(TypedDict):
    """Which lines the server is asked for."""

    task: str | None
    attempt: int | None
    limit: int | None
    since: str | None


@click.command("logs", short_help="Print what a job's replicas wrote.")
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
@click.option("--replica", "task", metavar="NAME", help="Only this replica, such as workerpool0-1.")
@click.option("--attempt", metavar="N", type=click.IntRange(0), help="Only this attempt. [default: all]")
@click.option("--tail", "limit", metavar="N", type=click.IntRange(1), help="Begin with the last N lines.")
@click.option("--since", metavar="TIME", help="Only lines after 10m, 2h, or a time as 2026-01-31T12:00:00Z.")
@click.option("--grep", metavar="REGEX", help="Of these, only lines in which the expression is found.")
@as_json
@connected
def command(
    client: Client, job: str, *, follow: bool, grep: str | None, as_json: bool, **chosen: Unpack[Chosen]
) -> int:
    """Print what a job's replicas wrote.

    Lines of a job with several replicas begin with the replica's name. Into a file or a pipe go the very
    bytes the program wrote.

    \b
    Example:
      trainshed logs -f digits --replica workerpool0-0 --since 10m --grep 'loss|accuracy'
    """
    from trainshed.cli.find import find
    from trainshed.cli.follow import DETACHED, printer

    pattern = None if grep is None else Grep(grep)
    chosen["since"] = _moment(chosen["since"])
    custom_job = find(client, job)
    show = printer(custom_job, as_json=as_json, single=chosen["task"] is not None)
    try:
        if as_json:
            lines = client.tail(custom_job["name"], follow=follow, **chosen)
            show.print_lines(lines if pattern is None else filter(pattern.is_in, lines))
        else:
            frames = client.output(custom_job["name"], follow=follow, **chosen)
            show.print_output(frames if pattern is None else pattern.chosen(frames))
    except KeyboardInterrupt:
        return DETACHED
    return 0


def _moment(text: str | None) -> str | None:
    """As the server reads it: a length of time in seconds, or a time with its zone."""
    from trainshed.cli.wait import length
    from trainshed.cli.words import moment

    if not text:
        return None
    if (seconds := length(text)) is not None:
        return f"{seconds:.3f}s"
    if (at := moment(text)) is None:
        raise Misuse(
            f"--since {text}: write a length of time as 90s, 15m or 2h, or a time as 2026-01-31T12:00:00Z"
        )
    return at.isoformat()

"""`trainshed events`: a job's history, one typed reason a line."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.client import Client, Json


@click.command("events", short_help="Print what happened to a job.")
@job_argument
@as_json
@connected
def command(client: Client, job: str, as_json: bool) -> None:
    """Print what happened to a job.

    \b
    Example:
      trainshed events digits
    """
    from trainshed.cli.find import find

    events = client.events(find(client, job)["name"])
    click.echo(json.dumps(events, indent=2) if as_json else drawn(events))


def drawn(events: list[Json], *, indent: str = "", brief: bool = False) -> str:
    """The events as a table. What is only information needs no word for it; `brief` leaves out stacks."""
    from trainshed.cli.paint import Paint
    from trainshed.cli.table import table

    paint = Paint.for_stdout()
    colours = {"WARNING": "yellow", "ERROR": "red"}
    rows: list[list[str]] = []
    for event in events:
        colour = colours.get(str(event.get("severity")))
        attempt = str(event.get("attempt") or "")
        what = paint(str(event.get("reason", "")), colour)
        first, *more = str(event.get("message", "")).split("\n")
        message = "\n".join((first, *(() if brief else (f"{indent}    {line}" for line in more))))
        rows.append([words.clock(event.get("time")), attempt, str(event.get("task") or ""), what, message])
    return table(["TIME", "ATTEMPT", "REPLICA", "REASON", "MESSAGE"], rows, indent=indent, whole=True)

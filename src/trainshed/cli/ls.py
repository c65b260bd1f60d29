"""`trainshed ls`: jobs in a table, and for each that is not running a word about why."""

import json
from datetime import UTC, datetime

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

STATES = ("queued", "pending", "running", "cancelling", "succeeded", "failed", "cancelled")
WAITING = ("QUEUED", "PENDING")


@click.command("ls", short_help="List jobs, newest first.")
@click.option("--all-locations", is_flag=True, help="Jobs of every location, not only the chosen one.")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only jobs in this state. Repeatable.",
)
@click.option("--filter", "where", metavar="EXPR", default="", help="""Such as 'labels.team="vision"'.""")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="At most N."
)
@as_json
@connected
def command(
    client: Client, *, all_locations: bool, states: tuple[str, ...], where: str, limit: int, as_json: bool
) -> None:
    """List jobs, newest first.

    \b
    Example:
      trainshed ls --state running --filter 'labels.team="vision"'
    """
    location = "-" if all_locations else None
    # One more than shown tells whether there are more.
    found = list(
        client.jobs(filter=condition(where, states), limit=limit + 1, location=location, view="trainshed")
    )
    shown = found[:limit]
    if as_json:
        click.echo(json.dumps(shown, indent=2))
    elif not shown:
        place = "any location" if all_locations else client.location
        narrowed = "such " if states or where else ""
        hint = "submit one with: trainshed submit job.yaml"
        if not all_locations and any(client.jobs(filter=condition(where, states), limit=1, location="-")):
            hint = "there are in other locations: trainshed ls --all-locations"
        click.echo(f"no {narrowed}jobs in {client.project}, {place}; {hint}", err=True)
    else:
        click.echo(drawn(shown, all_locations=all_locations))
        if len(found) > limit:
            click.echo(f"only the latest {limit} are shown; see more with --limit", err=True)


def condition(where: str, states: tuple[str, ...]) -> str:
    """The filter to send: what was written, and one of the states asked for."""
    either = " OR ".join(f'state="JOB_STATE_{state.upper()}"' for state in states)
    if where and either:
        return f"({where}) AND ({either})"
    return where or either


def drawn(jobs: list[Json], *, all_locations: bool) -> str:
    from trainshed.cli.paint import Paint
    from trainshed.cli.table import table

    paint = Paint.for_stdout()
    now = datetime.now(UTC)
    rows: list[list[str]] = []
    for job in jobs:
        state = words.state(job.get("state"))
        place = str(job.get("name", "")).split("/")[3] if all_locations else ""
        rows.append(
            [
                words.identity(job),
                str(job.get("displayName", "")),
                paint.state(state),
                words.age(job.get("createTime"), now),
                str(words.replica_count(job)),
                words.progress(words.part(job, "progress")),
                place,
                _why(job, state),
            ]
        )
    return table(["ID", "NAME", "STATE", "AGE", "REPLICAS", "PROGRESS", "LOCATION", "WHY"], rows)


def _why(job: Json, state: str) -> str:
    if state in WAITING:
        waiting = words.part(job, "waiting")
        return str(waiting.get("message") or waiting.get("reason") or "")
    if state == "RUNNING":
        waiting = words.part(job, "waiting")  # one of its replicas cannot be started again
        return str(waiting.get("message") or job.get("lacks") or "")
    error = words.part(job, "error")
    return str(error.get("message") or "").partition("\n")[0] if state == "FAILED" else ""

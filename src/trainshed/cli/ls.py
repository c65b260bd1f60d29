"""`trainshed ls`: jobs in a table, and for each that is not running a word about why."""

import json
from datetime import UTC, datetime
from typing import TypedDict, Unpack

import click

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

STATES = ("queued", "pending", "running", "cancelling", "succeeded", "failed", "cancelled")
WAITING = ("QUEUED", "PENDING")
NO_TRIALS = "kind != trial"
EVERY = 10.0  # seconds: ages grow and reasons to wait change also where no job does


class JobChoice(TypedDict):
    """Which jobs are shown."""

    all_locations: bool
    states: tuple[str, ...]
    user: str | None
    where: str
    limit: int


@click.command("ls", short_help="List jobs, newest first.")
@click.option("--all-locations", is_flag=True, help="The same as --location=-: jobs of every location.")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    multiple=True,
    help="Only jobs in this state. Repeatable.",
)
@click.option(
    "--user", metavar="NAME", help="Only jobs that NAME submitted: an account, or a name as in `show`."
)
@click.option("--filter", "where", metavar="EXPR", default="", help="""Such as 'labels.team="vision"'.""")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=20, show_default=True, help="At most N."
)
@click.option("-w", "--watch", is_flag=True, help="Show it anew whenever a job changes, until Ctrl-C.")
@as_json
@connected
def command(client: Client, *, watch: bool, as_json: bool, **chosen: Unpack[JobChoice]) -> int:
    """List jobs, newest first.

    \b
    Example:
      trainshed ls --state running --filter 'labels.team="vision"'
    """
    chosen["all_locations"] = chosen["all_locations"] or client.location == "-"
    if not watch:
        _show(client, as_json=as_json, **chosen)
        return 0
    if as_json:
        raise Misuse("--watch shows a table: leave out --json; scripts read GET .../customJobs:watch")
    from trainshed.cli.follow import DETACHED
    from trainshed.cli.looks import looks

    try:
        for _ in looks(client, EVERY, "-" if chosen["all_locations"] else None):
            click.clear()
            _show(client, as_json=False, **chosen)
    except KeyboardInterrupt:
        pass
    return DETACHED


def _show(
    client: Client,
    *,
    all_locations: bool,
    states: tuple[str, ...],
    user: str | None,
    where: str,
    limit: int,
    as_json: bool,
) -> None:
    location = "-" if all_locations else None
    if user is not None:
        whose = f"submitter={json.dumps(user, ensure_ascii=False)}"
        where = f"({where}) AND {whose}" if where else whose
    # One more than shown tells whether there are more.
    jobs = list(
        client.jobs(filter=condition(where, states), limit=limit + 1, location=location, view="trainshed")
    )
    shown = jobs[:limit]
    if as_json:
        click.echo(json.dumps(shown, indent=2))
        return
    elsewhere = 0 if all_locations else client.elsewhere_count(filter=condition(where, states))
    if shown:
        click.echo(drawn(shown, all_locations=all_locations))
        if len(jobs) > limit:
            click.echo(f"only the latest {limit} are shown; see more with --limit", err=True)
        if len(jobs) > limit and any(map(is_trial, shown)):
            click.echo(f"without trials of studies: trainshed ls --filter '{NO_TRIALS}'", err=True)
    else:
        place = "any location" if all_locations else client.location
        narrowed = "such " if states or where else ""
        hint = "" if elsewhere else "; submit one with: trainshed submit job.yaml"
        click.echo(f"no {narrowed}jobs in {client.project}, {place}{hint}", err=True)
    if elsewhere:
        more = f"{elsewhere} more" if shown else str(elsewhere)
        click.echo(f"{more} in other locations: trainshed ls --location=-", err=True)


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
        place = words.location(job) if all_locations else ""
        rows.append(
            [
                words.identity(job),
                str(job.get("displayName", "")),
                "trial" if is_trial(job) else "",
                paint.state(state),
                words.age(job.get("createTime"), now),
                str(words.replica_count(job)),
                words.progress(words.part(job, "progress")),
                place,
                _why(job, state),
            ]
        )
    return table(["ID", "NAME", "KIND", "STATE", "AGE", "REPLICAS", "PROGRESS", "LOCATION", "WHY"], rows)


def is_trial(job: Json) -> bool:
    """Whether a study made it, which has many such jobs."""
    return job.get("kind") == "trial"


_STANDINGS = {"BORROWED": "Borrows from other shares.", "SPOT": "Runs as spot."}


def _why(job: Json, state: str) -> str:
    if state in WAITING:
        waiting = words.part(job, "waiting")
        return str(waiting.get("message") or waiting.get("reason") or "")
    if state == "RUNNING":
        waiting = words.part(job, "waiting")  # one of its replicas cannot be started again
        standing = _STANDINGS.get(str(job.get("standing")), "")
        return str(waiting.get("message") or job.get("lacks") or standing)
    error = words.part(job, "error")
    return str(error.get("message") or "").partition("\n")[0] if state == "FAILED" else ""

"""`trainshed queue`: the waiting jobs in the order in which they are tried, and why each waits."""

import json
from datetime import UTC, datetime

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, at_most, connected
from trainshed.client import Client, Json

HEADERS = ["PLACE", "JOB", "NAME", "PRIORITY", "WAITS", "NEEDS", "STARTS", "LOCATION", "WHY"]


@click.command("queue", short_help="Show the waiting jobs in their order, and what is prepared for them.")
@at_most("At most N jobs.")
@as_json
@connected
def command(client: Client, limit: int, as_json: bool) -> None:
    """Show the waiting jobs in their order, and what is prepared for them.

    A place counts the jobs of every project and location. A job without one waits for something that is
    prepared first.

    \b
    Example:
      trainshed queue --location=-
    """
    machines = client.machines()
    queue, preparations = machines.queue(limit), machines.preparations()
    if as_json:
        click.echo(json.dumps({**queue, "preparations": preparations}, indent=2))
        return
    click.echo(drawn(queue, all_locations=client.location == "-"))
    for item in preparations:
        click.echo(str(item.get("message", "")))
    if (left := int(queue.get("totalSize", 0)) - len(words.parts(queue, "jobs"))) > 0:
        click.echo(f"{left} more wait behind these; see more with --limit", err=True)


def drawn(queue: Json, *, all_locations: bool) -> str:
    from trainshed.cli.table import table

    now, jobs = datetime.now(UTC), words.parts(queue, "jobs")
    return table(HEADERS, [_row(job, now, all_locations) for job in jobs]) if jobs else "nothing waits"


def _row(job: Json, now: datetime, all_locations: bool) -> list[str]:
    return [
        str(job.get("position", "")),
        words.identity(job),
        str(job.get("displayName", "")),
        str(job.get("priority") or ""),
        words.age(job.get("createTime"), now),
        _needs(words.part(job, "needs")),
        _start(words.part(job, "eta"), now),
        words.location(job) if all_locations else "",
        str(words.part(job, "waiting").get("message", "")),
    ]


def _needs(needs: Json) -> str:
    gpus = f", {needs['gpus']} GPU{'s' if needs['gpus'] != 1 else ''}" if needs.get("gpus") else ""
    return f"{words.number(needs.get('cpus'))} CPUs, {words.size(needs.get('memoryBytes'))}{gpus}"


def _start(eta: Json, now: datetime) -> str:
    """What is likely, else the latest or the earliest, as a length of time from now."""
    if (range_of := words.range_of(eta, now)) is not None:
        return range_of
    for name, word in (("likely", "in"), ("latest", "within"), ("earliest", "not before")):
        if (at := words.moment(eta.get(name))) is not None:
            return f"{word} {words.span(at - now)}" if at > now else "now"
    return ""

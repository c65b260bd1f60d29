"""From what a person calls a job to the job: an id, the beginning of one, a display name, a full name.

A program submitted again and again gives many jobs one name: who looks means the newest, and is told so. Who
cancels or deletes could end another's work by a wrong guess: there, and with the beginning of an id, what
could mean two jobs is refused with both named.
"""

import re
from datetime import UTC, datetime
from itertools import islice

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.client import ApiError, Client, Json

SHOWN = 10  # candidates named in the error
SEARCHED = 1000  # the latest jobs whose ids are compared with a prefix


def find(client: Client, called: str, *, exactly: bool = False) -> Json:
    """The job meant, as the server tells it: of several of one name the newest, unless `exactly` one."""
    if called.startswith("projects/"):
        return client.get(called)
    if re.fullmatch(r"[A-Za-z0-9._-]+", called):
        try:
            return client.get(called)
        except ApiError as error:
            if error.status not in ("NOT_FOUND", "INVALID_ARGUMENT"):
                raise
    found = _named(client, called)
    if len(found) > 1 and not exactly:
        click.echo(f"the newest of several jobs named {called}: {words.identity(found[0])}", err=True)
        return found[0]
    if not found:
        latest = client.jobs(limit=SEARCHED)
        found = list(islice((job for job in latest if words.identity(job).startswith(called)), SHOWN + 1))
    found = found or _elsewhere(client, called)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandFailed(
            f"there is no job {called!r} in {client.project}/{client.location}",
            ["list them with: trainshed ls --all-locations", "choose others with --project and --location"],
        )
    raise CommandFailed(f"{called!r} could mean several jobs; say which by its id", _candidates(found))


def _named(client: Client, called: str, location: str | None = None) -> list[Json]:
    where = f"display_name={quoted(called)}"
    named = client.jobs(
        filter=where, limit=SHOWN + 1, location=location, view="trainshed" if location else ""
    )
    return [job for job in named if job.get("displayName") == called]  # to the filter, `*` is any text


def _elsewhere(client: Client, called: str) -> list[Json]:
    """The job of the older API, whose names are the whole project's: it is wherever its region is."""
    return [job for job in _named(client, called, "-") if job.get("kind") == "legacy"]


def _candidates(found: list[Json]) -> list[str]:
    now = datetime.now(UTC)
    lines = [
        f"{words.identity(job)}  {job.get('displayName', '')}  {words.state(job.get('state'))}"
        f"  {words.age(job.get('createTime'), now)} ago"
        for job in found[:SHOWN]
    ]
    return lines if len(found) <= SHOWN else [*lines, "and more"]


def quoted(text: str) -> str:
    """The text as a string of the filter language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

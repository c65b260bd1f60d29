"""From what a person calls a job to the job: an id, the beginning of one, a display name, a full name, or the
kind and name of a manifest (`pytorchjob/digits`).

A program submitted again and again gives many jobs one name: who looks means the newest, and is told so. Who
cancels or deletes could end another's work by a wrong guess: there, and with the beginning of an id, what
could mean two jobs is refused with both named.
"""

import importlib
import re
from datetime import UTC, datetime
from itertools import islice

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.manifest_kinds import job_called
from trainshed.client import ApiError, Client, Json

SHOWN = 10  # candidates named in the error
ALIVE = " OR ".join(f"state=JOB_STATE_{state}" for state in ("QUEUED", "PENDING", "RUNNING", "CANCELLING"))
SEARCHED = 1000  # the latest jobs whose ids are compared with a prefix


def find(client: Client, called: str, *, exactly: bool = False, alive: bool = False) -> Json:
    """The job meant, as the server tells it: of several of one name the newest, unless `exactly` one.

    Names are looked for in the client's own location first, then in all. With `alive`, an ended job is
    meant only where no other has the name.
    """
    if called.startswith("projects/"):
        return client.get(called)
    kind, name = job_called(called)
    if kind and (applied := _applied(client, kind, name)):
        return client.get(applied)
    called = name if kind else called
    if re.fullmatch(r"[A-Za-z0-9._-]+", called):
        try:
            return client.get(called)
        except ApiError as error:
            if error.status not in ("NOT_FOUND", "INVALID_ARGUMENT"):
                raise
    matches: list[Json] = []
    for location in (client.location, "-"):
        matches = matches or _named(client, called, location, alive=alive)
        if exactly and location != client.location:
            # A name of the older API is unique in its project. Any other may be another's job elsewhere.
            here = f"/locations/{client.location}/"
            matches = [job for job in matches if job.get("kind") == "legacy" or here in str(job.get("name"))]
    if len(matches) > 1 and not exactly:
        click.echo(f"the newest of several jobs named {called}: {words.identity(matches[0])}", err=True)
        return matches[0]
    if not matches:
        latest = client.jobs(limit=SEARCHED, location="-")
        matches = list(islice((job for job in latest if words.identity(job).startswith(called)), SHOWN + 1))
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise CommandFailed(
            f"there is no job {called!r} in {client.project}",
            ["list them with: trainshed ls --location=-", "choose another project with --project"],
        )
    raise CommandFailed(f"{called!r} could mean several jobs; say which by its id", _candidates(matches))


def _applied(client: Client, kind: str, name: str) -> str:
    """The full name of the latest job that was applied as that kind and name; "" where none was."""
    from trainshed.cli.main import DIALECTS

    return importlib.import_module(DIALECTS["get"]).applied(client, kind, name)


def _named(client: Client, called: str, location: str, *, alive: bool) -> list[Json]:
    """The jobs of that display name, newest first."""
    named = f"display_name={quoted(called)}"
    for where in (f"{named} AND ({ALIVE})", named) if alive else (named,):
        jobs = client.jobs(filter=where, limit=SHOWN + 1, location=location, view="trainshed")
        if result := [
            job for job in jobs if job.get("displayName") == called
        ]:  # to the filter, `*` is any text
            return result
    return []


def _candidates(jobs: list[Json]) -> list[str]:
    now = datetime.now(UTC)
    lines = [
        f"{words.identity(job)}  {job.get('displayName', '')}  {words.state(job.get('state'))}"
        f"  {words.location(job)}  {words.age(job.get('createTime'), now)} ago"
        for job in jobs[:SHOWN]
    ]
    return lines if len(jobs) <= SHOWN else [*lines, "and more"]


def quoted(text: str) -> str:
    """The text as a string of the filter language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

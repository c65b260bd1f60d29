"""From what a person calls a study to the study: an id, the beginning of one, a display name, a full name.

As with jobs, who looks at one of several of one name means the newest, and is told so; who changes one must
say which.
"""

import re
from datetime import UTC, datetime
from itertools import islice

import click

from trainshed.cli import complete, words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.find import SEARCHED, SHOWN
from trainshed.cli.tuning.trial_words import is_ended
from trainshed.client import ApiError, Client, Json


def find_study(client: Client, called: str, *, exactly: bool = False, alive: bool = False) -> Json:
    """The study without its trials. With `alive`, one that has ended is meant only where no other is."""
    studies = client.studies()
    if called.startswith("projects/"):
        return studies.view(called)
    if re.fullmatch(r"[A-Za-z0-9._-]+", called):
        try:
            return studies.view(called)
        except ApiError as error:
            if error.status not in ("NOT_FOUND", "INVALID_ARGUMENT"):
                raise
    rows = list(studies.rows(limit=SEARCHED, location="-"))
    matches = [row for row in rows if row.get("displayName") == called]
    here = f"/locations/{client.location}/"
    matches = [row for row in matches if here in str(row.get("name"))] or matches
    if alive:
        matches = [row for row in matches if not is_ended(row)] or matches
    if len(matches) > 1 and not exactly:
        click.echo(f"the newest of several studies named {called}: {words.identity(matches[0])}", err=True)
        return studies.view(str(matches[0]["name"]))
    if not matches:
        matches = list(islice((row for row in rows if words.identity(row).startswith(called)), SHOWN + 1))
    if len(matches) == 1:
        return studies.view(str(matches[0]["name"]))
    if not matches:
        raise CommandFailed(
            f"there is no study {called!r} in {client.project}",
            ["list them with: trainshed study ls --location=-", "choose another project with --project"],
        )
    raise CommandFailed(f"{called!r} could mean several studies; say which by its id", _candidates(matches))


def _candidates(rows: list[Json]) -> list[str]:
    now = datetime.now(UTC)
    lines = [
        f"{words.identity(row)}  {row.get('displayName', '')}  {words.state(row.get('state'))}"
        f"  {words.location(row)}  {words.age(row.get('createTime'), now)} ago"
        for row in rows[:SHOWN]
    ]
    return lines if len(rows) <= SHOWN else [*lines, "and more"]


study_argument = click.argument("study", shell_complete=complete.studies)
studies_argument = click.argument(
    "studies", metavar="STUDY...", nargs=-1, required=True, shell_complete=complete.studies
)

"""`trainshed retry`: the same job once more, as a job of its own; the old one stays for comparison."""

import json
import os
from pathlib import Path

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.client import Client, Json

SAID = ("displayName", "jobSpec", "labels", "encryptionSpec")  # what a person says of a job; the rest is told


@click.command("retry", short_help="Submit a job once more, with the same spec.")
@job_argument
@click.option("--name", metavar="TEXT", help="The display name. [default: the same]")
@click.option(
    "--with-folder",
    "folder",
    metavar="[DIR]",
    is_flag=False,
    flag_value="",
    help="With the files as they are now. [default: of the git work tree you are in, or this folder]",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before large files are sent.")
@click.option("-f", "--follow", is_flag=True, help="Print the logs until the job ends, and exit as it did.")
@as_json
@connected
def command(
    client: Client, job: str, name: str | None, folder: str | None, yes: bool, follow: bool, as_json: bool
) -> int:
    """Submit a job once more, with the same spec.

    The job may have ended or not; it is left as it is. It runs the files it ran before, or with
    --with-folder those of today. The new job's id is printed on stdout.

    Exit code: with --follow the job's own, as of submit; else 0, or 1 for an error.

    \b
    Example:
      trainshed retry digits --follow
      trainshed retry digits --with-folder
    """
    from trainshed.cli.find import find
    from trainshed.cli.follow import say_warnings

    previous = find(client, job)
    if folder is None:
        made = client.retry(str(previous["name"]), name or "")
    else:
        made = _with_folder(client, previous, name, folder, yes=yes)
    say_warnings(made)
    identity = words.identity(made)
    if as_json:
        click.echo(json.dumps(made) if follow else json.dumps(made, indent=2))
    elif not follow:
        click.echo(identity)
    click.echo(f"submitted {made.get('displayName', '')} again as {identity}", err=True)
    if follow:
        from trainshed.cli.follow import follow_to_end

        return follow_to_end(client, made, as_json=as_json)
    return 0


def _with_folder(client: Client, previous: Json, name: str | None, folder: str, *, yes: bool) -> Json:
    from trainshed.cli.failure import CommandFailed
    from trainshed.cli.pack import FolderListing, git_above
    from trainshed.cli.submission import created, packed
    from trainshed.cli.submit_options import SubmitWords

    here = str(Path.cwd())
    root = os.path.abspath(folder) if folder else git_above(here) or here  # noqa: PTH100 - without any ..
    if not Path(root).is_dir():
        raise CommandFailed(f"{folder} is not a folder")
    parcel = packed(root, FolderListing(root), SubmitWords({"yes": yes}))
    body: Json = {field: previous[field] for field in SAID if field in previous}
    if name:
        body["displayName"] = name
    body["jobSpec"] = {**body.get("jobSpec", {}), "code": parcel.code}
    parent = str(previous["name"]).rpartition("/customJobs/")[0]
    return created(client.elsewhere(parent), body, parcel, words.identity(previous))

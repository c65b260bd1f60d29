"""`trainshed retry`: the same job once more, as a job of its own; the old one stays for comparison."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected, job_argument
from trainshed.client import Client, Json

SAID = ("displayName", "jobSpec", "labels", "encryptionSpec")  # what a person says of a job; the rest is told


@click.command("retry", short_help="Submit a job once more, with the same spec.")
@job_argument
@click.option("--name", metavar="TEXT", help="The display name. [default: the same]")
@click.option("-f", "--follow", is_flag=True, help="Print the logs until the job ends, and exit as it did.")
@as_json
@connected
def command(client: Client, job: str, name: str | None, follow: bool, as_json: bool) -> int:
    """Submit a job once more, with the same spec.

    The job may have ended or not; it is left as it is. The new job's id is printed on stdout.

    \b
    Example:
      trainshed retry digits --follow
    """
    from trainshed.cli.find import find

    found = find(client, job)
    body: Json = {field: found[field] for field in SAID if field in found}
    if name:
        body["displayName"] = name
    made = client.create(body, parent=str(found["name"]).rpartition("/customJobs/")[0])
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

"""`trainshed submit`: a YAML file becomes a job, once, however often the network makes us ask."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click

from trainshed.cli import words
from trainshed.cli.failure import Failure
from trainshed.cli.job_file import JobFile, read
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json


@click.command("submit", short_help="Submit a job described in a YAML file.")
@click.argument("file", metavar="FILE.yaml")
@click.option("--name", metavar="TEXT", help="The display name. [default: the file's, then the file name]")
@click.option("--label", "labels", metavar="KEY=VALUE", multiple=True, help="A label. Repeatable.")
@click.option("-f", "--follow", is_flag=True, help="Print the logs until the job ends, and exit as it did.")
@click.option("--dry-run", is_flag=True, help="Submit nothing: say whether it would start now, else why not.")
@as_json
@connected
def command(
    client: Client,
    file: str,
    name: str | None,
    labels: tuple[str, ...],
    follow: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Submit a job described in a YAML file.

    The file is a CustomJob, or a CustomJobSpec as `gcloud ai custom-jobs create --config` takes it;
    `-` reads it from stdin. The new job's id is printed on stdout.

    \b
    Example:
      trainshed submit digits.yaml --label team=vision --follow
      trainshed submit digits.yaml --dry-run
    """
    source = "stdin" if file == "-" else file
    found = read(source, _text(file))
    body = _body(found.body, file, name, labels)
    if dry_run:
        from trainshed.cli.why import drawn

        told = _send(client.explain, found, body)
        click.echo(json.dumps(told, indent=2) if as_json else drawn(told))
        return 0
    job = _send(client.create, found, body)
    identity = words.identity(job)
    if as_json:
        click.echo(json.dumps(job) if follow else json.dumps(job, indent=2))
    elif not follow:
        click.echo(identity)
    if follow:
        from trainshed.cli.follow import follow_to_end

        click.echo(f"submitted {job.get('displayName', '')} as {identity}", err=True)
        return follow_to_end(client, job, as_json=as_json)
    click.echo(
        f"submitted {job.get('displayName', '')}; follow it with: trainshed logs -f {identity}", err=True
    )
    return 0


def _text(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from error


def _body(body: Json, file: str, name: str | None, labels: tuple[str, ...]) -> Json:
    """What the command line says wins over the file."""
    given: dict[str, str] = {}
    for label in labels:
        key, equals, value = label.partition("=")
        if not (key and equals):
            raise click.BadParameter(f"{label!r} is not KEY=VALUE", param_hint="--label")
        given[key] = value
    body = dict(body)
    if name or not body.get("displayName"):
        body["displayName"] = name or ("job" if file == "-" else Path(file).stem)
    if given:
        kept = body.get("labels")
        body["labels"] = {**(kept if isinstance(kept, dict) else {}), **given}
    return body


def _send(ask: Callable[[Json], Json], found: JobFile, body: Json) -> Json:
    try:
        return ask(body)
    except ApiError as error:
        if not error.violations:
            raise
        details = [found.located(violation) for violation in error.violations]
        raise Failure("the server does not accept this job", details) from error

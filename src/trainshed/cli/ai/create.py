"""`trainshed ai custom-jobs create`: as gcloud's, and as documents print it."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.failure import Failure
from trainshed.client import ApiError, Client, Json, Violation

DONE = """CustomJob [{name}] is submitted successfully.

Your job is still active. You may view the status of your job with the command

  $ {path} describe {name}

or continue streaming the logs with the command

  $ {path} stream-logs {name}"""


def _switch(flag: str, text: str) -> Any:
    return click.option(f"--{flag}/--no-{flag}", default=None, help=text)


def _list(flag: str, metavar: str, text: str) -> Any:
    return click.option(flag, metavar=metavar, multiple=True, help=text)


@click.command("create", short_help="Create a job from --worker-pool-spec or --config.")
@click.option("--display-name", metavar="NAME", help="The job's name. [default: the file's, or one made up]")
@click.option("--config", metavar="FILE", help="A YAML file with the job's spec; - reads stdin.")
@click.option(
    "--worker-pool-spec",
    "pool_specs",
    metavar="KEY=VALUE,...",
    multiple=True,
    help="A pool: machine-type, replica-count, accelerator-type, accelerator-count, and container-image-uri "
    "or executor-image-uri with python-module. Repeatable; an empty one holds its place.",
)
@_list("--command", "WORD,...", "The command of every container; ^@@^a@@b for words with commas.")
@_list("--args", "WORD,...", "The arguments of every replica.")
@_list("--python-package-uris", "URI,...", "The packages of pools with executor-image-uri.")
@_list("--labels", "KEY=VALUE,...", "Labels.")
@_switch("enable-web-access", "Offer a shell in running replicas.")
@_switch("enable-dashboard-access", "Offer the replicas' dashboards.")
@click.option("--network", metavar="NETWORK", help="The network the job is peered with.")
@click.option("--service-account", metavar="EMAIL", help="Who the job runs as.")
@click.option("--persistent-resource-id", metavar="ID", help="The machines kept for it.")
@click.option("--kms-key", metavar="KEY", help="The key that encrypts the job; a full name, or with:")
@click.option("--kms-keyring", metavar="NAME", help="its ring,")
@click.option("--kms-location", metavar="NAME", help="its location,")
@click.option("--kms-project", metavar="NAME", help="its project.")
@formatted
@spoken
def command(client: Client, config: str | None, form: str | None, **given: Any) -> None:
    """Create a job from --worker-pool-spec or --config.

    Both may be given: the pools of the flags then take the place of the file's.

    \b
    Example:
      trainshed ai custom-jobs create --region=us-central1 --config=job.yaml
    """
    from trainshed.cli.ai.output import Output

    if config is None and not given["pool_specs"]:
        raise click.UsageError("at least one of --config | --worker-pool-spec must be specified.")
    output = Output.parse(form or "none")
    job = _created(client, config, given)
    path = click.get_current_context().command_path.rpartition(" ")[0]
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(DONE.format(name=job["name"], path=path), err=True)
    output.one(job)


def _created(client: Client, config: str | None, given: Json) -> Json:
    from trainshed.cli import job_file
    from trainshed.cli.ai.wish import Key, Wish

    kms = {name: given.pop(f"kms_{name}") for name in ("key", "keyring", "location", "project")}
    wish = Wish(kms=Key(**kms), **given)
    file = None if config is None else job_file.read(*_content(config), partial=bool(wish.pool_specs))
    for flag in wish.unused:
        click.echo(
            f"note: {flag} is for pools of --worker-pool-spec; those of {config} stay as they are.", err=True
        )
    body = wish.body(file, (client.project, client.location), datetime.now(UTC))
    try:
        return client.create(body)
    except ApiError as error:
        if file is None or not error.violations:
            raise
        found = tuple(_placed(file, one, bool(wish.pool_specs)) for one in error.violations)
        raise ApiError(error.code, error.status, error.message, found) from error


def _content(config: str) -> tuple[str, bytes]:
    if config == "-":
        return "stdin", sys.stdin.buffer.read()
    try:
        return config, Path(config).read_bytes()
    except OSError as error:
        raise Failure(f"Unable to read file [{config}]: {error.strerror}") from error


def _placed(file: Any, violation: Violation, has_pools: bool) -> Violation:
    """The violation with the line of the file it is about; a pool of the flags has none."""
    if has_pools and "worker_pool_specs" in violation.field:
        return violation
    place = file.place(violation.field)
    return Violation(violation.field, f"{violation.description} ({place})")

"""`trainshed ai custom-jobs create`: as gcloud's, and as documents print it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from trainshed.cli.ai.flags import encrypted, formatted, spoken, switch
from trainshed.cli.failure import CommandFailed
from trainshed.client import Client, Json

if TYPE_CHECKING:
    from trainshed.cli.ai.local_package import LocalPackage

DONE = """CustomJob [{name}] is submitted successfully.

Your job is still active. You may view the status of your job with the command

  $ {path} describe {name}

or continue streaming the logs with the command

  $ {path} stream-logs {name}"""


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
    "or executor-image-uri with python-module. With local-package-path (and script or python-module; "
    "requirements=a;b) the first sends a folder, which all run. Repeatable; an empty one holds its place.",
)
@_list("--command", "WORD,...", "The command of every container; ^@@^a@@b for words with commas.")
@_list("--args", "WORD,...", "The arguments of every replica.")
@_list("--python-package-uris", "URI,...", "The packages of pools with executor-image-uri.")
@_list("--labels", "KEY=VALUE,...", "Labels.")
@switch("enable-web-access", "Offer a shell in running replicas.")
@switch("enable-dashboard-access", "Offer the replicas' dashboards.")
@click.option("--network", metavar="NETWORK", help="The network the job is peered with.")
@click.option("--service-account", metavar="EMAIL", help="Who the job runs as.")
@click.option("--persistent-resource-id", metavar="ID", help="The machines kept for it.")
@encrypted
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
    from trainshed.cli.follow import say_warnings

    if config is None and not given["pool_specs"]:
        raise click.UsageError("at least one of --config | --worker-pool-spec must be specified.")
    output = Output.parse(form or "none")
    job = _created(client, config, given)
    path = click.get_current_context().command_path.rpartition(" ")[0]
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(DONE.format(name=job["name"], path=path), err=True)
    say_warnings(job)
    output.show({key: value for key, value in job.items() if key != "warnings"})


def _created(client: Client, config: str | None, given: Json) -> Json:
    from trainshed.cli import job_file
    from trainshed.cli.ai.config import content, placed
    from trainshed.cli.ai.custom_job_words import CustomJobWords
    from trainshed.cli.ai.given import Key
    from trainshed.cli.ai.local_package import local_package

    kms = Key.taken(given)
    local = local_package(given["pool_specs"])
    job_words = CustomJobWords(kms=kms, local=local, **given)
    file = None if config is None else job_file.read(*content(config), partial=bool(job_words.pool_specs))
    for flag in job_words.unused:
        click.echo(
            f"note: {flag} is for pools of --worker-pool-spec; those of {config} stay as they are.", err=True
        )
    body = job_words.body(file, (client.project, client.location), datetime.now(UTC))
    with placed(file, but="worker_pool_specs" if job_words.pool_specs else ""):
        return client.create(body) if local is None else _sent(client, body, local)


def _sent(client: Client, body: Json, local: "LocalPackage") -> Json:
    """The job, with the folder it runs."""
    from trainshed.cli import submit_options
    from trainshed.cli.pack import FolderListing
    from trainshed.cli.submission import created, packed
    from trainshed.cli.trouble import EarlyError

    for note in local.notes:
        click.echo(f"note: {note}", err=True)
    try:
        parcel = packed(local.root, FolderListing(local.root), submit_options.SubmitWords({}), local.script)
        body["jobSpec"]["code"] = parcel.code
        return created(client, body, parcel)
    except EarlyError as error:
        raise CommandFailed(error.message, error.details) from error

"""`trainshed ai hp-tuning-jobs create`: as gcloud's, and with files as documents print them."""

from datetime import UTC, datetime
from typing import Any

import click

from trainshed.cli.ai.flags import encrypted, formatted, spoken, switch
from trainshed.client import Client, Json

DONE = """Hyperparameter tuning job [{id}] submitted successfully.

Your job is still active. You may view the status of your job with the command

  $ {path} describe {id} --region={region}

Job State: {state}"""
ALGORITHMS = ("algorithm-unspecified", "grid-search", "random-search", "sobol", "cma-es", "tpe")


@click.command("create", short_help="Create a tuning job from --config.")
@click.option("--display-name", metavar="NAME", help="The job's name. [default: the file's, or one made up]")
@click.option("--config", metavar="FILE", required=True, help="A YAML file with studySpec and trialJobSpec.")
@click.option("--max-trial-count", type=click.IntRange(1), metavar="N", help="How many trials. [default: 1]")
@click.option(
    "--parallel-trial-count", type=click.IntRange(1), metavar="N", help="How many at a time. [default: 1]"
)
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS, case_sensitive=False),
    help="How points are chosen. The first is the default; the last three are not Google's.",
)
@click.option("--labels", metavar="KEY=VALUE,...", multiple=True, help="Labels.")
@switch("enable-web-access", "Offer a shell in running replicas.")
@switch("enable-dashboard-access", "Offer the replicas' dashboards.")
@click.option("--network", metavar="NETWORK", help="The network the trials' jobs are peered with.")
@click.option("--service-account", metavar="EMAIL", help="Who the trials' jobs run as.")
@encrypted
@formatted
@spoken
def command(client: Client, config: str, form: str | None, **given: Any) -> None:
    """Create a tuning job from --config.

    The counts may also stand in the file, at its top or inside studySpec.

    \b
    Example:
      trainshed ai hp-tuning-jobs create --region=us-central1 --display-name=tune \\
        --config=hp_config.yaml --max-trial-count=20 --parallel-trial-count=4
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "none")
    job = _created(client, config, given)
    path = click.get_current_context().command_path.rpartition(" ")[0]
    words = {"id": str(job["name"]).rpartition("/")[2], "region": client.location, "state": job["state"]}
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(DONE.format(path=path, **words), err=True)
    output.show(job)


def _created(client: Client, config: str, given: Json) -> Json:
    from trainshed.cli import job_file
    from trainshed.cli.ai.config import content, placed
    from trainshed.cli.ai.given import Key
    from trainshed.cli.ai.tuning.words import EXAMPLE, TuningWords
    from trainshed.client.studies import StudiesClient

    kms = Key.taken(given)
    name, fields, lines = job_file.load(*content(config), EXAMPLE)
    words = TuningWords(kms=kms, **given)
    body = words.body(name, fields, (client.project, client.location), datetime.now(UTC))
    with placed(job_file.JobFile(name, body, lines, bare=False)):
        return StudiesClient(client).create(body)

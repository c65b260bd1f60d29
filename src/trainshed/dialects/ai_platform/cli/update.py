"""`trainshed ai-platform jobs update`: a job's labels, which are all of it that may change."""

from typing import cast

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.ai.listing import pairs, words
from trainshed.client import Client, Json
from trainshed.dialects.ai_platform.cli.complete import training_jobs
from trainshed.dialects.ai_platform.client import TrainingJobsClient


@click.command("update", short_help="Change a job's labels.")
@click.argument("job", metavar="JOB", shell_complete=training_jobs)
@click.option("--update-labels", metavar="KEY=VALUE,...", multiple=True, help="Labels to set.")
@click.option("--remove-labels", metavar="KEY,...", multiple=True, help="Labels to take away.")
@click.option("--clear-labels", is_flag=True, help="Take all away, before others are set.")
@formatted
@spoken
def command(
    client: Client,
    job: str,
    update_labels: tuple[str, ...],
    remove_labels: tuple[str, ...],
    clear_labels: bool,
    form: str | None,
) -> None:
    """Change a job's labels.

    \b
    Example:
      trainshed ai-platform jobs update digits_1 --update-labels=team=vision,phase=final
    """
    from trainshed.cli.ai.output import Output

    if not (update_labels or remove_labels or clear_labels):
        raise click.UsageError(
            "at least one of --clear-labels | --remove-labels | --update-labels must be specified."
        )
    if clear_labels and remove_labels:
        raise click.UsageError("argument --clear-labels: not together with --remove-labels.")
    output = Output.parse(form or "none")
    jobs = TrainingJobsClient(client)
    current = jobs.get(job).get("labels")
    before = cast(Json, current) if isinstance(current, dict) else {}
    gone = {key for text in remove_labels for key in words(text, "--remove-labels")}
    after = {} if clear_labels else {key: value for key, value in before.items() if key not in gone}
    for text in update_labels:
        after |= pairs(text, "--update-labels")
    if after == before:
        click.echo("No update to perform.", err=True)
        return
    output.show(jobs.update_labels(job, after))

"""`trainshed ai-platform jobs list`: id, state and time of each, or as --format says."""

import click

from trainshed.cli.ai.choice import Choice, choosing
from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client
from trainshed.dialects.ai_platform.client import TrainingJobsClient

TABLE = "jobId.basename(),state:label=STATUS,createTime.date(tz=LOCAL):label=CREATED"


@click.command("list", short_help="List jobs.")
@click.option("--uri", is_flag=True, help="Print the jobs' addresses.")
@formatted
@spoken
@choosing
def command(client: Client, choice: Choice, uri: bool, form: str | None) -> None:
    """List jobs.

    \b
    Example:
      trainshed ai-platform jobs list --filter=state=FAILED --limit=10
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "table", TABLE)
    jobs = TrainingJobsClient(client)
    shown = choice.of(jobs.all(choice.asked))
    if not shown:
        click.echo("Listed 0 items.", err=True)
    if uri:
        for job in shown:
            click.echo(client.url + jobs.path(str(job["jobId"])))
    else:
        output.many(shown)

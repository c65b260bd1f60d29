"""`trainshed ai-platform jobs describe`: the job as the API tells it, as YAML unless --format says other."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client
from trainshed.dialects.ai_platform.cli.complete import training_jobs
from trainshed.dialects.ai_platform.client import TrainingJobsClient

SUMMARY = "table(jobId,state,createTime.date(tz=LOCAL),startTime.date(tz=LOCAL),endTime.date(tz=LOCAL))"


@click.command("describe", short_help="Print a job.")
@click.argument("job", metavar="JOB", shell_complete=training_jobs)
@click.option("--summarize", is_flag=True, help="A table instead of the whole job.")
@formatted
@spoken
def command(client: Client, job: str, summarize: bool, form: str | None) -> None:
    """Print a job.

    \b
    Example:
      trainshed ai-platform jobs describe digits_1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or (SUMMARY if summarize else "yaml"))
    description = TrainingJobsClient(client).get(job)
    output.show(description)
    path = click.get_current_context().command_path.rpartition(" ")[0]
    click.echo(f"\nView logs with:\n  $ {path} stream-logs {description.get('jobId', job)}", err=True)

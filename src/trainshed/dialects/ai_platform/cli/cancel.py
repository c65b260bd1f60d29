"""`trainshed ai-platform jobs cancel`: asks a job to end. Like gcloud, it says nothing if that went well."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client
from trainshed.dialects.ai_platform.cli.complete import training_jobs
from trainshed.dialects.ai_platform.client import TrainingJobsClient


@click.command("cancel", short_help="Cancel a job.")
@click.argument("job", metavar="JOB", shell_complete=training_jobs)
@formatted
@spoken
def command(client: Client, job: str, form: str | None) -> None:
    """Cancel a job.

    \b
    Example:
      trainshed ai-platform jobs cancel digits_1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "none")
    TrainingJobsClient(client).cancel(job)
    output.show({})

"""`trainshed ai custom-jobs describe`: the job as the API tells it, as YAML unless --format says other."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.complete import jobs
from trainshed.client import Client


@click.command("describe", short_help="Print a job.")
@click.argument("job", metavar="CUSTOM_JOB", shell_complete=jobs)
@formatted
@spoken
def command(client: Client, job: str, form: str | None) -> None:
    """Print a job.

    \b
    Example:
      trainshed ai custom-jobs describe 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "yaml")
    description = client.get(job)
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    output.show(description)

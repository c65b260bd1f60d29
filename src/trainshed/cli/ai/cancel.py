"""`trainshed ai custom-jobs cancel`: asks a job to end, and says how to see it end."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.cli.complete import jobs
from trainshed.client import Client


@click.command("cancel", short_help="Cancel a job.")
@click.argument("job", metavar="CUSTOM_JOB", shell_complete=jobs)
@formatted
@spoken
def command(client: Client, job: str, form: str | None) -> None:
    """Cancel a job.

    \b
    Example:
      trainshed ai custom-jobs cancel 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "none")
    client.cancel(job)
    path = click.get_current_context().command_path.rpartition(" ")[0]
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(
        f"Request to cancel CustomJob [{job}] has been sent\n\n"
        f"You may view the status of your job with the command\n\n  $ {path} describe {job}",
        err=True,
    )
    output.show({})

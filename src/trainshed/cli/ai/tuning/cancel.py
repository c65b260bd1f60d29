"""`trainshed ai hp-tuning-jobs cancel`: asks a tuning job to end, and says how to see it end."""

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client


@click.command("cancel", short_help="Cancel a tuning job.")
@click.argument("job", metavar="HP_TUNING_JOB")
@formatted
@spoken
def command(client: Client, job: str, form: str | None) -> None:
    """Cancel a tuning job.

    \b
    Example:
      trainshed ai hp-tuning-jobs cancel 1763219255123456789 --region=us-central1
    """
    from trainshed.cli.ai.output import Output
    from trainshed.client.studies import StudiesClient

    output = Output.parse(form or "none")
    StudiesClient(client).cancel(job)
    path = click.get_current_context().command_path.rpartition(" ")[0]
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    click.echo(
        f"Request to cancel hyperparameter tuning job [{job}] has been sent\n\n"
        "You may view the status of your job with the command\n\n"
        f"  $ {path} describe {job} --region={client.location}",
        err=True,
    )
    output.show({})

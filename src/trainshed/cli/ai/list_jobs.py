"""`trainshed ai custom-jobs list`: gcloud itself filters, sorts and cuts what the server lists; so do we."""

from itertools import islice

import click

from trainshed.cli.ai.flags import formatted, spoken
from trainshed.client import Client, Json


@click.command("list", short_help="List jobs.")
@click.option(
    "--filter", "where", metavar="EXPRESSION", help="Such as 'state=JOB_STATE_RUNNING AND labels.team=a'."
)
@click.option("--sort-by", metavar="KEY,...", default="", help="Order by these; ~KEY for the reverse.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="At most N.")
@click.option(
    "--page-size", metavar="N", type=click.IntRange(1), expose_value=False, help="Taken, without effect."
)
@click.option("--uri", is_flag=True, help="Print the jobs' addresses.")
@formatted
@spoken
def command(
    client: Client, where: str | None, sort_by: str, limit: int | None, uri: bool, form: str | None
) -> None:
    """List jobs.

    \b
    Example:
      trainshed ai custom-jobs list --region=us-central1 --filter=state=JOB_STATE_FAILED \\
        --format='table(name.basename(),displayName,createTime)'
    """
    from trainshed.cli.ai.condition import parse
    from trainshed.cli.ai.output import Output

    output = Output.parse(form or "yaml")
    condition = parse(where) if where else None
    # The server need not tell more than is shown, unless there is something to choose from.
    found = client.jobs(limit=None if condition or sort_by else limit)
    jobs = [job for job in found if condition is None or condition(job)]
    shown = list(islice(_sorted(jobs, sort_by), limit))
    click.echo(f"Using endpoint [{client.url}/]", err=True)
    if not shown:
        click.echo("Listed 0 items.", err=True)
    if uri:
        for job in shown:
            click.echo(f"{client.url}/v1/{job['name']}")
    else:
        output.many(shown)


def _sorted(jobs: list[Json], keys: str) -> list[Json]:
    from trainshed.cli.ai.listing import words
    from trainshed.cli.ai.path import Path

    for key in reversed(words(keys, "--sort-by")):  # a stable sort by the last key first sorts by all
        path = Path.parse(key.lstrip("~"))
        jobs = sorted(jobs, key=path.order, reverse=key.startswith("~"))
    return jobs

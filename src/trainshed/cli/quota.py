"""`trainshed quota`: what a project may have of each resource, what is in use, and what jobs wait for."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

HEADERS = ["METRIC", "LIMIT", "IN USE", "WAITING"]


@click.command("quota", short_help="Show what a project may have of the machines, has, and waits for.")
@as_json
@connected
def command(client: Client, as_json: bool) -> None:
    """Show what a project may have of the machines, has, and waits for.

    The projects of one share have it together. A limit of spot jobs (preemptible) is that of all machines;
    it is shown where there are such jobs.

    \b
    Example:
      trainshed quota --project vision
    """
    quotas = client.machines().quotas()
    click.echo(json.dumps(quotas, indent=2) if as_json else drawn(quotas))


def drawn(quotas: list[Json]) -> str:
    from trainshed.cli.table import table

    return table(HEADERS, [_row(quota) for quota in quotas if _is_of_interest(quota)])


def _is_of_interest(quota: Json) -> bool:
    is_spot = str(quota.get("metric", "")).startswith("preemptible_")
    return not is_spot or bool(quota.get("usage") or quota.get("waiting"))


def _row(quota: Json) -> list[str]:
    metric = str(quota.get("metric", ""))
    amount = words.size if metric.endswith("memory") else _count
    return [metric, *(amount(quota.get(name)) for name in ("limit", "usage", "waiting"))]


def _count(value: object) -> str:
    return f"{float(str(value)):g}"

"""`trainshed audit`: who changed what, from where, and who was refused."""

import json

import click

from trainshed.cli.options import as_json, at_most, connected
from trainshed.client import Client, Json

HEADERS = ["TIME", "WHO", "FROM", "ANSWER", "DID", "REASON"]


@click.command("audit", short_help="Show who changed what, from where, and who was refused.")
@click.option("--who", metavar="ACCOUNT", default="", help="Only what this account did.")
@click.option("--in", "only", metavar="PROJECT", default="", help="Only what concerns this project.")
@click.option("--refused", is_flag=True, help="Only what was refused.")
@at_most("At most N rows, the newest.")
@as_json
@connected
def command(client: Client, who: str, only: str, refused: bool, limit: int, as_json: bool) -> None:
    """Show who changed what, from where, and who was refused. The newest come last.

    \b
    Example:
      trainshed audit --refused
    """
    from trainshed.cli.table import table

    asked: Json = {"who": who, "project": only, "refused": "true" if refused else ""}
    rows = client.accounts().audited(limit, **asked)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        click.echo(table(HEADERS, [_row(row) for row in reversed(rows)]) or "nothing is written down yet")


def _did(row: Json) -> str:
    words = f"{row.get('method', '')} {row.get('path', '')}"
    words += f": {row['what']}" if "what" in row else ""
    return f"{words} (x{row['count']})" if "count" in row else words


def _row(row: Json) -> list[str]:
    return [
        str(row.get("time", ""))[:19].replace("T", " "),
        str(row.get("who", "")).removeprefix("account "),
        str(row.get("address", "")),
        "" if row.get("allowed") and int(row.get("code", 200)) < 400 else str(row.get("code", "")),
        _did(row),
        str(row.get("reason", "")),
    ]

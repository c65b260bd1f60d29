"""`trainshed shares`: how the machines are divided among projects."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any, cast

import click

from trainshed.cli import words
from trainshed.cli.failure import Misuse
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

HEADERS = ["SHARE", "PROJECTS", "GUARANTEED", "IN USE", "LATELY", "RUNNING", "WAITING"]
_GIB = 1 << 30
_DEEPEST = 50  # tables in a file
_MOST_BITS = 900  # of a number


@click.group("shares", short_help="See and set the shares that projects have of the machines.")
def command() -> None:
    """See and set the shares that projects have of the machines.

    \b
    Example:
      trainshed shares set shares.toml
      trainshed shares ls
    """


@command.command("ls", short_help="Show what each share has, uses and waits for.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """Show what each share has, uses and waits for.

    LATELY is what it had at a time on average; what was a week ago counts half.

    \b
    Example:
      trainshed shares ls
    """
    _show(client.shares().all(), as_json)


@command.command("set", short_help="Set all shares as a file has them.")
@click.argument("file", type=click.Path(path_type=Path))
@as_json
@connected
def set_shares(client: Client, file: Path, as_json: bool) -> None:
    """Set all shares as a file in TOML has them: [share.NAME] with nominal, borrow, lend, weight and more.

    They count at once, in place of all that were set before.

    \b
    Example:
      trainshed shares set shares.toml
    """
    try:
        document = tomllib.loads(file.read_text("utf-8"))
        sent = {name: _as_json(value) for name, value in document.items()}
    except OSError as error:
        raise Misuse(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise Misuse(f"{file} is no TOML for shares: {error}.") from error
    if sent in ({}, {"share": {}}):
        raise Misuse(f"{file} has no shares: `trainshed shares rm` removes those that are set.")
    _show(client.shares().set(sent), as_json)


@command.command("rm", short_help="Remove all shares: jobs wait in one queue again.")
@connected
def rm(client: Client) -> None:
    """Remove all shares: jobs wait in one queue again. Running jobs go on.

    \b
    Example:
      trainshed shares rm
    """
    client.shares().set({})
    click.echo("no shares any more")


def _as_json(value: object, depth: int = 0) -> object:
    """What JSON does not have goes as text: the server says where it stands, with all else that is wrong."""
    if depth > _DEEPEST:
        raise ValueError(f"its tables are in each other, more than {_DEEPEST} deep")
    match value:
        case dict():
            table = cast("dict[str, object]", value)
            return {name: _as_json(item, depth + 1) for name, item in table.items()}
        case list():
            return [_as_json(item, depth + 1) for item in cast("list[object]", value)]
        case float() if not math.isfinite(value):
            return str(value)
        case int() if value.bit_length() > _MOST_BITS:
            return "so large a number"
        case bool() | int() | float():
            return value
        case _:
            return str(value)


def _show(shares: list[Json], as_json: bool) -> None:
    from trainshed.cli.table import table

    if as_json:
        click.echo(json.dumps(shares, indent=2))
    elif shares:
        click.echo(table(HEADERS, [_cells(share) for share in shares]))
    else:
        click.echo("no shares: all jobs wait in one queue")


def _cells(share: Json) -> list[str]:
    running = words.part(share, "running")
    states = ", ".join(f"{count} {standing.lower()}" for standing, count in running.items())
    return [
        "  " * int(share["depth"]) + str(share["name"]),
        ", ".join(map(str, words.parts(share, "projects"))),
        "all machines" if not share["depth"] else _amounts(words.part(share, "nominal")) or "nothing",
        _amounts(words.part(share, "used")) or "-",
        _amounts(words.part(share, "usedLately")) or "-",
        states or "-",
        str(share["waiting"]),
    ]


def _amounts(amounts: dict[str, Any]) -> str:
    return ", ".join(_amount(item, float(amount)) for item, amount in amounts.items())


def _amount(item: str, amount: float) -> str:
    return f"{amount / _GIB:.3g} GiB" if item == "memory" else f"{amount:.3g} {item}"

"""`trainshed groups`: accounts that get roles together."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client


@click.group("groups", short_help="See, set and remove groups: accounts that get roles together.")
def command() -> None:
    """See, set and remove groups: accounts that get roles together.

    \b
    Example:
      trainshed groups set vision ann@example.org bob@example.org
      trainshed roles grant user group:vision --project vision
    """


@command.command("ls", short_help="List all groups with their members.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """List all groups with their members.

    \b
    Example:
      trainshed groups ls
    """
    from trainshed.cli.table import table

    groups = client.accounts().groups()
    rows = [[str(group["name"]), ", ".join(map(str, words.parts(group, "members")))] for group in groups]
    click.echo(json.dumps(groups, indent=2) if as_json else table(["GROUP", "MEMBERS"], rows) or "no groups")


@command.command("set", short_help="Make a group, or give one other members.")
@click.argument("name")
@click.argument("members", nargs=-1)
@as_json
@connected
def set_members(client: Client, name: str, members: tuple[str, ...], as_json: bool) -> None:
    """Make a group, or give one other members: it has those that are named, and no others.

    \b
    Example:
      trainshed groups set vision ann@example.org bob@example.org
    """
    group = client.accounts().set_group(name, list(members))
    click.echo(json.dumps(group, indent=2) if as_json else f"{name}: {', '.join(members) or 'nobody'}")


@command.command("rm", short_help="Remove a group, and the roles it has.")
@click.argument("name")
@connected
def rm(client: Client, name: str) -> None:
    """Remove a group, and the roles it has.

    \b
    Example:
      trainshed groups rm vision
    """
    client.accounts().remove_group(name)
    click.echo(f"{name} is removed")

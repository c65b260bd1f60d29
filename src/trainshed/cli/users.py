"""`trainshed users`: who may come in, beside the owner of the server."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

HEADERS = ["NAME", "KIND", "CALLED", "SINCE", "STATE", "ROLES"]


@click.group("users", short_help="See, add, disable and remove accounts of people and services.")
def command() -> None:
    """See, add, disable and remove accounts of people and services.

    Without any account, whoever has the server's token may do everything.

    \b
    Example:
      trainshed users add ann@example.org
      trainshed roles grant user ann@example.org --project vision
      trainshed tokens new --for ann@example.org
    """


@command.command("ls", short_help="List all accounts, with their roles.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """List all accounts, with their roles.

    \b
    Example:
      trainshed users ls
    """
    from trainshed.cli.table import table

    accounts = client.accounts().all()
    if as_json:
        click.echo(json.dumps(accounts, indent=2))
    else:
        click.echo(table(HEADERS, [_row(account) for account in accounts]) or "there are no accounts")


@command.command("add", short_help="Add an account.")
@click.argument("name")
@click.option("--display-name", metavar="TEXT", default="", help="What people call it.")
@click.option("--service", is_flag=True, help="A service account: for programs, not for a person.")
@as_json
@connected
def add(client: Client, name: str, display_name: str, service: bool, as_json: bool) -> None:
    """Add an account. It has no rights before it gets a role, and cannot come in without a token.

    \b
    Example:
      trainshed users add ann@example.org --display-name "Ann Lee"
    """
    account = client.accounts().add(name, "serviceAccount" if service else "user", display_name)
    if as_json:
        click.echo(json.dumps(account, indent=2))
        return
    click.echo(f"{name} is added")
    click.echo(f"give it a role:   trainshed roles grant user {name} --project PROJECT", err=True)
    click.echo(f"and a token:      trainshed tokens new --for {name}", err=True)


@command.command("disable", short_help="Let an account come in no more, and end its tokens.")
@click.argument("name")
@connected
def disable(client: Client, name: str) -> None:
    """Let an account come in no more.

    All its tokens and sessions end, and what it has open. Its roles, its groups and its jobs stay.

    \b
    Example:
      trainshed users disable ann@example.org
    """
    client.accounts().set_disabled(name, True)
    click.echo(f"{name} cannot come in any more; all its tokens and sessions have ended")


@command.command("unlink", short_help="Let an account belong to who signs in as it next.")
@click.argument("name")
@connected
def unlink(client: Client, name: str) -> None:
    """Let an account belong to who signs in as it next, with the provider.

    An account belongs to the person of the provider who signed in as it first. Nobody else gets it, not even
    somebody with the same mail address. All tokens and sessions of the account end with it.

    \b
    Example:
      trainshed users unlink ann@example.org
    """
    client.accounts().unlink(name)
    click.echo(f"{name} belongs to who signs in as it next; all tokens and sessions before have ended")


@command.command("enable", short_help="Let a disabled account come in again.")
@click.argument("name")
@connected
def enable(client: Client, name: str) -> None:
    """Let a disabled account come in again, with a new token or the provider.

    \b
    Example:
      trainshed users enable ann@example.org
    """
    client.accounts().set_disabled(name, False)
    click.echo(f"{name} can come in again")
    click.echo(f"with a new token: trainshed tokens new --for {name}", err=True)


@command.command("rm", short_help="Remove an account with its tokens and roles.")
@click.argument("name")
@connected
def rm(client: Client, name: str) -> None:
    """Remove an account with its tokens and roles. Its jobs stay.

    \b
    Example:
      trainshed users rm ann@example.org
    """
    client.accounts().remove(name)
    click.echo(f"{name} is removed")


def _row(account: Json) -> list[str]:
    return [
        str(account.get("name", "")),
        "service" if account.get("kind") == "serviceAccount" else "person",
        str(account.get("displayName", "")),
        str(account.get("createTime", ""))[:10],
        "disabled" if account.get("disabled") else "",
        ", ".join(role_words(role) for role in words.parts(account, "roles")),
    ]


def role_words(role: Json) -> str:
    project = str(role.get("project", ""))
    where = "everywhere" if project == "*" else f"in {project}"
    member = str(role.get("member", ""))
    through = f" (as {member.removeprefix('group:')})" if member.startswith("group:") else ""
    return f"{role.get('role')} {where}{through}"

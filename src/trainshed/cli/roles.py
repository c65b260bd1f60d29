"""`trainshed roles`: who may do what in a project, or everywhere."""

import json
from typing import cast

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json

ROLES = ("viewer", "user", "admin")
KINDS = ("user:", "serviceAccount:", "group:")
_PREFIX = "roles/trainshed."
_TRIES = 5  # where somebody else changes roles at the same time
everywhere = click.option("--everywhere", is_flag=True, help="In all projects, and for the server itself.")


@click.group("roles", short_help="See, give and take roles: viewer, user or admin.")
def command() -> None:
    """See, give and take roles: viewer, user or admin.

    A viewer sees all of a project. A user also submits jobs and writes to buckets. An admin also gives roles.
    An admin everywhere also adds users.

    \b
    Example:
      trainshed roles grant user ann@example.org --project vision
      trainshed roles grant viewer group:all --everywhere
    """


@command.command("ls", short_help="List who has which role in the project.")
@everywhere
@as_json
@connected
def ls(client: Client, everywhere: bool, as_json: bool) -> None:
    """List who has which role in the project.

    \b
    Example:
      trainshed roles ls --project vision
    """
    from trainshed.cli.table import table

    policy = client.accounts().policy("" if everywhere else client.project)
    if as_json:
        click.echo(json.dumps(policy, indent=2))
        return
    rows = [
        [str(binding["role"]).removeprefix(_PREFIX), str(member)]
        for binding in words.parts(policy, "bindings")
        for member in cast("list[str]", binding.get("members", []))
    ]
    where = "everywhere" if everywhere else f"in {client.project}"
    click.echo(table(["ROLE", "WHO"], rows) or f"nobody has a role {where}")


@command.command("grant", short_help="Give somebody a role in the project.")
@click.argument("role", type=click.Choice(ROLES))
@click.argument("member")
@everywhere
@connected
def grant(client: Client, role: str, member: str, everywhere: bool) -> None:
    """Give somebody a role in the project: an account, or group:NAME.

    \b
    Example:
      trainshed roles grant user ann@example.org --project vision
    """
    name = _change(client, role, member, everywhere, is_granted=True)
    click.echo(f"{name} is {role} {'everywhere' if everywhere else f'in {client.project}'}")


@command.command("revoke", short_help="Take a role in the project away.")
@click.argument("role", type=click.Choice(ROLES))
@click.argument("member")
@everywhere
@connected
def revoke(client: Client, role: str, member: str, everywhere: bool) -> None:
    """Take a role in the project away.

    \b
    Example:
      trainshed roles revoke user ann@example.org --project vision
    """
    name = _change(client, role, member, everywhere, is_granted=False)
    click.echo(f"{name} is not {role} {'everywhere' if everywhere else f'in {client.project}'} any more")


def _change(client: Client, role: str, member: str, everywhere: bool, *, is_granted: bool) -> str:
    """The member in full, once the roles are changed. The etag tells where somebody else was faster."""
    accounts, project = client.accounts(), "" if everywhere else client.project
    for left in reversed(range(_TRIES)):
        policy = accounts.policy(project)
        bindings = cast("list[Json]", policy.get("bindings", []))
        names = {name for binding in bindings for name in cast("list[str]", binding.get("members", []))}
        full = _full(client, member, names)
        kept: list[Json] = []
        for binding in bindings:
            members = cast("list[str]", binding.get("members", []))
            is_it = binding["role"] == f"{_PREFIX}{role}"
            kept.append({"role": binding["role"], "members": [m for m in members if not is_it or m != full]})
        if is_granted:
            kept.append({"role": f"{_PREFIX}{role}", "members": [full]})
        try:
            accounts.set_policy(project, {"bindings": kept, "etag": policy.get("etag", "")})
            return full
        except ApiError as error:
            if "etag" not in error.message or not left:
                raise
    return member


def _full(client: Client, member: str, names: set[str]) -> str:
    """With its kind. A service account is found by its name where we may look, else a person is meant."""
    if member.startswith(KINDS):
        return member
    known = [name for name in names if name.partition(":")[2] == member and not name.startswith("group:")]
    if known:
        return known[0]
    try:
        kinds = {str(account["name"]): str(account["kind"]) for account in client.accounts().all()}
    except ApiError:
        kinds = {}
    return f"{kinds.get(member, 'user')}:{member}"

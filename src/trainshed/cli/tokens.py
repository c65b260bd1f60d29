"""`trainshed tokens`: the words by which an account comes in. The server keeps none of them."""

import json

import click

from trainshed.cli import words
from trainshed.cli.options import as_json, connected
from trainshed.client import Client, Json

HEADERS = ["ID", "TITLE", "OF", "MADE", "LAST USED", "UNTIL", "LIMITED TO"]
USUAL_DAYS = 90


@click.group("tokens", short_help="Make, see and revoke tokens of accounts.")
def command() -> None:
    """Make, see and revoke tokens of accounts.

    \b
    Example:
      trainshed tokens new --title laptop --days 30
      trainshed tokens revoke 1a2b3c4d5e
    """


@command.command("new", short_help="Make a token and print it, once.")
@click.option("--title", metavar="TEXT", default="", help="What it is for.")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(0, 3660),
    default=USUAL_DAYS,
    show_default=True,
    help="It counts for N days; 0: until it is revoked.",
)
@click.option("--role", type=click.Choice(("viewer", "user", "admin")), help="It can do no more than that.")
@click.option("--only-project", "projects", metavar="NAME", multiple=True, help="It counts there only.")
@click.option("--for", "account", metavar="ACCOUNT", default="", help="Of another account than yours.")
@as_json
@connected
def new(
    client: Client,
    title: str,
    days: int,
    role: str | None,
    projects: tuple[str, ...],
    account: str,
    as_json: bool,
) -> None:
    """Make a token and print it, once. Nobody can see it again: the server does not keep it.

    \b
    Example:
      trainshed tokens new --for ann@example.org --title laptop
    """
    body: Json = {"title": title, "account": account, "projects": list(projects), "role": role or ""}
    body["lifetime"] = f"{days * 86_400}s"
    made = client.accounts().make_token(body)
    if as_json:
        click.echo(json.dumps(made, indent=2))
        return
    click.echo(str(made["token"]))
    until = f"until {str(made['expireTime'])[:10]}" if made.get("expireTime") else "until it is revoked"
    click.echo(
        f"token {made['id']} of {made['account']} counts {until}; use it with: trainshed login", err=True
    )


@command.command("ls", short_help="List tokens: yours, or those of an account.")
@click.option("--of", "account", metavar="ACCOUNT", default="", help="Of another account than yours.")
@as_json
@connected
def ls(client: Client, account: str, as_json: bool) -> None:
    """List tokens: yours, or those of an account.

    \b
    Example:
      trainshed tokens ls --of ann@example.org
    """
    from trainshed.cli.table import table

    tokens = client.accounts().tokens(account)
    if as_json:
        click.echo(json.dumps(tokens, indent=2))
    else:
        click.echo(table(HEADERS, [_row(token) for token in tokens]) or "there are no tokens")


@command.command("revoke", short_help="End a token now, and the console's sessions made with it.")
@click.argument("token")
@connected
def revoke(client: Client, token: str) -> None:
    """End a token now, and the console's sessions made with it.

    \b
    Example:
      trainshed tokens revoke 1a2b3c4d5e
    """
    client.accounts().revoke(token)
    click.echo(f"token {token} does not count any more")


def _row(token: Json) -> list[str]:
    limits = [str(token.get("role", "")), *map(str, words.parts(token, "projects"))]
    return [
        str(token.get("id", "")),
        str(token.get("title", "")),
        str(token.get("account", "")),
        str(token.get("createTime", ""))[:10],
        str(token.get("lastUseDate") or "never"),
        str(token.get("expireTime", ""))[:10],
        ", ".join(filter(None, limits)),
    ]

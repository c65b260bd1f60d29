"""`trainshed login`: remember a server and who we are there, for the commands that follow."""

import json
import os
import sys
from pathlib import Path

import click

from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import as_json, failed
from trainshed.cli.users import role_words
from trainshed.client import Client, ClientError, Json, Target, discover
from trainshed.client.discovery import LOGIN


@click.command("login", short_help="Sign in to a server, for all commands that follow.")
@click.option("--url", metavar="URL", help="The server's address. [default: the one that is used now]")
@click.option("--project", metavar="NAME", default="", help="The project of commands that name none.")
@click.option(
    "--browser/--no-browser",
    "browser",
    default=None,
    help="Sign in by a browser of this machine, or by one elsewhere with a code. "
    "[default: where the server knows a provider]",
)
@click.option(
    "--token", "by_token", is_flag=True, help="Give a token, where the server knows a provider too."
)
@click.option("--out", "is_out", is_flag=True, help="Forget who we are, and the server.")
@as_json
def command(
    url: str | None, project: str, browser: bool | None, by_token: bool, is_out: bool, as_json: bool
) -> None:
    """Sign in to a server, for all commands that follow.

    Where the server knows a provider, you sign in with it in a browser. Else a token is asked for, or read
    from a pipe. The token is kept in login.json of TRAINSHED_HOME, for you alone. Variables such as
    TRAINSHED_URL and TRAINSHED_TOKEN count before it.

    \b
    Example:
      trainshed login --url http://gpu-box:8080 --project vision
      trainshed login --no-browser      on a machine without one
      trainshed login --out
    """
    target: Target | None = None
    try:
        target = discover(url=url)
        path = target.home / LOGIN
        if is_out:
            path.unlink(missing_ok=True)
            click.echo(
                json.dumps({}) if as_json else "signed out; tokens stay valid: trainshed tokens revoke"
            )
            return
        token = _typed() if by_token else _from_browser(target, browser) or _typed()
        with Client(target.url, token, ca=target.ca) as client:
            me = client.accounts().me()
        _keep(path, {"url": target.url, "token": token, **({"project": project} if project else {})})
    except ClientError as error:
        raise failed(error, target) from error
    except OSError as error:
        raise CommandFailed(f"cannot write {error.filename}: {error.strerror}") from error
    click.echo(json.dumps(me, indent=2) if as_json else words_of(me, target.url))


def _typed() -> str:
    asks = click.prompt("token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
    token = str(asks).strip()
    if not token or len(token.split()) != 1:
        raise CommandFailed("a token is one word", ["get one with: trainshed tokens new"])
    return token


def _from_browser(target: Target, browser: bool | None) -> str:
    """A token that somebody allows in a browser; empty where they give one here."""
    if browser is None and not sys.stdin.isatty():
        return ""
    with Client(target.url, None, ca=target.ca) as client:
        if "provider" not in client.health():
            if browser is None:
                return ""
            raise CommandFailed(
                f"the server at {target.url} knows no provider to sign in with",
                [
                    "give a token: trainshed login",
                    "or start the server with: --oidc-issuer, --oidc-client-id",
                ],
            )
        from trainshed.cli.browser_login import by_browser, by_code
        from trainshed.cli.console import has_browser

        is_here = has_browser() if browser is None else browser
        return by_browser(client) if is_here else by_code(client)


def words_of(me: Json, url: str) -> str:
    roles = ", ".join(map(role_words, me.get("roles") or ()))
    rights = "may do everything" if me.get("kind") == "owner" else roles or "has no role yet"
    return f"{me.get('name')} at {url}: {rights}"


def _keep(path: Path, login: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(login, file)
    draft.rename(path)

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


@click.command("login", short_help="Sign in to a server with a token, for all commands that follow.")
@click.option("--url", metavar="URL", help="The server's address. [default: the one that is used now]")
@click.option("--project", metavar="NAME", default="", help="The project of commands that name none.")
@click.option("--out", "is_out", is_flag=True, help="Forget who we are, and the server.")
@as_json
def command(url: str | None, project: str, is_out: bool, as_json: bool) -> None:
    """Sign in to a server with a token, for all commands that follow.

    The token is asked for, or read from a pipe. It is kept in login.json of TRAINSHED_HOME, for you alone.
    Variables such as TRAINSHED_URL and TRAINSHED_TOKEN count before it.

    \b
    Example:
      trainshed login --url http://gpu-box:8080 --project vision
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
        asks = click.prompt("token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.read()
        token = str(asks).strip()
        if not token or len(token.split()) != 1:
            raise CommandFailed("a token is one word", ["get one with: trainshed tokens new"])
        with Client(target.url, token) as client:
            me = client.accounts().me()
        _keep(path, {"url": target.url, "token": token, **({"project": project} if project else {})})
    except ClientError as error:
        raise failed(error, target) from error
    except OSError as error:
        raise CommandFailed(f"cannot write {error.filename}: {error.strerror}") from error
    click.echo(json.dumps(me, indent=2) if as_json else words_of(me, target.url))


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

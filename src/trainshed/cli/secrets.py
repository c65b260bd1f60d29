"""`trainshed secrets`: secrets of a project, which jobs take by name. No command shows a value."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json


@click.group("secrets", short_help="Keep secrets of a project, which jobs take by name.")
def command() -> None:
    """Keep secrets of a project, which jobs take by name.

    A job has one where a variable is secret://NAME. Nobody is shown a value again.

    \b
    Example:
      trainshed secrets set hf-token
      trainshed submit train.py --env HF_TOKEN=secret://hf-token
    """


@command.command("set", short_help="Set a secret's value: asked for, from stdin, or from a file.")
@click.argument("name")
@click.option("--from-file", metavar="FILE", type=click.Path(path_type=Path), help="Take the value from it.")
@as_json
@connected
def set_value(client: Client, name: str, from_file: Path | None, as_json: bool) -> None:
    """Set a secret's value: asked for, from stdin, or from a file.

    It replaces the value before. Jobs that start from now on get it. A line's end behind what comes from
    stdin is left out; a file is taken as it is.

    \b
    Example:
      trainshed secrets set hf-token
      pass show hf | trainshed secrets set hf-token
      trainshed secrets set service-key --from-file key.json
    """
    version = client.named_secrets().set(name, _value(name, from_file))
    if as_json:
        click.echo(json.dumps(version, indent=2))
    else:
        number = str(version.get("name", "")).rpartition("/")[2]
        click.echo(f"set secret {name}, version {number}; a job takes it by: --env VARIABLE=secret://{name}")


@command.command("ls", short_help="List secrets: names, who set them, when they were used.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """List secrets: names, who set them, when they were used.

    \b
    Example:
      trainshed secrets ls
    """
    secrets = client.named_secrets().all()
    if as_json:
        click.echo(json.dumps(secrets, indent=2))
    elif not secrets:
        click.echo(f"no secrets in {client.project}; set one with: trainshed secrets set NAME", err=True)
    else:
        click.echo(_drawn(secrets))


@command.command("rm", short_help="Delete secrets; jobs that run keep their values.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@as_json
@connected
def rm(client: Client, names: tuple[str, ...], as_json: bool) -> None:
    """Delete secrets; jobs that run keep their values.

    \b
    Example:
      trainshed secrets rm hf-token
    """
    for name in names:
        try:
            client.named_secrets().delete(name)
        except ApiError as error:
            if error.code != 404:
                raise
            raise CommandFailed(
                f"there is no secret {name!r} in {client.project}", ["trainshed secrets ls lists them"]
            ) from error
        if not as_json:
            click.echo(f"deleted secret {name}")
    if as_json:
        click.echo(json.dumps({"deleted": list(names)}, indent=2))


@command.command("rotate-key", short_help="Encrypt all values anew, with a new key of the server.")
@as_json
@connected
def rotate_key(client: Client, as_json: bool) -> None:
    """Encrypt all values anew, with a new key of the server.

    Values of all projects and of all jobs. Nothing is lost if the server is killed meanwhile: run it again.

    \b
    Example:
      trainshed secrets rotate-key
    """
    answer = client.named_secrets().rotate_key()
    if as_json:
        click.echo(json.dumps(answer, indent=2))
    else:
        click.echo(f"there is a new key; values encrypted with it: {answer.get('resealed', 0)}")


def _value(name: str, file: Path | None) -> bytes:
    """Never from the command line, which everybody on the machine can read."""
    if file is not None:
        try:
            return file.read_bytes()
        except OSError as error:
            raise CommandFailed(f"cannot read {file}: {error.strerror}") from error
    if sys.stdin.isatty():
        return click.prompt(f"value of {name}", hide_input=True, err=True).encode()
    return sys.stdin.buffer.read().removesuffix(b"\n").removesuffix(b"\r")


def _drawn(secrets: list[Json]) -> str:
    from trainshed.cli.table import table

    now = datetime.now(UTC)
    rows = [
        [
            words.identity(item),
            str(item.get("versionCount", 0)),
            words.age(item.get("createTime"), now),
            words.age(item.get("updateTime"), now) if item.get("updateTime") else "",
            str(item.get("updatedBy") or item.get("createdBy") or ""),
            words.age(item.get("lastUsedTime"), now) if item.get("lastUsedTime") else "never",
        ]
        for item in secrets
    ]
    return table(["NAME", "VERSIONS", "AGE", "SET", "BY", "USED"], rows)

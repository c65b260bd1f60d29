"""`trainshed docker-shim`: a `docker` for gcloud, where there is only Podman, or gcr.io must mean another."""

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from trainshed.cli.docker_words import Registries, asked, registries
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import connect

NAME = "docker"
MARK = "# Made by `trainshed docker-shim install`"
SCRIPT = """#!/bin/sh
{mark}: the `docker` that gcloud calls.
TRAINSHED_DOCKER_SHIM="$0" exec {python} -P -m trainshed.cli docker-shim run {options} -- "$@"
"""
WAYS = ("auto", "podman", "docker", "server")

_registry = click.option(
    "--registry",
    "places",
    metavar="HOST=PLACE",
    multiple=True,
    help="Where a registry is: another HOST:PORT, or `server`. *.gcr.io=… is for many; HOST= for itself. "
    "[default: Google's are `server`]",
)
_by = click.option(
    "--by",
    type=click.Choice(WAYS),
    default="auto",
    show_default=True,
    help="What does the work: Podman, a real Docker, or Trainshed's server; auto is the first that is here.",
)


@click.group("docker-shim", short_help="Make a `docker` that gcloud can build and run images with.")
def command() -> None:
    """Make a `docker` that gcloud can build and run images with.

    For `gcloud ai custom-jobs create` with local-package-path and `gcloud ai custom-jobs local-run`, on
    machines that have only Podman or no engine at all, and where gcr.io must mean a registry of your own.

    \b
    Example:
      trainshed docker-shim install ~/shim --registry gcr.io=127.0.0.1:5000
      PATH=~/shim:$PATH gcloud ai custom-jobs local-run --executor-image-uri=python:3.11 --script=task.py
    """


@command.command("install", short_help="Write it into a folder, which then goes first on PATH.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_registry
@_by
@click.option("-f", "--force", is_flag=True, help="Also over a `docker` that is none of ours.")
def install(folder: Path, places: tuple[str, ...], by: str, force: bool) -> None:
    """Write it into a folder, which then goes first on PATH.

    \b
    Example:
      trainshed docker-shim install ~/shim
      export PATH=~/shim:$PATH
    """
    _read(places)
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and not force and MARK not in path.read_text(errors="replace"):
            raise CommandFailed(
                f"{path} is there already, and none of ours", ["give another folder, or --force"]
            )
        draft = folder / f".{NAME}"
        draft.write_text(script(places, by))
        draft.chmod(0o755)
        draft.replace(path)
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror}") from error
    click.echo(f"wrote {path}")
    if shutil.which(NAME) != str(path.absolute()):
        click.echo(f"put it first: export PATH={shlex.quote(str(folder.absolute()))}:$PATH", err=True)


@command.command("print", short_help="Print it.")
@_registry
@_by
def show(places: tuple[str, ...], by: str) -> None:
    """Print it.

    \b
    Example:
      trainshed docker-shim print --registry '*.gcr.io=127.0.0.1:5000' > /usr/local/bin/docker
    """
    _read(places)
    click.echo(script(places, by), nl=False)


@command.command("run", short_help="Do what docker would.", context_settings={"ignore_unknown_options": True})
@_registry
@_by
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def run(places: tuple[str, ...], by: str, words: tuple[str, ...]) -> int:
    """Do what docker would: what the script calls.

    \b
    Example:
      trainshed docker-shim run -- build -t gcr.io/p/digits:1 .
    """
    request, where = asked(words), _read(places)
    program = engine(by, os.environ.get("TRAINSHED_DOCKER_SHIM", ""))
    if program:
        from trainshed.cli.docker_podman import PodmanCommand

        return PodmanCommand(program, where, is_podman=Path(program).name != NAME).run(request, list(words))
    from trainshed.cli.docker_server import VERSION, Server

    if not request.verb or words[0] in ("--version", "-v", "version"):
        click.echo(VERSION)
        return 0
    with connect("", "", "") as client:
        return Server(client, where).run(request)


def script(places: tuple[str, ...], by: str) -> str:
    options = [word for place in places for word in ("--registry", place)]
    options += ["--by", by] if by != "auto" else []
    return SCRIPT.format(mark=MARK, python=shlex.quote(sys.executable), options=shlex.join(options))


def engine(by: str, own: str) -> str:
    """The program that does the work; empty where the server does. `own` is the script, which must not."""
    for way in ("podman", NAME) if by == "auto" else (by,):
        for folder in os.environ.get("PATH", "").split(os.pathsep) if way != "server" else ():
            path = Path(folder) / way
            if path.is_file() and os.access(path, os.X_OK) and not _is_ours(path, own):
                return str(path)
    if by in ("podman", NAME):
        raise CommandFailed(f"there is no {by} on PATH", ["install it, or let the server do it: --by server"])
    return ""


def _is_ours(path: Path, own: str) -> bool:
    if own and Path(own).exists() and path.samefile(own):
        return True
    with path.open("rb") as file:
        return MARK.encode() in file.read(200)


def _read(places: tuple[str, ...]) -> Registries:
    try:
        return registries(places)
    except ValueError as error:
        raise Misuse(str(error)) from error

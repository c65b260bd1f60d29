"""`trainshed images`: what containers are made of: see, build, bring, carry away and remove images."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.image_cache import cache
from trainshed.cli.options import as_json, connected
from trainshed.cli.paint import draw, harmless
from trainshed.client import Client, ClientError, Json

PIECE = 1 << 20
EVERY = 0.2  # seconds between two words on a terminal
SELDOM = 2.0  # ... and elsewhere


@click.group("images", short_help="See, build, load, save, push, pull and remove container images.")
def command() -> None:
    """See, build, load, save, push, pull and remove container images.

    They are the images of the container engine (Docker or Podman) that the server runs jobs with.

    \b
    Example:
      trainshed images build -t digits:1 .
      trainshed images save digits:1 -o digits.tar
      trainshed images load -i digits.tar
      trainshed images tag digits:1 127.0.0.1:5000/digits:1
      trainshed images push 127.0.0.1:5000/digits:1
    """


command.add_command(cache)


@command.command("ls", short_help="List the images that are here.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """List the images that are here.

    \b
    Example:
      trainshed images ls --json
    """
    images = client.images().all()
    click.echo(json.dumps(images, indent=2) if as_json else drawn(images))


@command.command("build", short_help="Build an image from a folder with a Dockerfile.")
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option(
    "-t", "--tag", "tags", metavar="NAME", multiple=True, required=True, help="Its name; or several."
)
@click.option("-f", "--file", metavar="FILE", default="", help="The Dockerfile. [default: FOLDER/Dockerfile]")
@click.option(
    "--build-arg", "args", metavar="NAME=VALUE", multiple=True, help="For an ARG in the Dockerfile."
)
@click.option("--target", "stage", metavar="STAGE", default="", help="Stop at that stage.")
@click.option("--pull", is_flag=True, help="Ask registries for newer base images.")
@click.option("--no-cache", is_flag=True, help="Do every step anew.")
@as_json
@connected
def build(
    client: Client,
    folder: Path,
    tags: tuple[str, ...],
    file: str,
    args: tuple[str, ...],
    as_json: bool,
    **how: str | bool,
) -> None:
    """Build an image from a folder with a Dockerfile.

    The folder is sent to the server, less what its .dockerignore leaves out. Ctrl-C gives the build up; an
    engine may still end the step it is in.

    \b
    Example:
      trainshed images build -t digits:1 --build-arg VERSION=2 .
    """
    from trainshed.cli.context import Context

    context = Context(folder, file)
    more = {"target": str(how["stage"])} if how["stage"] else {}
    more |= {"pull": "true"} if how["pull"] else {}
    more |= {"noCache": "true"} if how["no_cache"] else {}
    steps = client.images().build(
        _counted(context.tar()), tags, dockerfile=context.dockerfile, args=_args(args), more=more
    )
    _follow(steps, as_json, every_line=True)


@command.command("pull", short_help="Fetch images from their registries.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@as_json
@connected
def pull(client: Client, names: tuple[str, ...], as_json: bool) -> int:
    """Fetch images from their registries.

    A job that needs an image which is not here fetches it by itself; this does it before, or brings what the
    registry has under the same name now. Ctrl-C stops watching, not fetching.

    \b
    Example:
      trainshed images pull 127.0.0.1:5000/digits:1
    """
    try:
        _each(names, client.images().pull, as_json)
    except KeyboardInterrupt:
        click.echo("it goes on being fetched; see: trainshed images ls", err=True)
        return 130
    return 0


@command.command("push", short_help="Send images to their registries.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@as_json
@connected
def push(client: Client, names: tuple[str, ...], as_json: bool) -> None:
    """Send images to their registries.

    NAME begins with the registry (`trainshed images tag` gives an image such a name).

    \b
    Example:
      trainshed images push 127.0.0.1:5000/digits:1
    """
    _each(names, client.images().push, as_json)


@command.command("load", short_help="Bring images from a file that save wrote.")
@click.argument("path", metavar="[FILE]", default="")
@click.option(
    "-i", "--input", "given", metavar="FILE", default="", help="The file. [default: standard input]"
)
@as_json
@connected
def load(client: Client, path: str, given: str, as_json: bool) -> None:
    """Bring images from a file that save wrote.

    `docker save` and `podman save` write such files too, compressed or not.

    \b
    Example:
      trainshed images load -i digits.tar
    """
    if path and given:
        raise Misuse("give one file")
    name = path or given
    if name in ("", "-") and sys.stdin.isatty():
        raise Misuse("name the file: trainshed images load FILE")
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if name in ("", "-") else Path(name).open("rb") as file:
            _follow(client.images().load(_counted(_pieces(file))), as_json, every_line=True)
    except OSError as error:
        raise CommandFailed(f"cannot read {name or 'standard input'}: {error.strerror}") from error


@command.command("save", short_help="Write images into a file, to be loaded elsewhere.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", default="", help="The file. [default: standard output]")
@connected
def save(client: Client, names: tuple[str, ...], output: str) -> None:
    """Write images into a file, to be loaded elsewhere.

    The file appears once it is whole.

    \b
    Example:
      trainshed images save digits:1 -o digits.tar
    """
    pieces = _counted(client.images().save(names), "received")
    if output in ("", "-"):
        if sys.stdout.isatty():
            raise Misuse("an image is nothing for a terminal: name a file with -o")
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    part = Path(f"{output}.part")
    try:
        with part.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        part.replace(output)
    except OSError as error:
        raise CommandFailed(f"cannot write {output}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    size = words.size(Path(output).stat().st_size)
    click.echo(f"saved {', '.join(names)} into {output} ({size})", err=True)


@command.command("tag", short_help="Give an image another name.")
@click.argument("name")
@click.argument("new")
@connected
def tag(client: Client, name: str, new: str) -> None:
    """Give an image another name.

    \b
    Example:
      trainshed images tag digits:1 127.0.0.1:5000/digits:1
    """
    client.images().tag(name, new)
    click.echo(f"{name} is {new} too")


@command.command("rm", short_help="Remove images, by name or id.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-f", "--force", is_flag=True, help="Also where ended containers are made of it.")
@as_json
@connected
def rm(client: Client, names: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Remove images, by name or id.

    A name goes; the image goes with its last. One that a job wants which is not over is refused.

    \b
    Example:
      trainshed images rm digits:1
    """
    removed = client.images().remove(names, force=force)
    click.echo(
        json.dumps(removed, indent=2) if as_json else "\n".join(f"removed {_short(item)}" for item in removed)
    )


def drawn(images: list[Json]) -> str:
    from trainshed.cli.table import table

    now = datetime.now(UTC)
    rows = [
        [
            str(name),
            str(item["id"]).removeprefix("sha256:")[:12],
            words.size(item.get("sizeBytes")),
            words.age(item.get("createTime"), now),
            str(len(words.parts(item, "jobs")) or ""),
        ]
        for item in images
        for name in words.parts(item, "names") or ["-"]
    ]
    return table(["NAME", "ID", "SIZE", "AGE", "JOBS"], rows)


def _short(name: str) -> str:
    return name[:19] if name.startswith("sha256:") else name


def _each(names: tuple[str, ...], work: "Callable[[str], Iterator[Json]]", as_json: bool) -> None:
    for name in names:
        _follow(work(name), as_json)


def _follow(steps: Iterator[Json], as_json: bool, *, every_line: bool = False) -> None:
    """Says on stderr how it goes, and on stdout how it ended."""
    last: Json = {}
    line = _Line()
    try:
        for step in steps:
            if last and every_line:
                click.echo(str(last["message"]), err=True)
            elif last:
                line.say(str(last["message"]))
            last = step
    except ClientError:
        if last and every_line:
            click.echo(str(last["message"]), err=True)
        raise
    finally:
        line.end()
    click.echo(json.dumps(last) if as_json else str(last.get("message", "")))


class _Line:
    """One line on a terminal that is written anew; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._said, self._said_at = "", float("-inf")

    def say(self, text: str) -> None:
        now = time.monotonic()
        if text == self._said or now - self._said_at < (EVERY if self._is_shown else SELDOM):
            return
        self._said, self._said_at = text, now
        text = harmless(text)
        draw(sys.stderr, f"\r\x1b[K{text}" if self._is_shown else f"{text}\n")

    def end(self) -> None:
        if self._is_shown and self._said:
            draw(sys.stderr, "\r\x1b[K")


def _counted(pieces: Iterator[bytes], what: str = "sent") -> Iterator[bytes]:
    """The same, with a word on a terminal on how much it was so far."""
    line, count = _Line(), 0
    try:
        for piece in pieces:
            yield piece
            count += len(piece)
            if sys.stderr.isatty():
                line.say(f"{what} {words.size(count)}")
    finally:
        line.end()


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield piece


def _args(given: tuple[str, ...]) -> dict[str, str]:
    """As docker has it: a name alone takes its value from the environment."""
    result: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not name:
            raise Misuse(f"{item!r} is no NAME=VALUE")
        if equals or name in os.environ:
            result[name] = value if equals else os.environ[name]
    return result

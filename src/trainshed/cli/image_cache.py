"""`trainshed images cache`: images that are here before a job asks for them, and stay."""

import json
from datetime import UTC, datetime

import click

from trainshed.cli import words
from trainshed.cli.failure import CommandFailed
from trainshed.cli.options import as_json, connected
from trainshed.client import ApiError, Client, Json


@click.group("cache", short_help="Have images here before jobs ask for them, and keep them.")
def cache() -> None:
    """Have images here before jobs ask for them, and keep them.

    The server pulls a cache's images in the background and removes none of them while it is there. Jobs use
    the cache that has most of their images by themselves.

    \b
    Example:
      trainshed images cache create digits 127.0.0.1:5000/digits:1 --retention-days 30
      trainshed images cache ls
    """


@cache.command("create", short_help="Make one: its images are pulled in the background.")
@click.argument("name")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True)
@click.option(
    "--retention-days", metavar="N", type=click.IntRange(0), default=0, help="It goes then. [default: never]"
)
@as_json
@connected
def create(client: Client, name: str, images: tuple[str, ...], retention_days: int, as_json: bool) -> None:
    """Make one: its images are pulled in the background.

    \b
    Example:
      trainshed images cache create digits 127.0.0.1:5000/digits:1
    """
    made = client.image_caches().create(name, images, retention_days=retention_days)
    if as_json:
        click.echo(json.dumps(made, indent=2))
    else:
        click.echo(f"image cache {name} is being made; how far it is, says: trainshed images cache ls")


@cache.command("ls", short_help="List image caches and how far they are.")
@as_json
@connected
def ls(client: Client, as_json: bool) -> None:
    """List image caches and how far they are.

    \b
    Example:
      trainshed images cache ls --json
    """
    caches = client.image_caches().all()
    if as_json:
        click.echo(json.dumps(caches, indent=2))
    elif not caches:
        click.echo("no image caches; make one with: trainshed images cache create NAME IMAGE", err=True)
    else:
        click.echo(drawn(caches))


@cache.command("rm", short_help="Delete image caches; their images stay until room is needed.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@connected
def rm(client: Client, names: tuple[str, ...]) -> None:
    """Delete image caches; their images stay until room is needed.

    \b
    Example:
      trainshed images cache rm digits
    """
    for name in names:
        try:
            client.image_caches().delete(name)
        except ApiError as error:
            if error.code != 404:
                raise
            raise CommandFailed(
                f"there is no image cache {name!r}", ["trainshed images cache ls lists them"]
            ) from error
        click.echo(f"deleted image cache {name}")


def drawn(caches: list[Json]) -> str:
    from trainshed.cli.paint import Paint
    from trainshed.cli.table import table

    paint, now = Paint.for_stdout(), datetime.now(UTC)
    colours = {"READY": "green", "CREATING": "yellow", "FAILED": "red"}
    rows = [
        [
            words.identity(item),
            paint(str(item.get("state")), colours.get(str(item.get("state")))),
            f"{item.get('progress', 0)}%",
            words.size(item["sizeBytes"]) if item.get("sizeBytes") else "",
            words.age(item.get("createTime"), now),
            f"{item['retentionDays']}d" if item.get("retentionDays") else "",
            ", ".join(map(str, words.parts(item, "images"))),
            str(item.get("reason") or ""),
        ]
        for item in caches
    ]
    return table(["NAME", "STATE", "PROGRESS", "SIZE", "AGE", "RETENTION", "IMAGES", "WHY"], rows)

"""Old versions of objects on the command line: how they are written, brought back, and kept at all.

A version is written gs://BUCKET/OBJECT#GENERATION, as `ls -a` prints it. An object whose very name ends like
that is meant first. `cli/storage.py` calls this for every place that people write.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import targeted
from trainshed.cli.transfer import is_in_bucket, parse
from trainshed.client import ApiError, Target
from trainshed.client.storage import StorageClient

_VERSION = re.compile(r"(.+)#([0-9]{16,19})", re.DOTALL)  # microseconds since 1970, of this century


@dataclass(frozen=True, slots=True)
class Versioned:
    """A place, without the generation that was written behind it."""

    place: str
    generation: str = ""


def versioned(storage: StorageClient, place: str) -> Versioned:
    match = _VERSION.fullmatch(place) if is_in_bucket(place) else None
    if match is None or not parse(match[1])[1]:
        return Versioned(place)
    try:
        storage.get(*parse(place))
    except ApiError as error:
        if error.code != 404:
            raise
        return Versioned(match[1], match[2])
    return Versioned(place)


def versions_of(storage: StorageClient, bucket: str, name: str) -> list[dict[str, Any]]:
    """All versions of one object, the oldest first."""
    return [item for item in storage.objects(bucket, name, versions=True) if item["name"] == name]


@click.command("update", short_help="Keep old versions of objects, or rules that delete.")
@click.argument("place", metavar="gs://BUCKET")
@click.option("--versioning/--no-versioning", default=None, help="Keep what is replaced or deleted.")
@click.option(
    "--lifecycle-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON with the rules by which objects are deleted.",
)
@click.option("--clear-lifecycle", is_flag=True, help="No rules any more.")
@targeted
def update(
    where: Target, place: str, versioning: bool | None, lifecycle_file: Path | None, clear_lifecycle: bool
) -> None:
    """Keep old versions of objects, or rules by which objects are deleted.

    \b
    Example:
      trainshed storage buckets update gs://models --versioning
      trainshed storage buckets update gs://models --lifecycle-file rules.json

    Rules are written as for gcloud: {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]}
    """
    body: dict[str, Any] = {}
    if versioning is not None:
        body["versioning"] = {"enabled": versioning}
    if lifecycle_file is not None and clear_lifecycle:
        raise Misuse("--lifecycle-file and --clear-lifecycle cannot both be meant")
    if lifecycle_file is not None:
        body["lifecycle"] = _rules(lifecycle_file)
    elif clear_lifecycle:
        body["lifecycle"] = None
    if not body:
        raise Misuse("say what to change: --versioning, --no-versioning, --lifecycle-file, --clear-lifecycle")
    bucket, name = parse(place)
    if name:
        raise Misuse(f"{place!r} is not a bucket: write gs://{bucket}")
    StorageClient(where.url, where.token, where.ca).update_bucket(bucket, body)


def _rules(path: Path) -> dict[str, Any]:
    try:
        content: object = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise CommandFailed(f"{path} holds no JSON: {error}") from error
    # As gcloud takes it too: the rules alone, or the part of a bucket that holds them.
    rules = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    rules = rules.get("lifecycle", rules)
    if not isinstance(rules, dict) or "rule" not in rules:
        raise CommandFailed(f'{path} holds no rules: write {{"rule": [...]}}')
    return cast("dict[str, Any]", rules)


@click.group("objects", short_help="Bring back old versions of objects.")
def objects() -> None:
    """Bring back old versions of objects."""


@objects.command("restore", short_help="Make an old version the live object again.")
@click.argument("places", metavar="gs://BUCKET/OBJECT[#GENERATION]...", nargs=-1, required=True)
@targeted
def restore(where: Target, places: tuple[str, ...]) -> None:
    """Make an old version the live object again; without a GENERATION, the last one.

    \b
    Example:
      trainshed storage ls -a gs://models/best.pt
      trainshed storage objects restore gs://models/best.pt#1767268800000000
    """
    storage = StorageClient(where.url, where.token, where.ca)
    for place in places:
        meant = versioned(storage, place)
        bucket, name = parse(meant.place, named=True)
        generation = meant.generation
        if not generation:
            old = [item for item in versions_of(storage, bucket, name) if "timeDeleted" in item]
            if not old:
                raise CommandFailed(f"there is no old version of {meant.place}")
            generation = str(old[-1]["generation"])
        storage.copy((bucket, name), (bucket, name), generation)
        click.echo(f"Restored {meant.place}#{generation}", err=True)

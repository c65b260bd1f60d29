"""`trainshed storage`: buckets and what is in them, with gcloud's words: cp, mv, ls, cat, rm, rsync, buckets.

A bucket may lie on the server or elsewhere; all of it goes through the server's own API.
"""

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trainshed.cli.carry import carry, each, stream
from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.options import as_json, targeted
from trainshed.cli.transfer import SCHEMES, Object, Transfer, is_in_bucket, jobs_of, parse
from trainshed.cli.versions import objects, update, versioned, versions_of
from trainshed.cli.wildcard import Named, meant
from trainshed.client import ApiError, Target
from trainshed.client.storage import StorageClient


@click.group("storage", short_help="Copy, list, print and remove objects in buckets.")
def command() -> None:
    """Copy, list, print and remove objects in buckets.

    \b
    Example:
      trainshed storage buckets create gs://models
      trainshed storage cp -r out gs://models/run-1
      trainshed storage rsync -r data s3://datasets/cats
      trainshed storage ls gs://models
      trainshed storage ls -a gs://models/run-1/model.pt
      trainshed storage cp 'gs://models/run-1/*.json' .

    In names of objects * and ? stand for what is between slashes, ** for slashes too, [ab] for one of these;
    quote them, or some shells will not pass them on. An object of that very name comes first.
    """


@command.command("cp", short_help="Copy files and objects, either way.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.argument("target", metavar="TARGET")
@click.option("-r", "-R", "--recursive", is_flag=True, help="Folders, and all objects below a prefix.")
@targeted
def cp(where: Target, sources: tuple[str, ...], target: str, recursive: bool) -> None:
    """Copy files and objects, either way. A TARGET that ends with / or is a folder is copied into.

    Of a folder, links to files in it are followed; other links, pipes and devices are skipped and told.

    \b
    Example:
      trainshed storage cp -r out gs://models/run-1
      tar c out | trainshed storage cp - gs://models/out.tar
    """
    storage = StorageClient(where.url, where.token, where.ca)
    if target == "-" and not recursive:
        sources = tuple(item.place for item in meant(storage, sources, folders=False))
    if "-" in (*sources, target):
        return stream(storage, sources, target, recursive)
    carry(storage, _jobs(storage, sources, target, recursive))


@command.command("mv", short_help="Move files and objects, either way.")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.argument("target", metavar="TARGET")
@targeted
def mv(where: Target, sources: tuple[str, ...], target: str) -> None:
    """Move files and objects, either way; a folder or prefix goes with all below it.

    They are removed where they were once all are whole where they go. An object that was replaced meanwhile
    stays.
    """
    if "-" in (*sources, target):
        raise Misuse("- cannot be moved: copy it with cp, or write ./- where a file has that name")
    storage = StorageClient(where.url, where.token, where.ca)
    jobs = _jobs(storage, sources, target, True)
    if any(job.generation for job in jobs):
        raise Misuse("old versions are not moved: copy one with cp, and remove it with rm")
    generations: dict[str | Object, str] = {
        job.source: str(storage.get(*job.source)["generation"])
        for job in jobs
        if not isinstance(job.source, str)
    }
    if any(job.source == job.target for job in jobs):
        raise CommandFailed("the source and the target are the same")
    carry(storage, jobs)  # before any is removed: a link leads to another
    each(jobs, lambda job: _remove(storage, job.source, generations.get(job.source, "")))


@command.command("rsync", short_help="Make a folder or prefix like another.")
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("-r", "-R", "--recursive", is_flag=True, help="Also what is in folders below.")
@click.option(
    "-d",
    "--delete-unmatched-destination-objects",
    "removes",
    is_flag=True,
    help="Remove what is at the target only.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@as_json
@targeted
def rsync(
    where: Target, source: str, target: str, recursive: bool, removes: bool, dry_run: bool, as_json: bool
) -> None:
    """Make the TARGET folder or prefix like SOURCE: copy what is missing there or differs in size or MD5.

    \b
    Example:
      trainshed storage rsync -r data s3://datasets/cats --dry-run
    """
    from trainshed.cli.rsync import plan

    storage = StorageClient(where.url, where.token, where.ca)
    todo = plan(storage, source, target, recursive=recursive, removes=removes)
    if as_json:
        summary = {
            "copies": [
                {"source": _shown(job.source, source), "target": _shown(job.target, target), "size": job.size}
                for job in todo.copies
            ],
            "removals": [_shown(removal, target) for removal in todo.removals],
            "dryRun": dry_run,
        }
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    elif dry_run:
        for job in todo.copies:
            click.echo(f"Would copy {_shown(job.source, source)} to {_shown(job.target, target)}")
        for place in todo.removals:
            click.echo(f"Would remove {_shown(place, target)}")
    if not dry_run:
        carry(storage, todo.copies)
        each(todo.removals, lambda place: _remove(storage, place))


@command.command("ls", short_help="List buckets, or what is in one.")
@click.argument("place", metavar="[gs://BUCKET/PREFIX]", required=False)
@click.option("-l", "--long", is_flag=True, help="With size and time.")
@click.option("-r", "-R", "--recursive", is_flag=True, help="Everything below.")
@click.option("-a", "--all-versions", is_flag=True, help="Old versions too, each with its generation.")
@as_json
@targeted
def ls(
    where: Target, place: str | None, long: bool, recursive: bool, all_versions: bool, as_json: bool
) -> None:
    """List buckets, or what is in one."""
    storage = StorageClient(where.url, where.token, where.ca)
    if place is None or place in SCHEMES:
        return _list_buckets(where, place, as_json)
    places = sorted(meant(storage, [place], folders=True), key=lambda listed: listed.is_folder)
    groups = [(item, _listed(storage, item, recursive, all_versions)) for item in places]
    if as_json:
        click.echo(json.dumps([item for _, group in groups for item in group], indent=2, ensure_ascii=False))
        return
    for listed, group in groups:
        if listed.is_folder and len(groups) > 1 and not recursive:
            click.echo(f"\n{listed.place}:" if listed is not places[0] else f"{listed.place}:")
        for entry in group:
            click.echo(_line(entry, place, long, all_versions))


def _listed(storage: StorageClient, named: Named, recursive: bool, versions: bool) -> list[dict[str, Any]]:
    """What `ls` tells of a place: what begins with its name or, where one folder does, what is in it."""
    bucket, prefix = parse(named.place)
    if named.metadata and named.is_object:
        return versions_of(storage, bucket, prefix) if versions else [named.metadata]
    delimiter = "" if recursive else "/"
    result = list(storage.objects(bucket, prefix, delimiter, versions=versions))
    if not recursive and not prefix.endswith("/") and result == [{"prefix": f"{prefix}/"}]:
        result = list(storage.objects(bucket, f"{prefix}/", delimiter, versions=versions))
    if not result and prefix:
        raise CommandFailed(f"there is nothing at {named.place}")
    return result


def _line(entry: dict[str, Any], place: str, long: bool, versions: bool) -> str:
    name = _shown((parse(place)[0], entry.get("prefix") or entry["name"]), place)
    if versions and "generation" in entry:
        name += f"#{entry['generation']}"
    if not long:
        return name
    return (f"{entry['size']:>14}  {entry['updated']}  " if "size" in entry else " " * 42) + name


@command.command("cat", short_help="Print objects.")
@click.argument("places", metavar="gs://BUCKET/OBJECT...", nargs=-1, required=True)
@targeted
def cat(where: Target, places: tuple[str, ...]) -> None:
    """Print objects."""
    storage = StorageClient(where.url, where.token, where.ca)
    for named in meant(storage, places, folders=False):
        version = versioned(storage, named.place)
        place = parse(version.place, named=True)
        storage.fetch(*place, sys.stdout.buffer, lambda _: None, version.generation)
    sys.stdout.buffer.flush()


@command.command("rm", short_help="Remove objects.")
@click.argument("places", metavar="gs://BUCKET/OBJECT...", nargs=-1, required=True)
@click.option(
    "-r", "-R", "--recursive", is_flag=True, help="Everything below; a bucket on the server goes too."
)
@click.option("-a", "--all-versions", is_flag=True, help="Old versions too: nothing can be brought back.")
@targeted
def rm(where: Target, places: tuple[str, ...], recursive: bool, all_versions: bool) -> None:
    """Remove objects, or one version of an object: gs://BUCKET/OBJECT#GENERATION.

    Where a bucket keeps versions, what is removed stays as an old version unless -a is given. With -r and a
    bucket alone, all versions go, and the bucket.
    """
    storage = StorageClient(where.url, where.token, where.ca)
    versions: list[tuple[str, str, str]] = []  # bucket, name, version; all are looked for before any goes
    emptied: list[str] = []
    for named in meant(storage, places, folders=recursive):
        version = versioned(storage, named.place)
        bucket, name = parse(version.place, named=not recursive)
        if not name and storage.bucket(bucket).get("scheme", "gs") == "gs":
            emptied.append(bucket)  # one that is kept elsewhere stays, empty
        if version.generation:
            versions.append((bucket, name, version.generation))
        elif all_versions or bucket in emptied:
            versions += _versions_at(storage, bucket, name, recursive)
        else:
            live = _below(storage, named.place) if recursive else [(bucket, name)]
            versions += [(*place, "") for place in live]
    each(list(dict.fromkeys(versions)), lambda named: storage.delete(*named[:2], version=named[2]))
    for bucket in emptied:
        storage.delete_bucket(bucket)


def _versions_at(
    storage: StorageClient, bucket: str, name: str, recursive: bool
) -> list[tuple[str, str, str]]:
    """All versions of the object and, where asked, of those below it."""
    below = name.rstrip("/") + "/" if name else ""
    result = [
        (bucket, str(item["name"]), str(item["generation"]))
        for item in storage.objects(bucket, name.rstrip("/") if recursive else name, versions=True)
        if item["name"] == name or (recursive and str(item["name"]).startswith(below))
    ]
    if not result and name:
        raise CommandFailed(f"there is nothing at gs://{bucket}/{name}")
    return result


def _below(storage: StorageClient, place: str) -> list[Object]:
    """The objects at a place and below it."""
    bucket, name = parse(place)
    below = name.rstrip("/") + "/" if name else ""
    names = [str(item["name"]) for item in storage.objects(bucket, below)]
    with contextlib.suppress(ApiError):
        names += [str(storage.get(bucket, name)["name"])] if name and name not in names else []
    if not names and name:
        raise CommandFailed(f"there is nothing at {place}")
    return [(bucket, item) for item in names]


@command.group("buckets", short_help="Create, list, describe, update and delete buckets.")
def buckets() -> None:
    """Create, list, describe, update and delete buckets."""


buckets.add_command(update)
command.add_command(objects)


@buckets.command("create", short_help="Create a bucket.")
@click.argument("place", metavar="gs://BUCKET")
@targeted
def create(where: Target, place: str) -> None:
    """Create a bucket."""
    StorageClient(where.url, where.token, where.ca).create_bucket(
        parse(place)[0], where.project, where.location
    )


@buckets.command("list", short_help="List buckets.")
@as_json
@targeted
def list_(where: Target, as_json: bool) -> None:
    """List buckets."""
    _list_buckets(where, None, as_json)


@buckets.command("describe", short_help="Show what is known of a bucket, as JSON.")
@click.argument("place", metavar="gs://BUCKET")
@targeted
def describe(where: Target, place: str) -> None:
    """Show what is known of a bucket, as JSON."""
    bucket, name = parse(place)
    if name:
        raise Misuse(
            f"{place!r} is not a bucket: write gs://{bucket}, or `trainshed storage ls --json {place}`"
        )
    description = StorageClient(where.url, where.token, where.ca).bucket(bucket)
    click.echo(json.dumps(description, indent=2, ensure_ascii=False))


@buckets.command("delete", short_help="Delete an empty bucket.")
@click.argument("place", metavar="gs://BUCKET")
@targeted
def delete(where: Target, place: str) -> None:
    """Delete an empty bucket."""
    StorageClient(where.url, where.token, where.ca).delete_bucket(parse(place)[0])


def _list_buckets(where: Target, scheme: str | None, as_json: bool) -> None:
    matching = [
        bucket
        for bucket in StorageClient(where.url, where.token, where.ca).buckets(where.project)
        if scheme in (None, f"{bucket.get('scheme', 'gs')}://")
    ]
    if as_json:
        click.echo(json.dumps(matching, indent=2, ensure_ascii=False))
        return
    for item in matching:
        click.echo(f"{item.get('scheme', 'gs')}://{item['name']}/")


def _jobs(storage: StorageClient, sources: tuple[str, ...], target: str, recursive: bool) -> list[Transfer]:
    items = meant(storage, sources, folders=recursive)
    items = [item for item in items if not (item.is_object and item.place.endswith("/"))]  # holds nothing
    jobs: list[Transfer] = []
    for item in items:
        version, size = versioned(storage, item.place), item.size
        if version.generation:
            description = storage.get(*parse(version.place), version.generation)
            size = int(description["size"])
        for job in jobs_of(storage, version.place, target, recursive, len(items) > 1, size):
            jobs.append(replace(job, generation=version.generation))
    return jobs


def _remove(storage: StorageClient, place: str | Object, generation: str = "") -> None:
    if isinstance(place, str):
        try:
            Path(place).unlink()
        except OSError as error:
            raise CommandFailed(f"{place}: {error.strerror}") from error
    else:
        storage.delete(*place, generation)


def _shown(place: str | Object, like: str) -> str:
    """The place as people write it, with the scheme of the one they wrote."""
    if isinstance(place, str):
        return place
    scheme = like[: len("gs://")] if is_in_bucket(like) else "gs://"
    return f"{scheme}{place[0]}/{place[1]}"

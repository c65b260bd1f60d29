"""What an `rsync` has to do: what is missing or differs at the target is copied, what is only there may go.

Two things are the same when their sizes and MD5 or CRC32C are. A local file is read for that: times say less.
It changes nothing itself, and never takes an empty source for a request to remove everything.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.cli.transfer import Object, Transfer, files_below, is_in_bucket, parse, placed, told_skipped
from trainshed.client import ApiError
from trainshed.client.storage import KINDS, PIECE, Kind, StorageClient, Sum


@dataclass(frozen=True, slots=True)
class SyncItem:
    """A file or an object; `metadata` is what the API says of an object."""

    place: str | Object
    size: int
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SyncPlan:
    copies: tuple[Transfer, ...]
    removals: tuple[str | Object, ...] = ()


def plan(storage: StorageClient, source: str, target: str, *, recursive: bool, removes: bool) -> SyncPlan:
    if not (is_in_bucket(source) or is_in_bucket(target)):
        raise Misuse("one of SOURCE and TARGET must be in a bucket: gs://… or s3://…")
    if not is_in_bucket(source) and not Path(source).is_dir():
        raise CommandFailed(f"there is no folder {source}")
    skipped: list[str] = []
    tell = told_skipped(Path(source))

    def skip(below: str, why: str) -> None:
        skipped.append(below)
        tell(below, why)

    here = _things(storage, source, recursive, skip)
    if not here and is_in_bucket(source):
        _check_bucket(storage, source)  # an empty one is fine, one that is not there is a slip
    if not here and removes:
        raise CommandFailed(
            f"there is nothing at {source}, and -d would remove all at {target}", _instead(target)
        )
    there = _things(storage, target, recursive)
    copies = tuple(
        Transfer(thing.place, placed(target, name), thing.size)
        for name, thing in sorted(here.items())
        if (old := there.get(name)) is None or not _is_same(storage, thing, old)
    )
    kept = tuple(f"{name}/" for name in skipped)  # these are there, if not copied
    gone = tuple(
        thing.place
        for name, thing in sorted(there.items())
        if name not in here and not f"{name}/".startswith(kept)
    )
    return SyncPlan(copies, gone if removes else ())


def _instead(target: str) -> tuple[str, ...]:
    if not is_in_bucket(target):
        return ()
    return (f"to empty it on purpose: trainshed storage rm -r {target}",)


def _things(
    storage: StorageClient,
    place: str,
    recursive: bool,
    skipped: Callable[[str, str], None] = lambda _below, _why: None,
) -> dict[str, SyncItem]:
    """By the path below the place."""
    if is_in_bucket(place):
        return dict(_objects(storage, *parse(place), recursive))
    return dict(_files(Path(place), recursive, skipped))


def _objects(
    storage: StorageClient, bucket: str, name: str, recursive: bool
) -> Iterator[tuple[str, SyncItem]]:
    below = name.rstrip("/") + "/" if name else ""
    for item in storage.objects(bucket, below, "" if recursive else "/"):
        if "prefix" not in item and not str(item["name"]).endswith("/"):
            path = str(item["name"])
            yield path[len(below) :], SyncItem((bucket, path), int(item["size"]), item)


def _files(
    folder: Path, recursive: bool, skipped: Callable[[str, str], None]
) -> Iterator[tuple[str, SyncItem]]:
    if not folder.is_dir():
        return  # a target that is yet to be made
    for below, path in files_below(folder, recursive, skipped):
        is_draft = path.name.startswith(".") and path.name.endswith(".part")
        if not is_draft:
            yield below, SyncItem(str(path), path.stat().st_size)


def _check_bucket(storage: StorageClient, place: str) -> None:
    try:
        storage.bucket(parse(place)[0])
    except ApiError as error:
        raise CommandFailed(f"{place}: {error}") from error


def _is_same(storage: StorageClient, first: SyncItem, second: SyncItem) -> bool:
    if first.size != second.size:
        return False
    known = [_known(storage, thing) for thing in (first, second)]
    for kind in KINDS:
        if all(sums is None or sums[kind] for sums in known):
            first_sum, second_sum = (
                sums[kind] if sums is not None else _sum(str(thing.place), kind)
                for thing, sums in zip((first, second), known, strict=True)
            )
            return first_sum == second_sum
    return False


def _known(storage: StorageClient, thing: SyncItem) -> dict[Kind, str] | None:
    """The sums that are known of an object; None of a file."""
    if isinstance(thing.place, str):
        return None
    metadata = thing.metadata or {}
    if not metadata.get("crc32c") and not metadata.get("md5Hash"):
        metadata = storage.get(*thing.place)  # a list may tell less of an object than asking for it does
    return {"crc32c": str(metadata.get("crc32c", "")), "md5": str(metadata.get("md5Hash", ""))}


def _sum(path: str, kind: Kind) -> str:
    made = Sum(kind)
    with Path(path).open("rb") as file:
        while piece := file.read(PIECE):
            made.update(piece)
    return made.text

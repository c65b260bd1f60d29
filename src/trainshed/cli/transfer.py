"""What a `cp` means: which file or object goes where. Names from a bucket never lead out of the folder
copied into, and links in a folder never bring along what lies outside of it.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from trainshed.cli.failure import CommandFailed, Misuse
from trainshed.client import ApiError
from trainshed.client.storage import StorageClient

Object = tuple[str, str]  # bucket and name
SCHEMES = ("gs://", "s3://", "az://")  # how people write a bucket; which one it is, its name says


@dataclass(frozen=True, slots=True)
class Transfer:
    source: str | Object  # a path, or an object
    target: str | Object
    size: int
    generation: str = ""  # of the version that is copied, where it is not the live object


def parse(place: str, *, named: bool = False) -> Object:
    """Bucket and name of gs://BUCKET/NAME; the name may be empty unless one must be."""
    if not is_in_bucket(place):
        raise Misuse(f"{place!r} is not in a bucket: write gs://BUCKET/NAME or s3://BUCKET/NAME")
    bucket, _, name = place[len("gs://") :].partition("/")
    if not bucket or (named and not name):
        raise Misuse(f"{place!r} names no {'object' if bucket else 'bucket'}: write gs://BUCKET/NAME")
    return bucket, name


def is_in_bucket(place: str) -> bool:
    return place.startswith(SCHEMES)


def jobs_of(
    storage: StorageClient, source: str, target: str, recursive: bool, many: bool, size: int | None = None
) -> Iterator[Transfer]:
    """The copies; `size` is that of a source which is known to be an object."""
    into = many or target.endswith("/") or (not is_in_bucket(target) and Path(target).is_dir())
    into = into or (is_in_bucket(target) and not parse(target)[1])
    things = [(parse(source), "", size)] if size is not None else _sources(storage, source, recursive)
    for thing, below, length in things:
        # A folder's own name comes along where it is copied into another, as with cp.
        name = below if not into else f"{_last(source)}/{below}" if below else _last(source)
        yield Transfer(thing, placed(target, name), length)


def _sources(storage: StorageClient, source: str, recursive: bool) -> Iterator[tuple[str | Object, str, int]]:
    """Each thing, its path below the source ("" for the source itself), and its size."""
    if is_in_bucket(source):
        yield from _objects(storage, *parse(source), recursive)
        return
    path = Path(source)
    if path.is_file():
        yield source, "", path.stat().st_size
    elif path.is_dir() and recursive:
        for below, file in files_below(path, True, told_skipped(path)):
            yield str(file), below, file.stat().st_size
    elif path.is_dir():
        raise Misuse(f"{source} is a folder: copy it with -r")
    elif path.exists():
        instead = [] if path.is_socket() else [f"to copy what comes out of it: cp - TARGET < {plain(source)}"]
        raise CommandFailed(f"{plain(source)} is {_kind(path)}, not a file", instead)
    else:
        raise CommandFailed(f"there is no file {source}")


def _kind(path: Path) -> str:
    return "a pipe" if path.is_fifo() else "a socket" if path.is_socket() else "a device"


def _objects(
    storage: StorageClient, bucket: str, name: str, recursive: bool
) -> Iterator[tuple[str | Object, str, int]]:
    if not recursive:
        if not name or name.endswith("/"):
            raise Misuse(f"{bucket}/{name} is not one object: copy all below it with -r")
        yield (bucket, name), "", int(storage.get(bucket, name)["size"])
        return
    below, any_object = name.rstrip("/") + "/" if name else "", False
    for item in storage.objects(bucket, below):
        any_object = True
        if not item["name"].endswith("/"):  # a mark for a folder holds nothing
            yield (bucket, str(item["name"])), str(item["name"])[len(below) :], int(item["size"])
    if not any_object:
        try:
            yield (bucket, name), "", int(storage.get(bucket, name)["size"])
        except ApiError as error:
            raise CommandFailed(f"there is nothing at {bucket}/{name}") from error


def files_below(
    folder: Path, recursive: bool, skipped: Callable[[str, str], None]
) -> Iterator[tuple[str, Path]]:
    """Each file and its path below the folder; `skipped` is told what else there is, and why it stays."""
    root = os.path.realpath(folder)
    for above, folders, files in os.walk(folder, onerror=_refuse):
        links = [name for name in folders if (Path(above) / name).is_symlink()]
        if not recursive:
            folders.clear()
        for name in sorted([*files, *(links if recursive else ())]):
            file = Path(above) / name
            below = file.relative_to(folder).as_posix()
            if fault := _fault(file, root):
                skipped(below, fault)
            else:
                yield below, file


def _fault(path: Path, root: str) -> str:
    """Why it is not copied, or nothing."""
    if path.is_symlink():
        if not path.exists():
            return "a link that leads nowhere"
        if not Path(os.path.realpath(path)).is_relative_to(root):
            return f"a link that leads out of {plain(root)}"
        if path.is_dir():
            return "a link to a folder"
    return "" if path.is_file() else "not a file"


def _refuse(error: OSError) -> None:
    """A folder that cannot be read is not an empty one."""
    raise CommandFailed(f"{plain(str(error.filename))}: {error.strerror}") from error


def told_skipped(folder: Path) -> Callable[[str, str], None]:
    def tell(below: str, why: str) -> None:
        click.echo(f"skipped {plain(str(folder / below))}: {why}", err=True)

    return tell


def plain(path: str) -> str:
    """A path on one line, whatever bytes it is of."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(item if item.isprintable() else item.encode("unicode_escape").decode() for item in text)


def _last(source: str) -> str:
    path = (
        parse(source)[1].rstrip("/") or parse(source)[0]
        if is_in_bucket(source)
        else str(Path(source).absolute())
    )
    return path.rsplit("/", 1)[-1]


def placed(target: str, name: str) -> str | Object:
    """Where a thing of that name goes below the target."""
    if is_in_bucket(target):
        bucket, above = parse(target)
        return bucket, f"{above.rstrip('/')}/{name}" if above and name else above or name
    parts = name.split("/") if name else []
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise CommandFailed(
            f"the object {name!r} has no safe place below {target}: copy it alone, under another name"
        )
    return str(Path(target, *parts))

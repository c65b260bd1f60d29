"""Finds, reads and notes what programs have written in a view.

mounts.py calls it. The overlay's upper folder holds exactly what was written, so a scan costs by what is new
and not by what is shown. Programs may change everything at any moment: a file that changed since it was seen
is refused, a folder that goes away during the scan counts as missing. It never changes a view, and never
follows a link.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISCHR, S_ISDIR, S_ISREG

from trainshed.core.bucket import check_object_name
from trainshed.core.errors import Conflict, Invalid, Unavailable
from trainshed.core.view import Stored, ViewScan, Written
from trainshed.disk.regular_file import (
    open_below,
    open_folder_below,
    open_regular,
    read_regular,
    write_regular,
)

_log = logging.getLogger(__name__)
_CHUNK = 1 << 20
_LONGEST_NOTE = 64 * 1024  # bytes: names of objects have 1024 at most
NOTES = "stored.jsonl"
BASELINE = "baseline.json"  # of a view without an overlay: the stamps of its files at the start
MOST_BASELINE = 256 * 1024 * 1024  # bytes


def scan(view: Path) -> ViewScan:
    """All regular files that were made or changed. For threads."""
    plain = view / "plain"
    before: dict[str, str] = {}
    if plain.exists():
        with contextlib.suppress(OSError, ValueError):
            before = json.loads(read_regular(view / BASELINE, MOST_BASELINE))
    top = str(plain if plain.exists() else view / "upper")
    files: list[Written] = []
    unnamed: list[str] = []
    outside: list[str] = []
    for path, status in _walk(top):
        inner = path[len(top) + 1 :]
        stamp = stamp_of(status)
        if before.get(inner) == stamp:
            continue
        bucket, _, name = inner.partition("/")
        if not S_ISREG(status.st_mode) or not _is_name(name):
            lost = outside if S_ISREG(status.st_mode) and "/" not in inner else unnamed
            lost.append(os.fsencode(inner).decode(errors="replace"))
            continue
        changed_at = datetime.fromtimestamp(max(status.st_mtime, status.st_ctime), UTC)
        files.append(
            Written(
                bucket=bucket,
                name=name,
                path=path,
                size=status.st_size,
                stamp=stamp,
                changed_at=changed_at,
            )
        )
    return ViewScan(files=tuple(files), unnamed=tuple(unnamed), outside=tuple(outside))


def stamps(top: str) -> dict[str, str]:
    """The stamps of all files below a folder, by their path in it."""
    return {path[len(top) + 1 :]: stamp_of(status) for path, status in _walk(top) if S_ISREG(status.st_mode)}


def shows(view: Path, bucket: str, name: str) -> bool:
    """Whether a program finds the file: in the upper folder, or in the lower one and not covered up there.

    True as well where the bucket is not in the view: nobody can have removed anything there. That is asked
    last: the whole view may be removed at any moment, and then the first answer means nothing.
    """
    return _finds(view, f"{bucket}/{name}") or not any(
        (view / layer / bucket).exists() for layer in ("plain", "upper", "lower")
    )


def _finds(view: Path, inner: str) -> bool:
    if (view / "plain").exists():
        return os.path.lexists(view / "plain" / inner)
    place = view / "upper"
    for part in inner.split("/"):
        place = place / part
        try:
            status = os.lstat(place)
        except OSError:
            return os.path.lexists(view / "lower" / inner)
        if S_ISCHR(status.st_mode):
            return False  # a whiteout: removed by the program
        if S_ISDIR(status.st_mode) and _is_opaque(place):
            return os.path.lexists(view / "upper" / inner)
    return True


async def read(written: Written) -> AsyncIterator[bytes]:
    """The file's bytes; Conflict where it does not have its stamp, or has not any more when all was read."""
    file = await asyncio.to_thread(_open, written)
    try:
        _check(file, written)
        while chunk := await asyncio.to_thread(os.read, file, _CHUNK):
            yield chunk
            _check(file, written)
    except OSError as error:
        raise Unavailable(f"{written.name} cannot be read: {error.strerror}.") from error
    finally:
        os.close(file)


def tail(written: Written, offset: int, most: int) -> bytes:
    """Bytes of the file as it is now. For threads."""
    file = _open(written)
    try:
        return os.pread(file, most, offset)
    except (OSError, OverflowError) as error:
        raise Unavailable(f"{written.name} cannot be read: {error}.") from error
    finally:
        os.close(file)


def _open(written: Written) -> int:
    inner = f"{written.bucket}/{written.name}"
    try:
        # A program could put a link in the place of a folder, to what it may not read itself.
        return open_below(written.path.removesuffix(inner), inner)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Conflict(f"{written.name} is gone.") from error
    except OSError as error:
        raise Unavailable(f"{written.name} cannot be read: {error.strerror}.") from error


def note(folder: Path, stored: Sequence[Stored]) -> None:
    """Remember, for the next server. Where that fails it would only store again what is stored."""
    lines = "".join(json.dumps(asdict(item)) + "\n" for item in stored)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Each note begins with an end of line: one that was torn does not spoil the next.
        write_regular(folder / NOTES, b"\n" + lines.encode(), os.O_APPEND)
    except OSError as error:
        _log.warning("what was stored of %s is not noted: %s", folder, error)


def notes(folder: Path) -> tuple[Stored, ...]:
    """The latest note on each file, of those that are still stored."""
    latest: dict[tuple[str, str], Stored] = {}
    with contextlib.suppress(OSError), os.fdopen(open_regular(folder / NOTES), "rb") as file:
        while line := file.readline(_LONGEST_NOTE):
            with contextlib.suppress(ValueError, TypeError):
                stored = Stored(**json.loads(line))
                latest[stored.bucket, stored.name] = stored
    return tuple(item for item in latest.values() if not item.gone)


def _check(file: int, written: Written) -> None:
    if stamp_of(os.fstat(file)) != written.stamp:
        raise Conflict(f"{written.name} was changed while it was read.")


def _walk(top: str) -> Iterator[tuple[str, os.stat_result]]:
    """All but folders and whiteouts."""
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        try:
            # By a descriptor: a program could put a link in the place of a folder while we look.
            place = open_folder_below(top, inner)
            try:
                for name in os.listdir(place):  # noqa: PTH208 - by its descriptor
                    with contextlib.suppress(FileNotFoundError):
                        status = os.stat(name, dir_fd=place, follow_symlinks=False)
                        if S_ISDIR(status.st_mode):
                            waiting.append(f"{inner}/{name}")
                        elif not (S_ISCHR(status.st_mode) and status.st_rdev == 0):
                            yield f"{top}{inner}/{name}", status
            finally:
                os.close(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Unavailable(f"{top}{inner} cannot be looked at: {error.strerror}.") from error


def stamp_of(status: os.stat_result) -> str:
    """Another one where the file is another, or was changed."""
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


def _is_opaque(folder: Path) -> bool:
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) in (b"y", b"x"):
                return True
    return False


def _is_name(name: str) -> bool:
    try:
        check_object_name(name)
    except Invalid:
        return False
    return True

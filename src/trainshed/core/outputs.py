"""What of a job's written files may be stored now, and what counts as complete. Pure.

Files below AIP_MODEL_DIR are one *unit*, each folder below AIP_CHECKPOINT_DIR is one, and so are the files
right in it. A unit is complete once its manifest is there, which is put last and taken away before anything
it names is changed: who sees a manifest sees all of its files. Everything else is stored file by file.

A checkpoint is taken for complete when nothing in it has moved for a while, when the program went on to a
later one, or when the program ended well. One that was being written when its program was killed is not
stored at all, nor is one under a name that says it is not finished (`tmp-…`, `….tmp`, `.…`), which programs
rename when it is; the model is complete only if the job has succeeded.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.view import Stored, Written, address

MANIFEST = ".trainshed-manifest.json"
SETTLE = timedelta(seconds=2)  # a file that has not moved for so long is no longer being written
NEWEST = "newest"  # of a manifest's metadata: the highest generation among its files
QUIET = timedelta(seconds=5)  # ... a checkpoint

Key = tuple[str, str]  # bucket and name
_UNFINISHED = re.compile(r"^\.|(?:^|[._-])(?:tmp|temp|partial|incomplete)(?:[._-]|$)", re.IGNORECASE)


class UnitKind(StrEnum):
    FREE = "FREE"  # a file for itself
    MODEL = "MODEL"
    CHECKPOINT = "CHECKPOINT"  # a folder below AIP_CHECKPOINT_DIR
    CHECKPOINTS = "CHECKPOINTS"  # the files right in it


@dataclass(frozen=True, slots=True)
class Unit:
    kind: UnitKind
    bucket: str
    prefix: str  # of the names of all of its files; with the manifest's it is the manifest's name

    @property
    def manifest(self) -> str:
        return self.prefix + MANIFEST

    @property
    def unfinished(self) -> bool:
        """Whether its name says that it will get another one."""
        step = self.prefix.rstrip("/").rpartition("/")[2]
        return self.kind is UnitKind.CHECKPOINT and _UNFINISHED.search(step) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class WritersEnd:
    """How the programs that wrote have ended; without one they may still write."""

    clean: bool  # on their own, with code 0
    succeeded: bool
    at: datetime


@dataclass(slots=True)
class StoreBatch:
    """Files to store together."""

    unit: Unit
    files: list[Written] = field(default_factory=list[Written])
    complete: bool = False


@dataclass(slots=True)
class SettlingFiles:
    """Since when each file is as it is, by our own clock: that of the files may jump."""

    since: dict[Key, tuple[str, datetime]] = field(default_factory=dict[Key, tuple[str, datetime]])

    def look(self, files: Iterable[Written], now: datetime) -> None:
        self.since = {
            key: before if (before := self.since.get(key)) and before[0] == file.stamp else (file.stamp, now)
            for file in files
            for key in [(file.bucket, file.name)]
        }

    def restart(self, unit: "Unit", now: datetime) -> None:
        """Something of the unit was removed: all of it moves."""
        for key, (stamp, _) in self.since.items():
            if key[0] == unit.bucket and key[1].startswith(unit.prefix):
                self.since[key] = (stamp, now)

    def is_still(self, one: Written, now: datetime, long: timedelta) -> bool:
        return now - self.since[one.bucket, one.name][1] >= long


def unit_of(bucket: str, name: str, output: str) -> Unit:
    """The unit a file belongs to, given the job's base output directory."""
    base = address(output.rstrip("/") + "/") if output else None
    if base is not None and base[0] == bucket and name.startswith(base[1]):
        folder, slash, rest = name[len(base[1]) :].partition("/")
        if folder == "model" and slash:
            return Unit(UnitKind.MODEL, bucket, f"{base[1]}model/")
        if folder == "checkpoints" and slash:
            step, deeper, _ = rest.partition("/")
            if deeper:
                return Unit(UnitKind.CHECKPOINT, bucket, f"{base[1]}checkpoints/{step}/")
            return Unit(UnitKind.CHECKPOINTS, bucket, f"{base[1]}checkpoints/")
    return Unit(UnitKind.FREE, bucket, "")


def batches(
    files: Sequence[Written], output: str, patience: SettlingFiles, now: datetime, end: WritersEnd | None
) -> list[StoreBatch]:
    """What may be stored now. Every unit that is complete has all of its files; others may have some."""
    units: dict[Unit, list[Written]] = {}
    for one in files:
        if one.name.rpartition("/")[2] != MANIFEST:  # ours to write, whatever a program copies
            units.setdefault(unit_of(one.bucket, one.name, output), []).append(one)
    newest = max(
        (
            item.changed_at
            for unit, some in units.items()
            if unit.kind is UnitKind.CHECKPOINT
            for item in some
        ),
        default=None,
    )
    found: list[StoreBatch] = []
    for unit, some in units.items():
        if unit.kind is UnitKind.CHECKPOINT:
            if unit.unfinished and not (end and end.clean):
                continue
            passed = newest is not None and max(item.changed_at for item in some) < newest
            if _is_whole(some, patience, now, end, SETTLE if passed else QUIET, passed):
                found.append(StoreBatch(unit, some, complete=True))
            continue
        long = QUIET if unit.kind is UnitKind.CHECKPOINTS else SETTLE
        still = [
            item
            for item in some
            if _may_go(item, patience, now, end, long, unit.kind is UnitKind.CHECKPOINTS)
        ]
        succeeded = end is not None and end.succeeded
        complete = (
            succeeded if unit.kind is UnitKind.MODEL else unit.kind is UnitKind.CHECKPOINTS and bool(still)
        )
        if still:
            found.append(StoreBatch(unit, still, complete))
    # In the order they were written: of several checkpoints the last one written is stored last.
    return sorted(found, key=lambda batch: max(file.changed_at for file in batch.files))


def _is_whole(
    files: Sequence[Written],
    patience: SettlingFiles,
    now: datetime,
    end: WritersEnd | None,
    long: timedelta,
    passed: bool,
) -> bool:
    if end is None:
        return all(patience.is_still(file, now, long) for file in files)
    return passed or all(_may_go(file, patience, now, end, long, True) for file in files)


def _may_go(
    one: Written,
    patience: SettlingFiles,
    now: datetime,
    end: WritersEnd | None,
    long: timedelta,
    careful: bool,
) -> bool:
    if end is None:
        return patience.is_still(one, now, long)
    return not careful or end.clean or end.at - one.changed_at >= long


def manifest_of(unit: Unit, stored: Mapping[Key, Stored], job: str, attempt: int) -> bytes:
    """The manifest: every file of the unit, by its name in it, with size and CRC32C."""
    files = [
        {
            "name": item.name[len(unit.prefix) :],
            "size": item.size,
            "crc32c": item.crc32c,
            "generation": str(item.generation),
        }
        for item in sorted(stored.values(), key=lambda one: one.name)
        if not item.manifest and belongs(unit, item)
    ]
    told = {"version": 1, "job": job, "attempt": attempt, "files": files}
    return json.dumps(told, ensure_ascii=False, indent=1).encode() + b"\n"


def belongs(unit: Unit, one: Stored) -> bool:
    if unit.kind is UnitKind.FREE or one.bucket != unit.bucket or not one.name.startswith(unit.prefix):
        return False
    return unit.kind is not UnitKind.CHECKPOINTS or "/" not in one.name[len(unit.prefix) :]


def named_in(manifest: bytes) -> dict[str, tuple[int, str]]:
    """Size and CRC32C of every file a manifest names. ValueError where it is none."""
    told = json.loads(manifest)
    try:
        return {item["name"]: (int(item["size"]), str(item["crc32c"])) for item in told["files"]}
    except (TypeError, KeyError) as error:
        raise ValueError("not a manifest") from error


def checkpoints_of(output: str) -> tuple[str, str] | None:
    """The bucket and the prefix of AIP_CHECKPOINT_DIR."""
    return address(f"{output.rstrip('/')}/checkpoints/") if output else None

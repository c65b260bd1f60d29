"""Which files that a job wrote may be stored now, and which sets of files are complete. Pure.

`control/outputs.py` and `control/commit.py` call it. The files below AIP_MODEL_DIR are one *unit*; so is each
folder below AIP_CHECKPOINT_DIR, and so are the files directly in it. A unit is complete once its manifest is
stored. The manifest is stored last, and removed before any file it names is changed: whoever sees a manifest
sees all of its files. Any other file is stored by itself.

A checkpoint counts as complete when nothing in it has changed for a while, when the program has begun a later
one, or when the program ended well. One that a program may have been writing when it was killed or failed is
never stored. Nor is one whose name says that it is unfinished (`tmp-…`, `….tmp`, `.…`): programs rename it
when it is done. The model is complete only if the job succeeded.
"""

import json
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainshed.core.jobs.replica import Exit
from trainshed.core.view import Stored, Written, address

MANIFEST = ".trainshed-manifest.json"
SETTLE = timedelta(seconds=2)  # a file that has not changed for so long is no longer being written
NEWEST = "newest"  # key of a manifest's metadata: the highest generation among its files
QUIET = timedelta(seconds=5)  # the same for a checkpoint

Key = tuple[str, str]  # bucket and name
_UNFINISHED = re.compile(r"^\.|(?:^|[._-])(?:tmp|temp|partial|incomplete)(?:[._-]|$)", re.IGNORECASE)


class UnitKind(StrEnum):
    FREE = "FREE"  # a file by itself
    MODEL = "MODEL"
    CHECKPOINT = "CHECKPOINT"  # a folder below AIP_CHECKPOINT_DIR
    CHECKPOINTS = "CHECKPOINTS"  # the files directly in it


CHECKPOINT_KINDS = (UnitKind.CHECKPOINT, UnitKind.CHECKPOINTS)


@dataclass(frozen=True, slots=True)
class Unit:
    kind: UnitKind
    bucket: str
    prefix: str  # common to the names of all of its files

    @property
    def manifest(self) -> str:
        return self.prefix + MANIFEST

    @property
    def unfinished(self) -> bool:
        """Whether its name says that the program will rename it."""
        step = self.prefix.rstrip("/").rpartition("/")[2]
        return self.kind is UnitKind.CHECKPOINT and _UNFINISHED.search(step) is not None


@dataclass(frozen=True, slots=True)
class EndedWriter:
    """The end of one program that may have written."""

    at: datetime
    well: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """The programs of a job that write: those that have ended, and whether others may still write."""

    ended: Sequence[EndedWriter] = ()
    alive: bool = False
    succeeded: bool = False  # the job, whose programs have all ended

    @property
    def clean(self) -> bool:
        """Whether all have ended, and well."""
        return not self.alive and (self.succeeded or all(writer.well for writer in self.ended))

    def cut_off(self, file: Written, quiet: timedelta) -> bool:
        """Whether one that did not end well may have been writing the file then."""
        return not self.clean and any(
            timedelta() <= writer.at - file.changed_at < quiet for writer in self.ended if not writer.well
        )


@dataclass(frozen=True, slots=True)
class CommittedUnit:
    """A unit whose manifest is stored."""

    uri: str  # of the folder, with a slash at its end
    stored_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOutputs:
    """What is complete at the place of a job's results."""

    model: CommittedUnit | None = None
    checkpoints: tuple[CommittedUnit, ...] = ()  # the newest first


@dataclass(slots=True)
class StoreBatch:
    """Files to store together."""

    unit: Unit
    files: list[Written] = field(default_factory=list[Written])
    complete: bool = False


@dataclass(slots=True)
class SettlingFiles:
    """Since when each file is unchanged, by our own clock: times of files may jump."""

    since: dict[Key, tuple[str, datetime]] = field(default_factory=dict[Key, tuple[str, datetime]])

    def look(self, files: Iterable[Written], now: datetime) -> None:
        self.since = {
            key: before if (before := self.since.get(key)) and before[0] == file.stamp else (file.stamp, now)
            for file in files
            for key in [(file.bucket, file.name)]
        }

    def restart(self, unit: "Unit", now: datetime) -> None:
        """A file of the unit was removed: all of the unit counts as changed."""
        for key, (stamp, _) in self.since.items():
            if key[0] == unit.bucket and key[1].startswith(unit.prefix):
                self.since[key] = (stamp, now)

    def is_still(self, file: Written, now: datetime, long: timedelta) -> bool:
        return now - self.since[file.bucket, file.name][1] >= long


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


def ended_well(exit: Exit | None) -> bool:
    """Also with the code of a program that was asked to stop, stored what it had, and says so."""
    return exit is not None and exit.code in (0, 128 + signal.SIGTERM)


def is_manifest(file: Written) -> bool:
    """Programs may copy one; only we write it."""
    return file.name.rpartition("/")[2] == MANIFEST


def batches(
    files: Sequence[Written], output: str, patience: SettlingFiles, now: datetime, writers: Writers
) -> list[StoreBatch]:
    """What may be stored now. A complete batch has all files of its unit; others may have some."""
    units: dict[Unit, list[Written]] = {}
    for file in files:
        if not is_manifest(file):
            units.setdefault(unit_of(file.bucket, file.name, output), []).append(file)
    newest = max(
        (
            item.changed_at
            for unit, some in units.items()
            if unit.kind is UnitKind.CHECKPOINT
            for item in some
        ),
        default=None,
    )
    ready: list[StoreBatch] = []
    for unit, some in units.items():
        if unit.kind is UnitKind.CHECKPOINT:
            if unit.unfinished and not writers.clean:
                continue
            passed = newest is not None and max(item.changed_at for item in some) < newest
            if _is_whole(some, patience, now, writers, SETTLE if passed else QUIET, passed):
                ready.append(StoreBatch(unit, some, complete=True))
            continue
        long = QUIET if unit.kind is UnitKind.CHECKPOINTS else SETTLE
        still = [
            item
            for item in some
            if _may_go(item, patience, now, writers, long, unit.kind is UnitKind.CHECKPOINTS)
        ]
        complete = writers.succeeded if unit.kind is UnitKind.MODEL else unit.kind is UnitKind.CHECKPOINTS
        if still:
            ready.append(StoreBatch(unit, still, complete))
    # In the order they were written: of several checkpoints the last one written is stored last.
    return sorted(ready, key=lambda batch: max(file.changed_at for file in batch.files))


def _is_whole(
    files: Sequence[Written],
    patience: SettlingFiles,
    now: datetime,
    writers: Writers,
    long: timedelta,
    passed: bool,
) -> bool:
    if passed:
        return not writers.alive or all(patience.is_still(file, now, long) for file in files)
    return all(_may_go(file, patience, now, writers, long, True) for file in files)


def _may_go(
    file: Written,
    patience: SettlingFiles,
    now: datetime,
    writers: Writers,
    long: timedelta,
    careful: bool,
) -> bool:
    if writers.alive and not patience.is_still(file, now, long):
        return False
    return not (careful and writers.cut_off(file, long))


def manifest_of(unit: Unit, stored: Mapping[Key, Stored], job: str, attempt: int) -> bytes:
    """The manifest: every file of the unit, by its name in it, with size and CRC32C."""
    files = [
        {
            "name": item.name[len(unit.prefix) :],
            "size": item.size,
            "crc32c": item.crc32c,
            "generation": str(item.generation),
        }
        for item in sorted(stored.values(), key=lambda file: file.name)
        if not item.manifest and belongs(unit, item)
    ]
    document = {"version": 1, "job": job, "attempt": attempt, "files": files}
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def belongs(unit: Unit, file: Stored) -> bool:
    if unit.kind is UnitKind.FREE or file.bucket != unit.bucket or not file.name.startswith(unit.prefix):
        return False
    return unit.kind is not UnitKind.CHECKPOINTS or "/" not in file.name[len(unit.prefix) :]


def named_in(manifest: bytes) -> dict[str, tuple[int, str]]:
    """Size and CRC32C of every file that a manifest names. Raises ValueError where it is not a manifest."""
    document = json.loads(manifest)
    try:
        return {item["name"]: (int(item["size"]), str(item["crc32c"])) for item in document["files"]}
    except (TypeError, KeyError) as error:
        raise ValueError("not a manifest") from error


def checkpoints_of(output: str) -> tuple[str, str] | None:
    """The bucket and the prefix of AIP_CHECKPOINT_DIR."""
    return address(f"{output.rstrip('/')}/checkpoints/") if output else None


def model_folder(output: str) -> tuple[str, str] | None:
    """The same of AIP_MODEL_DIR."""
    return address(f"{output.rstrip('/')}/model/") if output else None

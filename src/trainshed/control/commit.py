"""Committer: stores what a job's programs wrote below /gcs as objects.

`outputs.py` calls it. It puts the files of a folder first and the folder's manifest last. Before it replaces
or removes a file that a manifest names, it removes the manifest. It writes the manifest again once all files
are stored. So a manifest never names a file that is missing, wherever the process dies. The notes about what
is stored only save work: a server removes the manifest at its first change to a folder, whatever they say.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from trainshed.core.bucket import Attributes, ObjectDraft, ObjectInfo
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Conflict, Forbidden, Invalid, NotFound, TrainshedError, Unavailable
from trainshed.core.jobs.job import Job
from trainshed.core.outputs import (
    CHECKPOINT_KINDS,
    NEWEST,
    Key,
    SettlingFiles,
    StoreBatch,
    Unit,
    UnitKind,
    Writers,
    batches,
    belongs,
    is_manifest,
    manifest_of,
    unit_of,
)
from trainshed.core.ports import Clock
from trainshed.core.view import SCHEME, Stored, Storing, Views, ViewScan, Written

AT_ONCE = 16  # files of a job that are put concurrently: they share one sync of the bucket's index
_MOST_NAMED = 3


@dataclass(slots=True)
class SweepResult:
    files: int = 0
    size: int = 0
    where: str = ""
    faults: list[str] = field(default_factory=list[str])  # what can never be stored
    unnamed: tuple[str, ...] = ()
    cut_off: Sequence[str] = ()  # checkpoints that may not be whole

    def storing(self) -> Storing:
        if self.faults:
            more = f" (and {len(self.faults) - 1} more)" if len(self.faults) > 1 else ""
            what = "Not all that was written below /gcs could be stored"
            return Storing(fault=f"{what}: {self.faults[0]}{more}")
        parts: list[str] = []
        if self.files:
            noun = "file" if self.files == 1 else "files"
            parts.append(f"{self.files} {noun} with {self.size} bytes stored in {self.where}.")
        if self.unnamed:
            why = "because an object cannot be such a thing, or be called so"
            parts.append(f"Not stored, {why}: {_listed(self.unnamed)}.")
        if self.cut_off:
            why = "because a program may have been killed or have failed while it wrote it"
            parts.append(f"Not stored, {why}: {_listed(self.cut_off)}.")
        return Storing(message=" ".join(parts))


def _listed(names: Sequence[str]) -> str:
    more = "" if len(names) <= _MOST_NAMED else f" and {len(names) - _MOST_NAMED} more"
    return ", ".join(names[:_MOST_NAMED]) + more


class Committer:
    """Stores the outputs of one job; one sweep at a time."""

    def __init__(self, views: Views, buckets: Buckets, clock: Clock, ending: asyncio.Event) -> None:
        self._views, self._buckets, self._clock = views, buckets, clock
        self._stored: dict[Key, Stored] | None = None
        self._opened: set[Unit] = set()  # whose manifest is certainly ours, or absent
        self._shrunk: set[Unit] = set()  # whose files a program was removing at the last look
        self._refused: dict[Key, tuple[str, str]] = {}  # the stamp of each refused file, and why
        self._made: dict[str, datetime] = {}  # when each bucket was created: a newer one is empty
        self._lock = asyncio.Lock()
        self._ending = ending  # set when the server is to stop

    async def sweep(self, job: Job, patience: SettlingFiles, writers: Writers) -> SweepResult:
        """Store what may be stored now. Raise Unavailable or Exhausted if the rest has to wait."""
        async with self._lock:
            if self._stored is None:
                self._stored = {(note.bucket, note.name): note for note in await self._views.notes(job.id)}
            scan, now = await self._views.scan(job.id), self._clock.now()
            patience.look(scan.files, now)
            tally = SweepResult(unnamed=scan.unnamed)
            tally.faults += [f"/gcs/{name}: it is in no bucket." for name in scan.outside]
            await self._let_go(job, scan, self._stored, patience)
            moved = False
            for batch in batches(scan.files, job.spec.output, patience, now, writers):
                if not writers.clean:
                    batch.complete = batch.complete and batch.unit not in self._shrunk
                moved |= await self._commit(job, batch, self._stored, tally)
            if moved and not writers.alive:  # no later sweep follows unless this one fails
                raise Unavailable("It changed while it was stored, though its programs have ended.")
            if not writers.alive:
                tally.cut_off = _left_out(scan.files, job, self._stored)
            mine = [item for item in self._stored.values() if not item.manifest]
            tally.files, tally.size = len(mine), sum(item.size for item in mine)
            tally.where = ", ".join(sorted({f"{SCHEME}{item.bucket}" for item in mine}))
            return tally

    async def _commit(
        self, job: Job, batch: StoreBatch, stored: dict[Key, Stored], tally: SweepResult
    ) -> bool:
        """Store one batch. True if a file changed meanwhile, so that another sweep is needed."""
        unit = batch.unit
        if why := await self._refusal(job, unit.bucket, stored):
            tally.faults.append(f"/gcs/{unit.bucket}/{batch.files[0].name}: {why}")
            return False
        changed = [file for file in batch.files if not _is_stored(file, stored)]
        if unit.kind is not UnitKind.FREE and changed:
            await self._retract(job, unit, [(item.bucket, item.name) for item in changed], stored)
        if changed:
            self._shrunk.discard(unit)
        before = len(tally.faults)
        moved = await self._put_all(job, changed, stored, tally)
        if not batch.complete or moved or len(tally.faults) > before:
            return moved
        if (unit.bucket, unit.manifest) not in stored or changed:
            content = manifest_of(unit, stored, job.id, job.status.attempt)
            newest = max(item.generation for item in stored.values() if belongs(unit, item))
            attributes = Attributes(content_type="application/json", metadata={NEWEST: str(newest)})
            draft = ObjectDraft(name=unit.manifest, attributes=attributes)
            try:
                info = await self._buckets.open(unit.bucket).put(draft, _once(content))
            except (NotFound, Invalid, Forbidden) as error:
                tally.faults.append(f"/gcs/{unit.bucket}/{unit.manifest}: {error.message}")
                return False
            await self._keep(job, stored, [_noted(info, "", manifest=True)])
        return False

    async def _refusal(self, job: Job, bucket: str, stored: dict[Key, Stored]) -> str:
        """Why nothing of the job may be stored there: it writes to buckets of its own project only."""
        try:
            info = await self._buckets.get(bucket)
        except NotFound as error:
            await self._start_over(job, bucket, stored)
            return f"{error.message} Make it with `trainshed storage buckets create {SCHEME}{bucket}`."
        if info.created_at != self._made.setdefault(bucket, info.created_at):
            await self._start_over(job, bucket, stored)
        return "" if info.is_open_to(job.project) else f"Bucket '{bucket}' belongs to another project."

    async def _start_over(self, job: Job, bucket: str, stored: dict[Key, Stored]) -> None:
        """The bucket was removed with all its objects: forget what was stored in it."""
        self._made.pop(bucket, None)
        await self._forget(job, stored, [item for item in stored.values() if item.bucket == bucket])
        self._refused = {key: why for key, why in self._refused.items() if key[0] != bucket}

    async def _retract(self, job: Job, unit: Unit, touched: Iterable[Key], stored: dict[Key, Stored]) -> None:
        """Remove the manifest if it names any of these files, or if we did not write it."""
        own = stored.get((unit.bucket, unit.manifest))
        if unit in self._opened and (own is None or not any(key in stored for key in touched)):
            return
        with contextlib.suppress(NotFound):  # no manifest yet, or no bucket: the put reports that
            await self._buckets.open(unit.bucket).delete(unit.manifest)
        self._opened.add(unit)
        if own is not None:
            await self._forget(job, stored, [own])

    async def _let_go(
        self, job: Job, scan: ViewScan, stored: dict[Key, Stored], patience: SettlingFiles
    ) -> None:
        """Delete objects whose files the programs have removed since, such as old checkpoints."""
        there = {(file.bucket, file.name) for file in scan.files}
        gone = [
            note
            for key, note in list(stored.items())
            if not note.manifest
            and key not in there
            and not await self._views.shows(job.id, note.bucket, note.name)
        ]
        units = {unit_of(item.bucket, item.name, job.spec.output) for item in gone}
        for unit in units:
            mine = [item for item in gone if unit_of(item.bucket, item.name, job.spec.output) == unit]
            if unit.kind is not UnitKind.FREE:
                await self._retract(job, unit, [(item.bucket, item.name) for item in mine], stored)
            for item in mine:
                # It is deleted or replaced already, or the bucket does not know generations.
                with contextlib.suppress(NotFound, Conflict, Invalid):
                    await self._buckets.open(item.bucket).delete(item.name, item.generation)
            await self._forget(job, stored, mine)
            if unit.kind is UnitKind.CHECKPOINT:
                self._shrunk.add(unit)
            patience.restart(unit, self._clock.now())

    async def _put_all(
        self, job: Job, files: Sequence[Written], stored: dict[Key, Stored], tally: SweepResult
    ) -> bool:
        """Put the files. True if one changed meanwhile, so that another sweep is needed."""
        waiting = [file for file in reversed(files) if not self._is_refused(file, tally)]
        moved, trouble = False, list[TrainshedError]()

        async def work() -> None:
            nonlocal moved
            while waiting and not trouble and not self._ending.is_set():
                file = waiting.pop()
                try:
                    info = await self._buckets.open(file.bucket).put(
                        ObjectDraft(name=file.name), self._read(file)
                    )
                    await self._keep(job, stored, [_noted(info, file.stamp)])
                except Conflict:
                    moved = True
                except (NotFound, Invalid, Forbidden) as error:
                    self._refused[file.bucket, file.name] = (file.stamp, error.message)
                    self._is_refused(file, tally)
                except TrainshedError as error:
                    trouble.append(error)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(files))):
                group.create_task(work())
        if trouble or waiting:
            raise trouble[0] if trouble else Unavailable("The server is being stopped.")
        return moved

    async def _read(self, file: Written) -> AsyncIterator[bytes]:
        async for chunk in self._views.read(file):
            if self._ending.is_set():
                raise Unavailable("The server is being stopped.")
            yield chunk

    def _is_refused(self, file: Written, tally: SweepResult) -> bool:
        """Whether a bucket refused this very file before: large files are not sent again and again."""
        stamp, why = self._refused.get((file.bucket, file.name), ("", ""))
        if stamp != file.stamp:
            return False
        tally.faults.append(f"/gcs/{file.bucket}/{file.name}: {why}")
        return True

    async def _keep(self, job: Job, stored: dict[Key, Stored], kept: Sequence[Stored]) -> None:
        for item in kept:
            stored[item.bucket, item.name] = item
        await self._views.note(job.id, kept)

    async def _forget(self, job: Job, stored: dict[Key, Stored], gone: Sequence[Stored]) -> None:
        for item in gone:
            stored.pop((item.bucket, item.name), None)
        await self._views.note(job.id, [_gone(item) for item in gone])


def _left_out(files: Iterable[Written], job: Job, stored: dict[Key, Stored]) -> list[str]:
    """The checkpoints of which not all is stored, for people to read."""
    units = {
        unit_of(file.bucket, file.name, job.spec.output)
        for file in files
        if not _is_stored(file, stored) and not is_manifest(file)
    }
    places = [f"/gcs/{unit.bucket}/{unit.prefix}" for unit in units if unit.kind in CHECKPOINT_KINDS]
    return sorted(places)


def _is_stored(file: Written, stored: dict[Key, Stored]) -> bool:
    known = stored.get((file.bucket, file.name))
    return known is not None and known.stamp == file.stamp


def _noted(info: ObjectInfo, stamp: str, *, manifest: bool = False) -> Stored:
    return Stored(
        bucket=info.bucket,
        name=info.name,
        stamp=stamp,
        size=info.size,
        crc32c=info.crc32c,
        generation=info.generation,
        manifest=manifest,
    )


def _gone(note: Stored) -> Stored:
    return Stored(
        bucket=note.bucket,
        name=note.name,
        stamp="",
        size=0,
        crc32c="",
        generation=0,
        manifest=note.manifest,
        gone=True,
    )


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content

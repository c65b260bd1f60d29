"""Follows the event files that a job writes below AIP_TENSORBOARD_LOG_DIR, for `control/measurements.py`.

While the job has a view, its files are read there, as far as they are written. Objects of the bucket are read
where the view has no event files: after the job's end, or where the program writes to gs:// itself. They are
read too once a replica was restarted: what the run before it wrote is stored, and its view is gone. Each file
is read once, from where the last read ended. A file in a folder belongs to the run of that name: its tags
count as TAG and as RUN/TAG. Where several runs have a wanted tag, that of the folder itself counts, then one
for validation. It takes no more than MOST_FILES files and MOST_BYTES bytes of a job.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from trainshed.core.bucket import ObjectInfo, ObjectQuery, OutOfRange, Span
from trainshed.core.bucket_port import Buckets
from trainshed.core.errors import Forbidden, TrainshedError
from trainshed.core.jobs.job import Job, primary
from trainshed.core.tuning.event_file import Crc32c, EventPiece, read_events
from trainshed.core.tuning.measurement import MOST_NAMES, MetricPoint, thin, valid_step
from trainshed.core.view import ROOT, SCHEME, Views, Written, address

VARIABLE = "AIP_TENSORBOARD_LOG_DIR"
MOST_FILES = 500
MOST_BYTES = 256 * 1024 * 1024  # of all files of a job
MOST_AT_ONCE = 8 * 1024 * 1024  # in one call for a job that runs
MOST_POINTS = 4000  # of one curve
NAMED = 20_000  # scalars of which the tags are remembered, wanted or not: to say what was there
_PIECE = 1024 * 1024  # more than the longest record that is read
_MARK = "tfevents"  # in the name of every event file
_VALIDATION = ("val", "eval", "test")


def log_folder(job: Job) -> str:
    """What AIP_TENSORBOARD_LOG_DIR is in the primary replica of the job; empty where it is not set."""
    pool, _ = primary(job.spec)
    usual = f"{job.spec.output.rstrip('/')}/logs/" if job.spec.output else ""
    return dict(job.spec.pools[pool].env).get(VARIABLE, usual)


@dataclass(slots=True)
class _EventFile:
    run: str
    stamp: str = ""
    offset: int = 0
    is_reread: bool = False


@dataclass(frozen=True, slots=True)
class _Source:
    """A file as it is now: in the view, or an object."""

    name: str
    stamp: str
    size: int
    file: Written | ObjectInfo


@dataclass(slots=True)
class EventFiles:
    """The event files of one job. Not for two calls at once."""

    views: Views
    buckets: Buckets
    crc32c: Crc32c
    metrics: Sequence[str]
    names: dict[str, None] = field(default_factory=dict[str, None])
    problem: str = ""
    is_partial: bool = False  # something could not be read now: the next look may read it
    _files: dict[str, _EventFile] = field(default_factory=dict[str, _EventFile])
    _points: dict[tuple[str, str], list[MetricPoint]] = field(
        default_factory=dict[tuple[str, str], list[MetricPoint]]
    )  # by metric and run
    _bytes: int = 0
    _named: int = 0  # scalars

    @property
    def curves(self) -> dict[str, list[MetricPoint]]:
        """The points of each metric, of the run that counts."""
        result: dict[str, list[MetricPoint]] = {}
        for name, run in sorted(self._points, key=lambda key: _rank(key[1])):
            result.setdefault(name, self._points[name, run])
        return result

    async def look(self, job: Job) -> None:
        """Read what is new; all of it where the job is over, else a part."""
        folder = log_folder(job)
        place = address(folder.replace(f"{ROOT}/", SCHEME, 1) if folder.startswith(f"{ROOT}/") else folder)
        if place is None:
            self.problem = f"{VARIABLE} is {folder}, which is in no bucket" if folder else f"no {VARIABLE}"
            return
        bucket, prefix = place[0], f"{place[1].rstrip('/')}/" if place[1] else ""
        self.problem, self.is_partial = "", False
        left = MOST_BYTES - self._bytes if job.is_final else min(MOST_AT_ONCE, MOST_BYTES - self._bytes)
        try:
            sources = await self._sources(job, bucket, prefix)
        except TrainshedError as error:
            self.problem, self.is_partial = error.message.rstrip("."), True
            return
        for source in sources:
            known = self._files.setdefault(source.name, _EventFile(_run(source.name[len(prefix) :])))
            if known.stamp != source.stamp and left > 0:
                left -= await self._read(source, known, left)
        if self._bytes >= MOST_BYTES:
            self.problem = f"event files have more than {MOST_BYTES >> 20} MiB: the rest was not read"

    async def _sources(self, job: Job, bucket: str, prefix: str) -> list[_Source]:
        sources: list[_Source] = []
        if not (await self.buckets.get(bucket)).is_open_to(job.project):
            raise Forbidden(f"bucket '{bucket}' belongs to another project")
        if self.views.view_of(job.id) is not None:
            files = (await self.views.scan(job.id)).files
            sources = [
                _Source(item.name, item.stamp, item.size, item) for item in files if item.bucket == bucket
            ]
        sources = [item for item in sources if _is_ours(item.name, prefix)]
        if not sources or job.status.attempt or any(replica.run for replica in job.status.replicas):
            written = {item.name for item in sources}
            sources += [
                _Source(item.name, f"g{item.generation}", item.size, item)
                async for item in self._objects(bucket, prefix)
                if item.name not in written
            ]
        sources.sort(key=lambda item: item.name)
        if len(sources) > MOST_FILES:
            self.problem = f"there are {len(sources)} event files: the first {MOST_FILES} were read"
        return sources[:MOST_FILES]

    async def _objects(self, bucket: str, prefix: str) -> AsyncIterator[ObjectInfo]:
        after, count = "", 0
        while count <= MOST_FILES:
            listing = await self.buckets.open(bucket).find(ObjectQuery(prefix=prefix, after=after))
            for item in listing.items:
                if _is_ours(item.name, prefix):
                    count += 1
                    yield item
            if not (after := listing.next_after):
                return

    async def _read(self, source: _Source, known: _EventFile, most: int) -> int:
        """Read a file on, no more than `most` bytes; how many they were."""
        if source.size < known.offset:
            known.offset = 0  # another file of that name
        begin = self._bytes
        while self._bytes - begin < most:
            try:
                data = await self._bytes_of(source, known.offset)
            except TrainshedError as error:
                self.problem, self.is_partial = error.message.rstrip("."), True
                break
            self._bytes += len(data)
            piece = await asyncio.to_thread(self._take, data, known.run)
            if piece.broken and known.offset and not known.is_reread:
                known.offset, known.is_reread = 0, True  # perhaps another file of that name
                continue
            known.offset += piece.used
            if piece.damaged or piece.broken:
                self.problem = f"{source.name} is damaged"
            if not piece.used or piece.broken or len(data) < _PIECE:
                known.stamp = source.stamp
                break
        return self._bytes - begin

    async def _bytes_of(self, source: _Source, offset: int) -> bytes:
        if isinstance(source.file, Written):
            return await self.views.tail(source.file, min(offset, 2**62), _PIECE)
        try:
            span = Span(first=offset, last=offset + _PIECE - 1)
            item = source.file
            reading = await self.buckets.open(item.bucket).read(item.name, span, item.generation)
        except OutOfRange:
            return b""
        return b"".join([chunk async for chunk in reading.chunks])

    def _take(self, data: bytes, run: str) -> EventPiece:
        is_named = self._named >= NAMED or len(self.names) >= MOST_NAMES
        # A name may be a tag behind its run: its last part is in the message in any case.
        tags = [name.rpartition("/")[2].encode() for name in self.metrics] if is_named else ()
        piece = read_events(data, self.crc32c, tags)
        self._named += len(piece.scalars)
        for event in piece.scalars:
            full = f"{run}/{event.tag}" if run else event.tag
            if len(self.names) < MOST_NAMES:
                self.names[full] = None
            step = valid_step(event.step) if math.isfinite(event.at) else None
            for name in {event.tag, full}:
                if step is None or name not in self.metrics:
                    continue
                # A name with its run says which is meant: it counts before all runs with such a tag.
                points = self._points.setdefault((name, "" if name == full else run), [])
                points.append(MetricPoint(step, event.at, event.value))
                if len(points) > MOST_POINTS:
                    points[:] = thin(points, MOST_POINTS // 2)
        return piece


def _is_ours(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and _MARK in name.rpartition("/")[2]


def _run(inner: str) -> str:
    return inner.rpartition("/")[0]


def _rank(run: str) -> tuple[bool, bool, str]:
    last = run.rpartition("/")[2].lower()
    return bool(run), not last.startswith(_VALIDATION), run

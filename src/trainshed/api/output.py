"""customJobs:output: the bytes that replicas wrote, unchanged, for `trainshed logs`.

The answer is a sequence of frames: a line of JSON with the replica and the size, then the bytes. Each frame
has the position of its end (`next`). A client that sends it back as `after` gets what follows, no byte
twice. An empty line is a heartbeat. The last line is {"end": true}; an answer without it was cut off.
With `download` the answer is the bytes alone, as a file to save.
"""

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from trainshed.api.beats import with_beats
from trainshed.api.call import Call, RawAnswer, Reply, StreamAnswer
from trainshed.api.stream_slots import StreamSlots
from trainshed.core.errors import Invalid, NotFound, Violation
from trainshed.core.jobs.job import Job
from trainshed.core.logs import Chunk, OutputPlace, OutputQuery
from trainshed.core.ports import Clock
from trainshed.service.jobs import JobService
from trainshed.service.logs import LogService
from trainshed.wire.scalars import read_duration, read_time


@dataclass(slots=True)
class OutputOfJobs:
    jobs: JobService
    logs: LogService
    clock: Clock
    streams: StreamSlots = field(default_factory=lambda: StreamSlots("streams of output"))

    async def read(self, call: Call) -> Reply:
        path = call.path
        if ":" in path["job"]:
            raise NotFound(f"There is no method or job '{path['job']}'.")
        query = OutputQuery(
            after=_after(call),
            since_ns=read_since(call, self.clock),
            task=call.query.get("task") or None,
            attempt=call.number("attempt"),
            last=call.number("limit"),
        )
        job = await self.jobs.get(path["project"], path["location"], path["job"])
        if call.flag("download"):
            return self._file(job, query)
        frames = self._frames(job, query, follow=call.flag("follow"))
        stream = with_beats(self.streams.limited(frames), b"\n")
        return StreamAnswer(stream, "application/octet-stream", shows_end=True)

    def _file(self, job: Job, query: OutputQuery) -> RawAnswer:
        parts = (job.id, query.task, None if query.attempt is None else f"attempt{query.attempt}")
        name = re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(filter(None, parts)))
        headers = {
            "content-type": "text/plain; charset=utf-8",
            "content-disposition": f'attachment; filename="{name}.log"',
        }
        return RawAnswer(self.streams.limited(self._bytes(job, query)), headers=headers)

    async def _bytes(self, job: Job, query: OutputQuery) -> AsyncGenerator[bytes]:
        async for chunks in self.logs.output(job, query, follow=False):
            yield b"".join(chunk.data for chunk in chunks)

    async def _frames(self, job: Job, query: OutputQuery, *, follow: bool) -> AsyncGenerator[bytes]:
        async for chunks in self.logs.output(job, query, follow=follow):
            yield b"".join(part for chunk in chunks for part in (_head(chunk), chunk.data))
        yield b'{"end": true}\n'


def _head(chunk: Chunk) -> bytes:
    end = chunk.end
    head = {
        "task": chunk.task,
        "attempt": end.attempt,
        "stream": end.stream.value,
        "size": len(chunk.data),
        "next": str(end),
    }
    if chunk.is_marker:
        head["marker"] = True
    return json.dumps(head).encode() + b"\n"


def _after(call: Call) -> OutputPlace | None:
    if not (text := call.query.get("after", "")):
        return None
    try:
        return OutputPlace.parse(text)
    except ValueError as error:
        raise Invalid(
            (Violation("after", f"after must be the `next` of a frame, not '{text[:60]}'."),)
        ) from error


def read_since(call: Call, clock: Clock) -> int | None:
    """A time, or a duration before now by this server's clock, since the client's may be wrong."""
    text = call.query.get("since", "")
    if not text:
        return None
    try:
        back = text.removesuffix("s").replace(".", "", 1).isdigit()
        at = clock.now() - read_duration(text) if back else read_time(text)
    except (ValueError, OverflowError) as error:
        raise Invalid((Violation("since", f"since {error}"),)) from error
    return max(0, int(at.timestamp() * 1_000_000) * 1000)

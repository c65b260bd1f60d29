"""customJobs:watch: hints that jobs have changed, as server-sent events that a client can resume."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from trainshed.api.beats import with_beats
from trainshed.api.call import Call, Reply, StreamAnswer
from trainshed.api.stream_slots import StreamSlots
from trainshed.service.hints import JobHint, JobHints, News
from trainshed.service.jobs import JobService


@dataclass(slots=True)
class WatchOfJobs:
    jobs: JobService
    hints: JobHints
    streams: StreamSlots = field(default_factory=lambda: StreamSlots("streams of hints"))

    async def watch(self, call: Call) -> Reply:
        """Of one `job` or of all; after `after` or the Last-Event-ID, else from now on."""
        project, location, job = call.path["project"], call.path["location"], call.query.get("job", "")
        if job:
            await self.jobs.get(project, location, job)
        after = call.query.get("after") or call.headers.get("last-event-id", "")
        events = self._events(project, location, job, after)
        stream = with_beats(self.streams.limited(events), b": still here\n\n")
        return StreamAnswer(stream, "text/event-stream")

    async def _events(self, project: str, location: str, job: str, after: str) -> AsyncGenerator[bytes]:
        with self.hints.listen(project, location, job, after) as listener:
            while True:
                yield _rendered(await listener.next())


def _rendered(news: News) -> bytes:
    items: list[dict[str, object]] = [{"everything": True}] if news.is_everything else []
    items += [_hint(hint) for hint in news.hints]
    # Only the last has the id: a client that is cut off before it gets all of them again.
    *first, last = [f"data: {json.dumps(item)}\n\n" for item in items]
    return "".join([*first, f"id: {news.id}\n", last]).encode()


def _hint(hint: JobHint) -> dict[str, object]:
    answer: dict[str, object] = {"name": hint.name, "version": hint.version}
    return answer | {"deleted": True} if hint.is_deleted else answer

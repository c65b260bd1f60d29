"""customJobs:watch: hints that jobs have changed, as server-sent events that a client can resume.

A client may ask for hints that the log of one job has grown, in the same stream: a browser has few.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from trainshed.api.beats import with_beats
from trainshed.api.call import Call, Reply, StreamAnswer
from trainshed.api.permitted import require
from trainshed.api.stream_slots import StreamSlots
from trainshed.core.accounts.permission import Permission, Resource
from trainshed.core.errors import Invalid, Unavailable, Violation
from trainshed.core.jobs.job import Job
from trainshed.service.hints import ANY_JOB, HintListener, JobHint, JobHints, News
from trainshed.service.jobs import JobService
from trainshed.service.log_lines import LogLineService

BETWEEN = 0.05  # seconds at least between two hints that a log has grown

_NAME = re.compile(r"projects/([^/]+)/locations/([^/]+)/customJobs/([^/:]+)")

MOST_WATCHED = 1024  # each page of the console has one open, and it costs little while nothing changes


@dataclass(slots=True)
class WatchOfJobs:
    jobs: JobService
    logs: LogLineService
    hints: JobHints
    streams: StreamSlots = field(default_factory=lambda: StreamSlots("streams of hints", MOST_WATCHED))

    async def watch(self, call: Call) -> Reply:
        """Of one `job` or of all; after `after` or the Last-Event-ID, else from now on.

        With `logs`, the full name of a job, also that its log grew; with `metrics`, that it was measured.
        """
        project, location, job = call.path["project"], call.path["location"], call.query.get("job", "")
        if job:
            await self.jobs.get(project, location, job)
        after = call.query.get("after") or call.headers.get("last-event-id", "")
        logs = await self._named(call, "logs")
        measured = call.query.get("metrics", "")
        if measured != ANY_JOB:
            await self._named(call, "metrics")
        where = (project, location, job, after, measured)
        events = self._events(where, logs)
        stream = with_beats(self.streams.limited(events), b": still here\n\n")
        return StreamAnswer(stream, "text/event-stream", shows_end=True)

    async def _named(self, call: Call, field: str) -> Job | None:
        """The job that the query names in full; None where it names none."""
        if not (name := call.query.get(field, "")):
            return None
        if (match := _NAME.fullmatch(name)) is None:
            wanted = "projects/PROJECT/locations/LOCATION/customJobs/JOB"
            raise Invalid((Violation(field, f"{field} must be {wanted}, not '{name[:100]}'."),))
        require(call, Permission.LOGS_READ, Resource(match[1]))
        return await self.jobs.get(*match.groups())

    async def _events(self, where: tuple[str, str, str, str, str], logs: Job | None) -> AsyncGenerator[bytes]:
        with self.hints.listen(*where) as listener:
            growing = None if logs is None else asyncio.create_task(self._log_grows(logs, listener))
            try:
                while True:
                    yield _rendered(await listener.next())
            finally:
                if growing is not None:
                    growing.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Unavailable):
                        await growing

    async def _log_grows(self, job: Job, listener: HintListener) -> None:
        async with contextlib.aclosing(self.logs.growth(job)) as growth:
            await anext(growth, None)  # what is there when the stream begins is read anyway
            async for _ in growth:
                listener.tell_growth(job.name, "log")
                await asyncio.sleep(BETWEEN)


def _rendered(news: News) -> bytes:
    items: list[dict[str, object]] = [{"everything": True}] if news.is_everything else []
    items += [_hint(hint) for hint in news.hints]
    items += [_growth(name, what) for name, what in news.grown]
    # Only the last has the id: a client that is cut off before it gets all of them again.
    *first, last = [f"data: {json.dumps(item)}\n\n" for item in items]
    return "".join([*first, f"id: {news.id}\n", last]).encode()


def _growth(name: str, what: str) -> dict[str, object]:
    return {"name": name, what: True}


def _hint(hint: JobHint) -> dict[str, object]:
    answer: dict[str, object] = {"name": hint.name, "version": hint.version}
    return answer | {"deleted": True} if hint.is_deleted else answer

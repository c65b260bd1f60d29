"""Adaptations for the real gcloud: `stream-logs` on a running job must end when the job ends.

gcloud fetches the job once, at the start. It ends its loop only if that answer had an endTime, after two
polls in a row without a new line. So its command, recognised by its user agent, gets an endTime at once,
and its polls stay open while the job runs and prints nothing. A job that is silent for longer than a poll
can stay open gets a line from the service, so that two polls in a row are never empty before the end.

`ai-platform jobs stream-logs`, and `submit training`, which asks for logs only with --stream-logs, fetch
the job each time. They end by themselves, but would miss the lines of the last five seconds.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from trainshed.core.event import Event, Reason
from trainshed.core.jobs.job import Job
from trainshed.core.logs import LogQuery
from trainshed.wire.scalars import nanos_text

STREAMS = re.compile(
    r"command/gcloud(\.\w+)?\.((ai|ai-platform)\.[\w.-]*stream-logs|ai-platform\.jobs\.submit\.training)"
)
UPPER_BOUND = re.compile(r'\sAND\s+timestamp<"[^"]*"')
HOLD = 240.0  # seconds; gcloud's own HTTP timeout is 300
SETTLE_NS = 500_000_000  # for this long lines of two replicas may arrive out of order


def streams_logs(user_agent: str) -> bool:
    return STREAMS.search(user_agent) is not None


def without_upper_bound(log_filter: str) -> str:
    """gcloud asks only for lines older than five seconds. A poll that waits may answer with newer ones."""
    return UPPER_BOUND.sub("", log_filter)


def settled_ns() -> int:
    """The time up to which all lines of all replicas have arrived."""
    return time.time_ns() - SETTLE_NS


async def settle() -> None:
    await asyncio.sleep(1.2 * SETTLE_NS / 1e9)


def printed_already(entries: Sequence[Mapping[str, object]], query: LogQuery) -> tuple[int, str] | None:
    """The place of the only entry, where it is the last that gcloud printed.

    gcloud asks from the time of its last entry on, inclusive, and counts a poll that brings only that entry
    as empty. Once it has printed two entries of one time, it asks behind the second (`query.after`).
    """
    if len(entries) != 1 or query.since_ns is None or query.after is not None:
        return None
    at, insert_id = entries[0]["timestamp"], str(entries[0]["insertId"])
    return (query.since_ns, insert_id) if at == nanos_text(query.since_ns) else None


def still_running(job: Job, until_ns: int) -> Event:
    """An event at the end of the lines sent so far, since gcloud skips anything older than the last line."""
    at = datetime.fromtimestamp(until_ns // 1000 / 1e6, UTC)
    minutes = (at - (job.status.started_at or job.created_at)).total_seconds() / 60
    text = (
        f"The job is {job.status.state.lower()} ({minutes:.0f} min); no new output for {HOLD / 60:.0f} min."
    )
    return Event(at=at, reason=Reason.RUNNING, message=text, attempt=job.status.attempt)

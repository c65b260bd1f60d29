"""customJobs:read: a job file in YAML or JSON as the body of a create. Nothing is stored."""

import asyncio

from trainshed.api.call import Call, Json
from trainshed.wire.job_text import parse_job_text


async def read_job_text(call: Call) -> Json:
    """In a thread: a large file takes more than a second."""
    return {"job": await asyncio.to_thread(parse_job_text, await call.whole_body())}

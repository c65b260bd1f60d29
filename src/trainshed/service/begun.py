"""Waits a moment for a replica whose start is under way, so that nobody is refused for milliseconds.

The services of shells and of stacks call it. A program may print before its job is stored as running, and who
reads that line may ask at once. Whoever has to wait for longer is told why by the caller.
"""

import asyncio
from collections.abc import Awaitable, Callable

from trainshed.core.jobs.job import Job
from trainshed.core.jobs.replica import Phase

PATIENCE = 5.0  # seconds
_LOOK = 0.05  # seconds between looks at the store, which has jobs that are not over in memory


async def once_begun(load: Callable[[], Awaitable[Job]], task: str, patience: float) -> Job:
    """The job when that replica (where none is named: any) runs, is not being started, or time is over."""
    clock = asyncio.get_running_loop().time
    until = clock() + patience
    job = await load()
    while _is_being_started(job, task) and clock() < until:
        await asyncio.sleep(_LOOK)
        job = await load()
    return job


def _is_being_started(job: Job, task: str) -> bool:
    if job.is_final or job.status.admission is None or job.status.closing is not None:
        return False
    phases = [replica.phase for replica in job.status.replicas if task in ("", replica.task)]
    return Phase.PLANNED in phases and Phase.RUNNING not in phases


def why_not_begun(job: Job) -> str:
    """What a job waits for, to be put behind its state; empty where nothing is known."""
    return f": {job.status.waiting.message}" if job.status.waiting is not None else ""

"""Wakes callers that wait for a change of a job, so that they need not poll.

Every writer of a job calls `ring` after its commit. `service/jobs.py` and `service/logs.py` listen.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from trainshed.core.jobs.job import Job


class JobNotifier:
    """In memory only: after a restart clients ask again."""

    def __init__(self) -> None:
        self._waiters: dict[str, set[asyncio.Event]] = {}

    def ring(self, job: Job) -> None:
        for waiter in self._waiters.get(job.id, ()):
            waiter.set()

    @contextmanager
    def listen(self, job: str) -> Generator[asyncio.Event]:
        event = asyncio.Event()
        waiters = self._waiters.setdefault(job, set())
        waiters.add(event)
        try:
            yield event
        finally:
            waiters.discard(event)
            if not waiters and self._waiters.get(job) is waiters:
                del self._waiters[job]

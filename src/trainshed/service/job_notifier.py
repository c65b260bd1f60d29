"""Who waits for a job to end is woken, not made to ask again: a bell per job, rung at every write."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from trainshed.core.job import Job


class JobNotifier:
    """In-memory only: after a restart clients simply ask again."""

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

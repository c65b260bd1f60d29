"""WorkQueue: calls one function for each hinted key: once at a time per key, many keys concurrently.

The loops of this package use it. A flight is one call of the function for one key. A hint only says "look at
this key". Hints during a flight cause one more flight, however many they are. A key whose flight fails is
retried with back-off. A lost hint costs latency, never correctness: a tick looks at everything periodically.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeAlias

from trainshed.core.errors import Unavailable
from trainshed.core.ports import Clock

log = logging.getLogger(__name__)

Work: TypeAlias = Callable[[str], Awaitable[datetime | None]]  # returns when to look again

MOST_FLIGHTS = 32
FIRST_BACKOFF, MOST_BACKOFF = 0.2, 30.0  # seconds


class WorkQueue:
    def __init__(self, clock: Clock, most_flights: int = MOST_FLIGHTS) -> None:
        self._clock, self._most_flights = clock, most_flights
        self._work: Work | None = None
        self._dirty: OrderedDict[str, None] = OrderedDict()  # waiting for a flight, oldest first
        self._once_more: set[str] = set()  # hinted during their flight
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._due: dict[str, float] = {}  # when each timer is due: not every loop's timers can tell
        self._failures: dict[str, int] = {}
        self._closed = False

    def serve(self, work: Work) -> None:
        """Set the function that a flight calls; hints that came before are served now.

        Not an argument of the constructor, because that function may need the queue.
        """
        self._work = work
        self._take_off()

    def hint(self, key: str) -> None:
        if self._closed:
            return
        if key in self._flying:
            self._once_more.add(key)
        else:
            self._dirty[key] = None
            self._take_off()

    def at(self, key: str, when: datetime) -> None:
        """Look again at that time at the latest; a later call replaces the time."""
        delay = max(0.0, (when - self._clock.now()).total_seconds())
        # Long timers are cut: over a week the event loop's time may drift from the clock.
        self._ring_in(key, min(delay, 3600.0))

    def within(self, key: str, delay: float) -> None:
        """Look within that time. An earlier timer stays, so that many callers cause one look."""
        if key in self._flying:
            self.hint(key)  # the flight sets its own timer at its end
        elif not self._closed and key not in self._dirty:
            due = asyncio.get_running_loop().time() + delay
            if key not in self._timers or self._due[key] > due:
                self._ring_in(key, delay)

    async def close(self) -> None:
        """Take no more hints, and wait for the running flights."""
        self._closed = True
        self._dirty.clear()
        for timer in self._timers.values():
            timer.cancel()
        await asyncio.gather(*self._flying.values(), return_exceptions=True)

    def _ring_in(self, key: str, delay: float) -> None:
        self._forget_timer(key)
        loop = asyncio.get_running_loop()
        self._due[key] = due = loop.time() + delay
        self._timers[key] = loop.call_at(due, self._expire, key)

    def _expire(self, key: str) -> None:
        self._forget_timer(key)
        self.hint(key)

    def _forget_timer(self, key: str) -> None:
        self._due.pop(key, None)
        if timer := self._timers.pop(key, None):
            timer.cancel()

    def _take_off(self) -> None:
        while self._work is not None and self._dirty and len(self._flying) < self._most_flights:
            key, _ = self._dirty.popitem(last=False)
            self._forget_timer(key)  # this flight serves the timer; its end sets the next
            self._flying[key] = asyncio.create_task(self._fly(key))

    async def _fly(self, key: str) -> None:
        try:
            assert self._work is not None
            again_at = await self._work(key)
            self._failures.pop(key, None)
            if again_at is not None and not self._closed:
                self.at(key, again_at)
        except Exception as error:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            delay = min(FIRST_BACKOFF * 2 ** (count - 1), MOST_BACKOFF)
            if isinstance(error, Unavailable):  # its sentence says all: no fault of ours
                log.warning("work on %s has to wait; again in %g s: %s", key, delay, error.message)
            else:
                log.exception("work on %s failed (%d times in a row); again in %g s", key, count, delay)
            if not self._closed:
                self._ring_in(key, delay)
        finally:
            del self._flying[key]
            if not self._closed:
                if key in self._once_more:
                    self._once_more.discard(key)
                    self._dirty[key] = None
                self._take_off()

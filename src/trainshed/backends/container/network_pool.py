"""Networks that are kept for the next job, while jobs come thick and fast.

One that is new is held as soon as several were wanted within a short time; when its job is over, the next one
has it. Where none was wanted for a while all are let go, also those of jobs that still run: they need no
holder. It may assume that a network is given back only when nothing of its job is left. It never makes one,
and whatever goes wrong here costs time only.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine

from trainshed.backends.container.net import JobNetwork
from trainshed.backends.container.network_anchor import NetworkAnchor
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError

_log = logging.getLogger(__name__)
_MANY, _WITHIN = 3, 5.0  # jobs in so many seconds: the next will not be long
MOST = 8  # held at once
_IDLE = 20.0  # seconds without a job that wanted one
_TRIES = 3  # to hold one, after which it is given up
_CLOSING = 3.0  # seconds


class NetworkPool:
    def __init__(
        self,
        holder: NetworkAnchor,
        remove: Callable[[JobNetwork], Coroutine[None, None, None]],
        *,
        most: int = MOST,
    ) -> None:
        self._holder, self._remove, self._most = holder, remove, most
        self._free: list[JobNetwork] = []
        self._wanted: deque[float] = deque(maxlen=_MANY)
        self._background = BackgroundTasks()
        self._resting = False
        self._failures = 0  # to hold one, in a row

    @property
    def names(self) -> frozenset[str]:
        return frozenset(net.name for net in self._free)

    @property
    def containers(self) -> frozenset[str]:
        return frozenset((self._holder.name,))

    def take(self, bits: int, *, internal: bool) -> JobNetwork | None:
        self._wanted.append(time.monotonic())
        for net in self._free:
            if net.subnet.prefixlen == bits and net.internal == internal:
                self._free.remove(net)
                return net
        return None

    def made(self, net: JobNetwork) -> None:
        """There was none to take."""
        rush = len(self._wanted) == _MANY and self._wanted[-1] - self._wanted[0] < _WITHIN
        if rush and self._failures < _TRIES and len(self._holder.held) < self._most:
            self._background.run(self._hold(net))

    def holds(self, net: JobNetwork) -> bool:
        return self._holder.holds(net)

    def keep(self, net: JobNetwork) -> bool:
        """Whether it takes back what its job needs no more."""
        kept = self.holds(net)
        if kept:
            self._free.append(net)
        return kept

    def doubt(self) -> None:
        """Networks have vanished: no more of those that are free is given away."""
        free, self._free = self._free, []
        for net in free:
            self._background.run(self._let_go(net, free=True))

    async def close(self) -> None:
        await self._background.close()
        try:
            async with asyncio.timeout(_CLOSING):  # the next server goes on
                await self._holder.close()
                while self._free:
                    await self._remove(self._free.pop())
        except (TimeoutError, TrainshedError) as error:
            _log.info("networks are left to the next server: %s", error)

    async def _hold(self, net: JobNetwork) -> None:
        try:
            await self._holder.hold(net)
            self._failures = 0
        except TrainshedError as error:
            if "network not found" not in error.message:  # as it is where its job has ended meanwhile
                self._failures += 1
                _log.info("a network is not kept for the next job: %s", error.message)
        if self._holder.held and not self._resting:
            self._resting = True
            self._background.run(self._rest())

    async def _rest(self) -> None:
        """One at a time, so that a job that comes now does not wait for all of them."""
        try:
            while held := self._holder.held:
                wait = self._wanted[-1] + _IDLE - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                    continue
                await self._let_go(held[0], free=self._claim(held[0]))
        finally:
            self._resting = False

    def _claim(self, net: JobNetwork) -> bool:
        """Whether it was free; nobody else has it from now on."""
        free = net in self._free
        if free:
            self._free.remove(net)
        return free

    async def _let_go(self, net: JobNetwork, *, free: bool) -> None:
        """And away with it, unless a job has it."""
        try:
            await self._holder.let_go(net)
            if free or self._claim(net):  # its job may have ended meanwhile
                await self._remove(net)
        except TrainshedError as error:
            _log.info("network %s is left to the next server: %s", net.name, error.message)

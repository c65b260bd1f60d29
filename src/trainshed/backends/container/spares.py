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

from trainshed.backends.container.holder import Holder
from trainshed.backends.container.net import Net
from trainshed.core.errors import TrainshedError

_log = logging.getLogger(__name__)
_MANY, _WITHIN = 3, 5.0  # jobs in so many seconds: the next will not be long
_MOST = 8  # held at once
_IDLE = 20.0  # seconds without a job that wanted one
_CLOSING = 3.0  # seconds


class Spares:
    def __init__(self, holder: Holder, remove: Callable[[Net], Coroutine[None, None, None]]) -> None:
        self._holder, self._remove = holder, remove
        self._free: list[Net] = []
        self._wanted: deque[float] = deque(maxlen=_MANY)
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting = False
        self._broken = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset(net.name for net in self._free)

    @property
    def containers(self) -> frozenset[str]:
        return frozenset((self._holder.name,))

    def take(self, bits: int, *, internal: bool) -> Net | None:
        self._wanted.append(time.monotonic())
        for net in self._free:
            if net.subnet.prefixlen == bits and net.internal == internal:
                self._free.remove(net)
                return net
        return None

    def made(self, net: Net) -> None:
        """There was none to take."""
        rush = len(self._wanted) == _MANY and self._wanted[-1] - self._wanted[0] < _WITHIN
        if rush and not self._broken and len(self._holder.held) < _MOST:
            self._do(self._hold(net))

    def holds(self, net: Net) -> bool:
        return self._holder.holds(net)

    def keep(self, net: Net) -> bool:
        """Whether it takes back what its job needs no more."""
        kept = self.holds(net)
        if kept:
            self._free.append(net)
        return kept

    def doubt(self) -> None:
        """Networks have vanished: no more of those that are free is given away."""
        free, self._free = self._free, []
        for net in free:
            self._do(self._let_go(net, free=True))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(_CLOSING):  # the next server goes on
                await self._holder.close()
                while self._free:
                    await self._remove(self._free.pop())
        except (TimeoutError, TrainshedError) as error:
            _log.info("networks are left to the next server: %s", error)

    async def _hold(self, net: Net) -> None:
        try:
            await self._holder.hold(net)
        except TrainshedError as error:
            # Its job may have ended meanwhile, and the network with it; all else will not get better.
            self._broken = "network not found" not in error.message
            if self._broken:
                _log.info("networks are not kept for the next job: %s", error.message)
            return
        if not self._resting:
            self._resting = True
            self._do(self._rest())

    async def _rest(self) -> None:
        """One at a time, so that a job that comes now does not wait for all of them."""
        try:
            while held := self._holder.held:
                wait = self._wanted[-1] + _IDLE - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                    continue
                free = held[0] in self._free
                if free:
                    self._free.remove(held[0])
                await self._let_go(held[0], free=free)
        finally:
            self._resting = False

    async def _let_go(self, net: Net, *, free: bool) -> None:
        """And away with it, unless a job has it."""
        try:
            await self._holder.let_go(net)
            if free:
                await self._remove(net)
        except TrainshedError as error:
            _log.info("network %s is left to the next server: %s", net.name, error.message)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

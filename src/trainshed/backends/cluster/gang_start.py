"""GangStart: when the programs of a gang may begin: once each of its pods has answered and has its files.

The run supervisor calls it whenever a pod may be the last one. It tells nobody anything itself. A gang is
looked at once for many answers: with a thousand pods each look takes a while.
"""

import asyncio
from collections.abc import Callable

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.cluster.surroundings import Surroundings
from trainshed.background_tasks import BackgroundTasks

_EACH = 5e-5  # seconds between two looks at a gang, for each of its pods: all of them are looked at
_NAMELESS = 1.0  # seconds after which names that could not be made are tried again
_UNLAUNCHED = 10.0  # seconds without a launch after which a gang waits for no further replicas
_Gang = tuple[str, int]  # by job and attempt


class GangStart:
    def __init__(
        self,
        surroundings: Surroundings,
        is_there: Callable[[PodRun], bool],
        begin: Callable[[PodRun], None],
        background: BackgroundTasks,
    ) -> None:
        """`is_there` says whether a run may begin; `begin` is called for each run of a gang that may."""
        self._around, self._is_there, self._begin = surroundings, is_there, begin
        self._background = background
        self._looks: set[_Gang] = set()  # gangs that will be looked at
        self._late_looks: set[_Gang] = set()

    def look(self, run: PodRun) -> None:
        """Look at its gang soon, for all that answer until then."""
        if _gang(run) not in self._looks:
            self._looks.add(_gang(run))
            self._background.run(self._look_soon(run))

    async def _look_soon(self, run: PodRun) -> None:
        await asyncio.sleep(run.gang * _EACH)
        self._looks.discard(_gang(run))
        await self._begin_all(run, 0)

    async def _look_late(self, run: PodRun, launched: int) -> None:
        await asyncio.sleep(_UNLAUNCHED)
        self._late_looks.discard(_gang(run))
        await self._begin_all(run, launched)

    async def _begin_all(self, run: PodRun, launched: int) -> None:
        while there := self._ready(run, launched):
            try:
                await self._around.give_names(run)
            except ApiFault:
                await asyncio.sleep(_NAMELESS)
                continue
            for peer in there:
                self._begin(peer)
            return

    def _ready(self, run: PodRun, launched: int) -> list[PodRun]:
        """Its gang, once that may begin. `launched` is how many there were a while ago: if there are no more,
        the others are not waited for."""
        latest: dict[tuple[int, int], PodRun] = {}
        for peer in self._around.peers(run.key.name):
            place = (peer.key.name.pool, peer.key.name.index)
            if place not in latest or latest[place].key.run < peer.key.run:
                latest[place] = peer
        there = [peer for peer in latest.values() if self._is_there(peer)]
        if len(there) >= (len(latest) if launched == len(latest) else run.gang):
            return there if any(not peer.record.begun for peer in there) else []
        if len(latest) < run.gang and _gang(run) not in self._late_looks:
            self._late_looks.add(_gang(run))
            self._background.run(self._look_late(run, len(latest)))
        return []


def _gang(run: PodRun) -> _Gang:
    return run.key.name.job, run.key.name.attempt

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
_NAMELESS = 1.0  # seconds after which a gang whose names could not be made is looked at again
_UNLAUNCHED = 10.0  # seconds for which a gang waits for replicas that nobody launches


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
        self._looks: set[tuple[str, int]] = set()  # gangs, by job and attempt, that will be looked at
        self._late_looks: set[tuple[str, int]] = set()

    def look(self, run: PodRun) -> None:
        """Look at its gang soon, for all that answer until then."""
        self._plan(run, self._looks, run.gang * _EACH)

    def _plan(self, run: PodRun, looks: set[tuple[str, int]], seconds: float) -> None:
        gang = run.key.name.job, run.key.name.attempt
        if gang not in looks:
            looks.add(gang)
            self._background.run(self._look_later(run, looks, seconds))

    async def _look_later(self, run: PodRun, looks: set[tuple[str, int]], seconds: float) -> None:
        await asyncio.sleep(seconds)
        looks.discard((run.key.name.job, run.key.name.attempt))
        if there := self._ready(run, is_late=looks is self._late_looks):
            try:
                await self._around.give_names(run)
            except ApiFault:
                self._plan(run, looks, _NAMELESS)
                return
            for peer in there:
                self._begin(peer)

    def _ready(self, run: PodRun, *, is_late: bool) -> list[PodRun]:
        """Its gang, once that may begin. One that was not even launched for a while is not waited for."""
        latest: dict[tuple[int, int], PodRun] = {}
        for peer in self._around.peers(run.key.name):
            place = (peer.key.name.pool, peer.key.name.index)
            if place not in latest or latest[place].key.run < peer.key.run:
                latest[place] = peer
        there = [peer for peer in latest.values() if self._is_there(peer)]
        if len(there) < (len(latest) if is_late else run.gang):
            if len(latest) < run.gang and not is_late:
                self._plan(run, self._late_looks, _UNLAUNCHED)
            return []
        return there if any(not peer.record.begun for peer in there) else []

"""Ends runs that use more memory than they may, where no cgroup limits them.

A backend calls `take` with what its runs use whenever it samples them, which the collector does every two
seconds. Near a limit the watch samples sooner. Of runs that share a limit it ends the one that is furthest
over its own part. It needs a running event loop. It never ends a run whose use was not measured.
"""

from collections.abc import Iterable, Mapping

from trainshed.backends.machine.limit_watch import AHEAD, NEAR, AnyRun, LimitWatch
from trainshed.core.jobs.limits import MemoryLimit
from trainshed.core.names import RunKey
from trainshed.core.queue.machine import in_gib


class MemoryWatch(LimitWatch[AnyRun]):
    def take(self, runs: Iterable[AnyRun], used: Mapping[RunKey, int]) -> None:
        """What the runs use that no cgroup holds to their limits."""
        watched = {run.key: run for run in runs if run.memory is not None and run.key in used}
        limits = {key: run.memory for key, run in watched.items() if run.memory is not None}
        # What a run that is being ended still has does not count against the others: it gives that back.
        staying = {key: limit for key, limit in limits.items() if not watched[key].over_memory}
        over = excess(staying, used)
        self._ending &= watched.keys()
        for key, run in watched.items():
            if key in over:
                run.note_over_memory(in_words(limits[key], used[key], over[key]))
            if run.over_memory:
                self.end_once(run)
        if limits and is_near(limits, used, self._before):
            self.look_soon()
        self._before = {key: used[key] for key in limits}


def excess(limits: Mapping[RunKey, MemoryLimit], used: Mapping[RunKey, int]) -> dict[RunKey, int]:
    """Those to be ended, each with what counts against its limit. Pure."""
    over: dict[RunKey, int] = {}
    for keys in _rooms(limits):
        together = sum(used[key] for key in keys)
        if together > limits[keys[0]].most:
            over[max(keys, key=lambda key: used[key] - limits[key].weight)] = together
    return over


def is_near(
    limits: Mapping[RunKey, MemoryLimit], used: Mapping[RunKey, int], before: Mapping[RunKey, int]
) -> bool:
    """Whether a limit may be reached before the next look that comes by itself. Pure."""
    for keys in _rooms(limits):
        now, most = sum(used[key] for key in keys), limits[keys[0]].most
        grown = max(0, now - sum(before.get(key, 0) for key in keys))
        if now > most * NEAR or now + grown * AHEAD > most:
            return True
    return False


def in_words(limit: MemoryLimit, used: int, together: int) -> str:
    all_of_them = f", all replicas of its job here {in_gib(together)}" if limit.shared else ""
    return f"it was ended for want of memory: it used {in_gib(used)}{all_of_them}, and {limit.words}"


def _rooms(limits: Mapping[RunKey, MemoryLimit]) -> list[list[RunKey]]:
    """The runs by what limits them: each alone, or with the others of its job."""
    rooms: dict[object, list[RunKey]] = {}
    for key, limit in limits.items():
        rooms.setdefault(key.name.job if limit.shared else key, []).append(key)
    return list(rooms.values())

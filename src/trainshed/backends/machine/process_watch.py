"""Ends runs that have more processes and threads than they may, where no cgroup limits them.

A backend calls `take` with how many its runs have whenever it samples them. Where a limit is near, or one run
grows fast, the watch samples sooner; a fast fork bomb may still have more for a moment than its limit says.
It needs a running event loop. It never ends a run whose processes were not counted.
"""

from collections.abc import Iterable, Mapping

from trainshed.backends.machine.limit_watch import AHEAD, NEAR, AnyRun, LimitWatch
from trainshed.core.names import RunKey


class ProcessWatch(LimitWatch[AnyRun]):
    def take(self, runs: Iterable[AnyRun], counts: Mapping[RunKey, int]) -> None:
        """How many processes and threads the runs have that no cgroup limits."""
        watched = {run.key: run for run in runs if run.most_processes and run.key in counts}
        self._ending &= watched.keys()
        for key, run in watched.items():
            if counts[key] > run.most_processes and not run.over_processes:
                run.note_over_processes(in_words(counts[key], run.most_processes))
            if run.over_processes:
                self.end_once(run)
        limits = {key: run.most_processes for key, run in watched.items()}
        if any(_is_near(counts[key], self._before.get(key, 0), most) for key, most in limits.items()):
            self.look_soon()
        self._before = {key: counts[key] for key in watched}


def in_words(count: int, most: int) -> str:
    return f"it was ended: it had {count} processes and threads, and its limit is {most}"


def _is_near(count: int, before: int, most: int) -> bool:
    return count > most * NEAR or count + max(0, count - before) * AHEAD > most

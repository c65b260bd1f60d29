"""Where the folder of each run is below those of the jobs, and which runs there are: for every backend.

It makes nothing and reads no file of a run: what is in a run's folder is its backend's own.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from trainshed.core.names import ReplicaName, RunKey

R = TypeVar("R")


def run_folder(jobs: Path, key: RunKey) -> Path:
    name = key.name
    return jobs / name.job / str(name.attempt) / f"{name.pool}-{name.index}" / str(key.run)


def find_runs(jobs: Path, reload: Callable[[RunKey, Path], R]) -> Iterator[tuple[str, list[R]]]:
    """Every job's folder and the runs in it, as an earlier server left them."""
    for job in sorted(jobs.iterdir()):
        runs: list[R] = []
        for path in sorted(job.glob("*/*-*/*/")):
            pool, _, index = path.parent.name.partition("-")
            with contextlib.suppress(ValueError):  # `work`, `tmp`: not a run
                name = ReplicaName(job.name, int(path.parent.parent.name), int(pool), int(index))
                runs.append(reload(RunKey(name, int(path.name)), path))
        yield job.name, runs

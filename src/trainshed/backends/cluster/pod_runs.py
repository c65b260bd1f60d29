"""PodRuns: the runs that the server knows in the cluster, by job, and the token of each job's pods.

The backend adds and removes them; its parts look them up. It never talks to the cluster.
"""

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainshed.backends.cluster.run import PodRun
from trainshed.backends.machine.home_files import made_once
from trainshed.core.names import ReplicaName, RunKey


class PodRuns:
    def __init__(self, jobs: Path) -> None:
        """`jobs` is the folder of their folders."""
        self._jobs = jobs
        self._by_job: dict[str, dict[RunKey, PodRun]] = {}
        self._by_place: dict[str, dict[tuple[int, int], list[PodRun]]] = {}
        self._tokens: dict[str, str] = {}

    def __contains__(self, job: object) -> bool:
        return job in self._by_job

    def __iter__(self) -> Iterator[PodRun]:
        for runs in self._by_job.values():
            yield from runs.values()

    @property
    def jobs(self) -> frozenset[str]:
        return frozenset(self._by_job)

    def add(self, job: str, runs: Iterable[PodRun]) -> None:
        known, places = self._by_job.setdefault(job, {}), self._by_place.setdefault(job, {})
        for run in runs:
            if run.key not in known:
                known[run.key] = run
                places.setdefault((run.key.name.pool, run.key.name.index), []).append(run)

    def forget(self, job: str) -> None:
        self._by_job.pop(job, None)
        self._by_place.pop(job, None)
        self._tokens.pop(job, None)

    def find(self, key: RunKey) -> PodRun | None:
        return self._by_job.get(key.name.job, {}).get(key)

    def of(self, job: str) -> list[PodRun]:
        return list(self._by_job.get(job, {}).values())

    def of_place(self, name: ReplicaName) -> list[PodRun]:
        """The runs of a replica, of any attempt."""
        return list(self._by_place.get(name.job, {}).get((name.pool, name.index), ()))

    def of_attempt(self, name: ReplicaName) -> list[PodRun]:
        """The runs of a replica's attempt."""
        runs = self._by_job.get(name.job, {}).values()
        return [run for run in runs if run.key.name.attempt == name.attempt]

    def layers(self) -> set[str]:
        """The folders of layers that runs are brought, or may be brought again."""
        return {run.places.layer for run in self if not run.gone.is_set()}

    def token(self, job: str) -> str:
        """By which the server shows the inits of a job's pods that it is the server."""
        if job not in self._tokens:
            (self._jobs / job).mkdir(mode=0o700, exist_ok=True)
            self._tokens[job] = made_once(self._jobs / job / "token", lambda: secrets.token_hex(32))
        return self._tokens[job]

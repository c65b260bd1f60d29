"""Converts kinds with several Pod templates, which an operator starts together, to one customJob. Pure.

The reader of each such kind calls it. A template becomes a pool with one container. What the operator of the
kind would tell a Pod (variables, labels, names) is told to the replicas, as far as the reader of the kind
says. Texts keep `$(NAME)` for what is known when a replica is placed (`core/jobs/pool_words.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainshed.core.jobs.pool_words import PoolWords
from trainshed.core.queue.machine import Catalogue
from trainshed.dialects.kubernetes.job import MOST_RESTARTS, strategy_of
from trainshed.dialects.kubernetes.pod import POOLS, PodFields, PodReader, Wanted, annotations_of, job_body
from trainshed.dialects.kubernetes.shape import number, part, parts, text
from trainshed.wire.faults import Faults

LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")  # a part of a host name
_SUCCESS = "job_spec.scheduling.success_pools"
_TIMEOUT, _GRACE = "job_spec.scheduling.timeout", "job_spec.scheduling.grace_period"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPool:
    template: Mapping[str, Any]  # of its Pods
    path: str  # of the template
    replicas: int
    counted_at: str  # the path of their count
    fields: PodFields
    words: PoolWords
    env: Mapping[str, str] = field(default_factory=dict[str, str])  # what the operator sets

    @property
    def pod(self) -> Mapping[str, Any]:
        return part(self.template, "spec")


class GangReader:
    """Reads one document. `wanted` is complete once `convert` has returned."""

    def __init__(self, document: Mapping[str, Any], catalogue: Catalogue, faults: Faults) -> None:
        notes: list[str] = []
        self.document, self.faults, self.notes = document, faults, notes
        self.wanted = Wanted(job_body(document, notes), notes=notes)
        self._catalogue = catalogue
        self._strategy = ""

    @property
    def name(self) -> str:
        return text(part(self.document, "metadata"), "name")

    @property
    def namespace(self) -> str:
        given = text(part(self.document, "metadata"), "namespace")
        return given if LABEL.fullmatch(given) else "default"  # it becomes a part of host names

    def convert(
        self, pools: Sequence[GangPool | None], counted_at: str, scheduling: Mapping[str, Any]
    ) -> Wanted:
        """The job with these pools; None is an empty one. `counted_at`: the path of their list."""
        self.wanted.origins |= {POOLS: counted_at, _SUCCESS: counted_at}
        specs = [spec for at, pool in enumerate(pools) for spec in (self._pool(at, pool) if pool else [{}])]
        if not pools:
            self.faults.add(counted_at, "is required: at least one replica.")
        limits = self._limits([pool for pool in pools if pool]) | dict(scheduling)
        if self._strategy:
            limits["strategy"] = self._strategy
        self.wanted.body["jobSpec"] = {"workerPoolSpecs": specs, "scheduling": limits}
        self.wanted.pools = tuple(pool.words if pool else PoolWords() for pool in pools)
        return self.wanted

    def limit(self, source: Mapping[str, Any], name: str, path: str, *, default: int) -> int:
        """A number of restarts."""
        count = number(source, name)
        if count is not None and not 0 <= count <= MOST_RESTARTS:
            self.faults.add(f"{path}.{name}", f"must be between 0 and {MOST_RESTARTS}, not {count}.")
        return default if count is None else count

    def timeout(self, source: Mapping[str, Any], path: str) -> dict[str, Any]:
        """What `activeDeadlineSeconds` means; nothing where it is not there."""
        seconds = number(source, "activeDeadlineSeconds")
        if seconds is None:
            return {}
        if seconds < 1:
            self.faults.add(f"{path}.activeDeadlineSeconds", f"must be at least 1, not {seconds}.")
        self.wanted.origins[_TIMEOUT] = f"{path}.activeDeadlineSeconds"
        return {"timeout": f"{seconds}s"}

    def _pool(self, at: int, pool: GangPool) -> Sequence[dict[str, Any]]:
        path = f"{pool.path}.spec"
        if len(parts(pool.pod, "containers")) > 1:
            sentence = "cannot be had: a Pod has one container here; do what the others do in the first one."
            self.faults.add(f"{path}.containers[1]", sentence)
        annotations = annotations_of(self.document, pool.template, self.notes)
        self._strategy = self._strategy or strategy_of(annotations, self.faults)
        reader = PodReader(
            pod=pool.pod,
            path=path,
            annotations=annotations,
            fields=pool.fields,
            catalogue=self._catalogue,
            faults=self.faults,
            wanted=self.wanted,
            env=pool.env,
            is_late=True,
        )
        return list(reader.pools(at, pool.replicas, pool.counted_at))[:1]

    def _limits(self, pools: Sequence[GangPool]) -> dict[str, Any]:
        """The shortest timeout and the longest grace period of all Pods."""
        result: dict[str, Any] = {}
        deadlines = [(number(pool.pod, "activeDeadlineSeconds"), pool) for pool in pools]
        if given := [(seconds, pool) for seconds, pool in deadlines if seconds is not None]:
            _, pool = min(given, key=lambda pair: pair[0])
            result |= self.timeout(pool.pod, f"{pool.path}.spec")
        graces = [(number(pool.pod, "terminationGracePeriodSeconds"), pool) for pool in pools]
        if known := [(seconds, pool) for seconds, pool in graces if seconds is not None]:
            seconds, pool = max(known, key=lambda pair: pair[0])
            result["gracePeriod"] = f"{seconds}s"
            self.wanted.origins[_GRACE] = f"{pool.path}.spec.terminationGracePeriodSeconds"
        return result


def service_names(host: str, namespace: str) -> tuple[str, ...]:
    """The names under which a cluster's DNS has a service or a Pod's host."""
    endings = ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local")
    return tuple(f"{host}{ending}" for ending in endings)

"""What a job has in the cluster: pods, and for all of them a secret, a service and perhaps a network policy.

The backend makes and removes it, the supervisor takes single pods away. Every step can be repeated: what is
there already is left as it is, and what is gone already is no fault.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping

from trainshed.backends.cluster import pod as pods
from trainshed.backends.cluster.api import FORBIDDEN, ApiFault, ClusterApi
from trainshed.backends.cluster.cluster_queues import ClusterQueues
from trainshed.backends.cluster.grouping import grouping_of
from trainshed.backends.cluster.objects import Object
from trainshed.backends.cluster.pod_variables import MANY
from trainshed.backends.cluster.run import PodRun

log = logging.getLogger(__name__)

_LEAST_PAUSE, _MOST_PAUSE = 0.2, 5.0  # seconds before a pod that could not be removed is tried again


class JobObjects:
    def __init__(self, api: ClusterApi) -> None:
        self._api = api
        self.home = ""  # the server's id
        self._kept: dict[str, dict[str, int]] = {}  # what the secret of a job has: hashes of its values
        self._named: set[str] = set()  # jobs that have their service

    async def make_shared(self, run: PodRun, values: Mapping[str, str]) -> None:
        """What all its pods need. Somebody may have deleted it, so a later run looks again."""
        job = run.key.name.job
        is_new = job not in self._kept or run.key.run > 0
        kept = self._kept.get(job, {})
        # A named secret may have another value in a later attempt.
        missing = {
            key: value for key, value in values.items() if is_new or kept.get(key) != hash((key, value))
        }
        is_made = is_new and await self._api.make("secrets", pods.render_secret(self.home, job, missing))
        if missing and not is_made:
            await self._add_to_secret(job, missing, values)
        if is_new:
            self._named.discard(job)
            if run.isolated:
                await self._api.make("networkpolicies", pods.render_policy(self.home, job))
        if run.gang <= MANY:
            await self.give_names(job)
        hashes = {key: hash((key, value)) for key, value in values.items()}
        self._kept.setdefault(job, {}).update(hashes)

    async def _add_to_secret(self, job: str, missing: Mapping[str, str], values: Mapping[str, str]) -> None:
        try:
            await self._api.patch("secrets", pods.job_object(self.home, job), {"stringData": dict(missing)})
        except ApiFault as fault:
            if not fault.is_missing:
                raise
            self._kept.pop(job, None)
            await self._api.make("secrets", pods.render_secret(self.home, job, values))

    async def give_names(self, job: str) -> None:
        """The names of its replicas. A large gang gets them when all of its pods are there.

        Kubernetes writes the list of all its addresses again for each pod that comes.
        """
        if job not in self._named:
            await self._api.make("services", pods.render_service(self.home, job))
            self._named.add(job)

    async def remove(self, job: str, names: Iterable[str], *, isolated: bool) -> None:
        """All of it, its names first. `names` are those of its pods."""
        name = pods.job_object(self.home, job)
        await self._api.delete("services", name)
        self._named.discard(job)
        is_there = await asyncio.gather(*(let_go(self._api, name) for name in names))
        if any(is_there):
            await self._delete_pods(job, names)
        if isolated:
            await self._api.delete("networkpolicies", name)
        await self._api.delete("secrets", name)
        self._kept.pop(job, None)

    async def remove_orphans(self, orphans: Iterable[Object], queues: ClusterQueues) -> None:
        """What is left of jobs that were removed while the cluster was away, and pods that only pulled."""
        for pod in orphans:
            job, name = job_of(pod), str(pod["metadata"]["name"])
            with contextlib.suppress(ApiFault):
                if not job:
                    await self._api.delete("pods", name, grace=0)
                else:
                    await queues.free([grouping_of(pod)])
                    await self.remove(job, [name], isolated=True)

    async def free_attempts(self, runs: Iterable[PodRun], queues: ClusterQueues) -> None:
        """Free the groups of runs that are over, for the attempt after them.

        Pods in a queue go first. Kueue deletes them with their group, but our finalizer would keep them until
        the job ends, and older releases of Kueue may make a new Workload for pods that are being deleted.
        """
        left = [run for run in runs if not queues.is_free(run.grouping)]
        await asyncio.gather(
            *(take_away(self._api, run.pod) for run in left if run.pod and run.grouping.queue)
        )
        await queues.free(run.grouping for run in left)

    async def _delete_pods(self, job: str, names: Iterable[str]) -> None:
        """In one call, where there is the right to it."""
        try:
            await self._api.delete_all("pods", f"{pods.HOME}={self.home},{pods.JOB}={job}")
        except ApiFault as fault:
            if fault.status != FORBIDDEN:
                raise
            await asyncio.gather(*(self._api.delete("pods", name, grace=0) for name in names))


def job_of(pod: Object) -> str:
    """Empty for a pod that only pulls an image."""
    return str(pod["metadata"]["labels"].get(pods.JOB) or "")


async def take_away(api: ClusterApi, pod: str) -> None:
    """Delete a pod at once, with our finalizer. One that is not there is no fault."""
    if await let_go(api, pod):
        await api.delete("pods", pod, grace=0)


async def take_away_at_last(api: ClusterApi, pod: str, is_meant: Callable[[], bool]) -> None:
    """However long the API is away: a pod that stays takes room, which its next run may need."""
    pause = _LEAST_PAUSE
    while is_meant():
        try:
            await take_away(api, pod)
            return
        except ApiFault as fault:
            if not fault.passing:
                log.warning("pod %s cannot be removed: %s", pod, fault.message)
                return
        await asyncio.sleep(pause)
        pause = min(pause * 2, _MOST_PAUSE)


async def let_go(api: ClusterApi, pod: str) -> bool:
    """Take our finalizer from a pod; whether it is there."""
    # Who owns which of its fields concerns nobody any more, and is most of what the change would cost.
    metadata: Object = {"finalizers": None, "managedFields": [{}]}
    try:
        await api.patch("pods", pod, {"metadata": metadata})
    except ApiFault as fault:
        if not fault.is_missing:
            raise
        return False
    return True

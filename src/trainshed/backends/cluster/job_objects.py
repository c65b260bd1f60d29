"""What a job has in the cluster: pods, and for all of them a secret, a service and perhaps a network policy.

The backend makes and removes it, the supervisor takes single pods away. Every step can be repeated: what is
there already is left as it is, and what is gone already is no fault.
"""

import asyncio
from collections.abc import Iterable, Mapping

from trainshed.backends.cluster import pod as pods
from trainshed.backends.cluster.api import FORBIDDEN, ApiFault, ClusterApi
from trainshed.backends.cluster.run import PodRun


class JobObjects:
    def __init__(self, api: ClusterApi) -> None:
        self._api = api
        self.home = ""  # the server's id
        self._whole: set[str] = set()  # jobs that have all but their pods

    async def make_shared(self, run: PodRun, shared: Mapping[str, str], own: Mapping[str, str]) -> None:
        """What all its pods need. Somebody may have deleted it, so a later run looks again."""
        job = run.key.name.job
        is_new = job not in self._whole or run.key.run > 0
        secret = pods.render_secret(self.home, job, {**shared, **own})
        if not (is_new and await self._api.make("secrets", secret)) and own:
            await self._api.patch("secrets", pods.job_object(self.home, job), {"stringData": own})
        if is_new:
            await self._api.make("services", pods.render_service(self.home, job))
            if run.isolated:
                await self._api.make("networkpolicies", pods.render_policy(self.home, job))
            self._whole.add(job)

    async def remove(self, job: str, names: Iterable[str], *, isolated: bool) -> None:
        """All of it. `names` are those of its pods."""
        is_there = await asyncio.gather(*(let_go(self._api, name) for name in names))
        if any(is_there):
            await self._delete_pods(job, names)
        name = pods.job_object(self.home, job)
        if isolated:
            await self._api.delete("networkpolicies", name)
        await self._api.delete("services", name)
        await self._api.delete("secrets", name)
        self._whole.discard(job)

    async def _delete_pods(self, job: str, names: Iterable[str]) -> None:
        """In one call, where there is the right to it."""
        try:
            await self._api.delete_all("pods", f"{pods.HOME}={self.home},{pods.JOB}={job}")
        except ApiFault as fault:
            if fault.status != FORBIDDEN:
                raise
            await asyncio.gather(*(self._api.delete("pods", name, grace=0) for name in names))


async def take_away(api: ClusterApi, pod: str) -> None:
    """Delete a pod at once, with our finalizer. One that is not there is no fault."""
    if await let_go(api, pod):
        await api.delete("pods", pod, grace=0)


async def let_go(api: ClusterApi, pod: str) -> bool:
    """Take our finalizer from a pod; whether it is there."""
    try:
        await api.patch("pods", pod, {"metadata": {"finalizers": None}})
    except ApiFault as fault:
        if not fault.is_missing:
            raise
        return False
    return True

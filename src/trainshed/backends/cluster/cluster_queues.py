"""ClusterQueues: which pods wait in a queue of Kueue, or are placed together, and what Kueue says of them.

The backend calls it for each run that it launches, for each pod that changes, and when a job is removed. The
API is asked for Kueue only where a job or the server names a queue, and for PodGroups only where a job has
several replicas. Workloads are watched only while a pod waits in a queue. They are never made here: Kueue
makes them.
"""

import logging
from collections.abc import Callable, Iterable

from trainshed.backends.cluster.api import FORBIDDEN, ApiFault, ClusterApi
from trainshed.backends.cluster.grouping import ALONE, Grouping, group_name, grouping_of, render_pod_group
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod import job_object, labels
from trainshed.backends.cluster.waiting_watch import WaitingWatch
from trainshed.backends.cluster.workload_reasons import missing_remedy, slim_workload
from trainshed.core.errors import Hindered
from trainshed.core.event import Reason
from trainshed.core.jobs.launch import QUEUE_LABEL, Launch
from trainshed.core.obstacle import Obstacle, Patience
from trainshed.preparation import remember

log = logging.getLogger(__name__)


class ClusterQueues:
    def __init__(
        self, api: ClusterApi, default: str, patience: Patience, changed: Callable[[str], None]
    ) -> None:
        """`default` is the queue of jobs that name none. `changed(pod)` is called for a pod that waits."""
        self._api, self._default, self._patience, self._changed = api, default, patience, changed
        self._usable: set[str] = set()  # queues that are there
        self._made: dict[str, bool] = {}  # PodGroups, by name
        self._freed: dict[str, bool] = {}  # groups of earlier attempts, by name
        self._groups: dict[str, str] = {}  # of pods that wait
        self._workloads: dict[str, Object] = {}  # all, by name, while they are watched
        self._watch = WaitingWatch("workloads of Kueue", self._open_cache)

    async def close(self) -> None:
        await self._watch.close()

    async def grouping(self, home: str, launch: Launch, peers: Iterable[Grouping] = ()) -> Grouping:
        """How the pod of a run is grouped; what that needs is there then. Hindered where its queue is not.

        `peers` are the groupings of its attempt: all its pods wait in one queue, or none of them does, also
        where label or setting have changed since. Kueue admits no group that is not whole.
        """
        name, count = launch.key.name, max(len(launch.peers), 1)
        group = group_name(job_object(home, name.job), name)
        decided = next((peer for peer in peers if peer.count), None)
        queue = (launch.queue or self._default) if decided is None else decided.queue
        if queue:
            await self._check(queue, launch)
            return Grouping(name=group, queue=queue, count=count)
        # The scheduler does not count pods that have ended: one that starts again could wait for ever.
        if count < 2 or launch.key.run or not await self._api.serves("podgroups"):
            return ALONE
        grouping = Grouping(name=group, count=count)
        return grouping if await self._make(grouping, labels(home, name.job)) else ALONE

    async def free(self, groups: Iterable[Grouping]) -> None:
        """Remove what stands for these groups in the cluster, once. Kueue ends what is left of their pods."""
        for group in {group.name: group for group in groups if not self.is_free(group)}.values():
            try:
                if group.queue and await self._api.serves("workloads"):
                    await self._api.delete("workloads", group.name)
                elif not group.queue and await self._api.serves("podgroups"):
                    await self._api.delete("podgroups", group.name)
            except ApiFault as fault:
                if fault.status != FORBIDDEN:
                    raise
                log.info("group %s: %s", group.name, fault.message)  # a Workload goes with its pods
            remember(self._freed, group.name, True)

    def is_free(self, group: Grouping) -> bool:
        """Whether nothing stands for it in the cluster, as far as that was seen to here."""
        return not group.name or group.name in self._freed

    def see(self, pod: Object, *, waits: bool) -> None:
        """Whether this pod waits: for Kueue, as long as it has no node."""
        group, name = grouping_of(pod), str(pod["metadata"]["name"])
        if not group.queue:
            return
        waits = waits and not part(pod, "spec").get("nodeName")
        if waits:
            self._groups[name] = group.name
        else:
            self._groups.pop(name, None)
        self._watch.see(name, waits=waits)

    def workload(self, pod: Object) -> Object | None:
        """What Kueue made of its group, as far as that is known."""
        return self._workloads.get(grouping_of(pod).name)

    async def _check(self, queue: str, launch: Launch) -> None:
        if queue in self._usable:
            return
        if not await self._api.serves("localqueues"):
            asks = (
                f"take the label {QUEUE_LABEL} off the job" if launch.queue else "start without --kueue-queue"
            )
            raise self._unusable(
                f"The job is to wait in queue {queue} of Kueue, which is not installed in this cluster.",
                f"Have Kueue installed, with its integration of pods switched on, or {asks}.",
            )
        try:
            await self._api.get("localqueues", queue)
        except ApiFault as fault:
            if fault.is_missing:
                where = f"namespace {self._api.namespace}"
                raise self._unusable(
                    f"Kueue has no LocalQueue {queue} in {where}.", missing_remedy(queue)
                ) from fault
            if fault.passing:
                raise
            log.info("queue %s: %s", queue, fault.message)  # Kueue itself says whether it is there
        self._usable.add(queue)

    def _unusable(self, message: str, remedy: str) -> Hindered:
        reason = Reason.CLUSTER_QUEUE_UNUSABLE
        patience = self._patience.get(reason)
        return Hindered(Obstacle(reason=reason, message=message, remedy=remedy, patience=patience))

    async def _make(self, grouping: Grouping, marks: dict[str, str]) -> bool:
        """Whether there is such a PodGroup now. Without one, pods are placed one by one."""
        if grouping.name in self._made:
            return self._made[grouping.name]
        is_made = True
        try:
            await self._api.make("podgroups", render_pod_group(grouping, marks))
        except ApiFault as fault:
            if fault.passing:
                raise
            is_made = False
            log.warning("pods are placed one by one, without a PodGroup: %s", fault.message)
        remember(self._made, grouping.name, is_made)
        return is_made

    async def _open_cache(self) -> ObjectCache:
        await self._api.serves("workloads")
        self._workloads.clear()
        return ObjectCache(self._api, "workloads", changed=self._note, slim=slim_workload)

    def _note(self, workload: Object, is_gone: bool) -> None:
        name = str(workload["metadata"]["name"])
        if is_gone:
            self._workloads.pop(name, None)
        else:
            self._workloads[name] = workload
        for pod in [pod for pod, group in self._groups.items() if group == name]:
            self._changed(pod)

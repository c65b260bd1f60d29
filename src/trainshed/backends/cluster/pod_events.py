"""PodEvents: what Kubernetes notes about pods of ours that wait, watched only while some do.

The backend tells it which pods wait, and asks it for their events when it reads their state.
"""

from collections.abc import Callable

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod_reasons import PodEvent
from trainshed.backends.cluster.waiting_watch import WaitingWatch

# What every pod has, and nobody needs to know.
_FIELDS = "involvedObject.kind=Pod,reason!=Scheduled,reason!=Created,reason!=Started,reason!=Killing"


class PodEvents:
    def __init__(self, api: ClusterApi, changed: Callable[[str], None]) -> None:
        """`changed(pod)` is called when there is something new about a pod that waits."""
        self._api, self._changed = api, changed
        self._noted: dict[str, dict[str, Object]] = {}  # by pod, by the event's name
        self._watch = WaitingWatch("events", self._open_cache)

    async def close(self) -> None:
        await self._watch.close()

    def see(self, pod: str, *, waits: bool) -> None:
        """Whether this pod waits."""
        self._watch.see(pod, waits=waits)
        if not waits:
            self._noted.pop(pod, None)

    def of(self, pod: str) -> tuple[PodEvent, ...]:
        """The oldest first."""
        rows = sorted(self._noted.get(pod, {}).values(), key=lambda row: (row["at"], row["version"]))
        return tuple(PodEvent(row["reason"], row["message"]) for row in rows)

    async def _open_cache(self) -> ObjectCache:
        return ObjectCache(self._api, "events", fields=_FIELDS, changed=self._note, slim=_slim)

    def _note(self, event: Object, is_gone: bool) -> None:
        if is_gone or event["pod"] not in self._watch.waiting:  # it goes after an hour, and may still hold
            return
        self._noted.setdefault(event["pod"], {})[event["metadata"]["name"]] = event
        self._changed(event["pod"])


def _slim(event: Object) -> Object:
    meta = part(event, "metadata")
    at = event.get("lastTimestamp") or part(event, "series").get("lastObservedTime") or event.get("eventTime")
    version = str(meta.get("resourceVersion") or "0")
    return {
        "metadata": {"name": str(meta.get("name")), "resourceVersion": version},
        "pod": str(part(event, "involvedObject").get("name")),
        "at": str(at or meta.get("creationTimestamp") or ""),
        "version": int(version) if version.isdigit() else 0,
        "reason": str(event.get("reason") or ""),
        "message": str(event.get("message") or ""),
    }

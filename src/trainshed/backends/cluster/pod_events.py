"""PodEvents: what Kubernetes notes about pods of ours that wait, watched only while some do.

The backend tells it which pods wait, and asks it for their events when it reads their state. Pods that start
at once cost nothing: the watch is opened when one has waited for a moment, and closed soon after the last one
began. It never polls. Without the right to read events reasons come from the pods alone.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from trainshed.backends.cluster.api import ApiFault, ClusterApi
from trainshed.backends.cluster.object_cache import ObjectCache
from trainshed.backends.cluster.objects import Object, part
from trainshed.backends.cluster.pod_reasons import PodEvent
from trainshed.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

# What every pod has, and nobody needs to know.
_FIELDS = "involvedObject.kind=Pod,reason!=Scheduled,reason!=Created,reason!=Started,reason!=Killing"
_PROMPT = 1.0  # seconds in which most pods start
_LINGERS = 5.0  # seconds for which the watch stays open without a pod that waits
_FORBIDDEN = (401, 403)


class PodEvents:
    def __init__(self, api: ClusterApi, changed: Callable[[str], None]) -> None:
        """`changed(pod)` is called when there is something new about a pod that waits."""
        self._api, self._changed = api, changed
        self._waiting: set[str] = set()  # names of pods
        self._noted: dict[str, dict[str, Object]] = {}  # by pod, by the event's name
        self._background = BackgroundTasks()
        self._news = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._is_forbidden = False

    async def close(self) -> None:
        await self._background.close()

    def see(self, pod: str, *, waits: bool) -> None:
        """Whether this pod waits."""
        if waits == (pod in self._waiting):
            return
        if waits:
            self._waiting.add(pod)
            if (self._watching is None or self._watching.done()) and not self._is_forbidden:
                self._watching = self._background.run(self._watch())
        else:
            self._waiting.discard(pod)
            self._noted.pop(pod, None)
        self._news.set()

    def of(self, pod: str) -> tuple[PodEvent, ...]:
        """The oldest first."""
        rows = sorted(self._noted.get(pod, {}).values(), key=lambda row: (row["at"], row["version"]))
        return tuple(PodEvent(row["reason"], row["message"]) for row in rows)

    async def _watch(self) -> None:
        await asyncio.sleep(_PROMPT)
        while self._waiting:
            cache = ObjectCache(self._api, "events", fields=_FIELDS, changed=self._note, slim=_slim)
            try:
                await cache.start()
                while self._waiting:
                    await self._pass(None)
                    if not self._waiting:
                        await self._pass(_LINGERS)
            except ApiFault as fault:
                if fault.status in _FORBIDDEN:
                    log.warning("events cannot be read, so some reasons are not known: %s", fault.message)
                    self._is_forbidden = True
                    return
                await self._pass(_LINGERS)
            finally:
                await cache.close()

    async def _pass(self, seconds: float | None) -> None:
        """Until something changes, or the time is over."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), seconds)

    def _note(self, event: Object, is_gone: bool) -> None:
        if event["pod"] not in self._waiting or is_gone:  # after an hour, though what it says may still hold
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

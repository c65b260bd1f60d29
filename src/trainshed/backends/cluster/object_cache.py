"""ObjectCache: all objects of a kind as the API server has them, kept up to date by list and watch.

The backend makes one for each kind it looks at. A watch goes on from where the last one ended; where that
history is gone, the list is read again and compared, so no deletion is missed. While the API cannot be
reached the cache keeps what it knew, and says that it is stale. It never writes to the API.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable

from trainshed.backends.cluster.api import OPENED, ApiFault, ClusterApi
from trainshed.backends.cluster.objects import Object, parts
from trainshed.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

_OPENING = 0.5  # seconds in which a watch usually begins
_LEAST_PAUSE, _MOST_PAUSE = 0.2, 3.0  # seconds before an API that failed is asked again


class ObjectCache:
    def __init__(
        self,
        api: ClusterApi,
        kind: str,
        labels: str = "",
        *,
        fields: str = "",
        everywhere: bool = False,
        changed: Callable[[Object, bool], None],
        slim: Callable[[Object], Object] = lambda item: item,
    ) -> None:
        """`changed(object, is_gone)` is called for each object of the first list, and at each change.

        `slim` takes from an object what is to be kept of it, with its metadata.
        """
        self._api, self._kind, self._labels, self._everywhere = api, kind, labels, everywhere
        self._fields = fields
        self._changed, self._slim = changed, slim
        self._background = BackgroundTasks()
        self.objects: dict[str, Object] = {}  # by name; with the namespace before it where from everywhere
        self.fault: ApiFault | None = None  # why it may be stale
        self._version = ""
        self._opened, self._is_started = asyncio.Event(), False

    async def start(self) -> None:
        """Return when all that is there is known. ApiFault where it cannot be read."""
        await self._read_list()
        self._is_started = True
        self._background.run(self._follow())

    async def close(self) -> None:
        if self._is_started:  # a connection that is cut off while it is made would stay open
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), _OPENING)
        await self._background.close()

    async def _follow(self) -> None:
        pause = _LEAST_PAUSE
        while True:
            try:
                if not self._version:
                    await self._read_list()
                watch = self._api.watch(
                    self._kind,
                    self._version,
                    self._labels,
                    fields=self._fields,
                    everywhere=self._everywhere,
                )
                async with contextlib.aclosing(watch):
                    async for event in watch:
                        self.fault, pause = None, _LEAST_PAUSE
                        if event["type"] == OPENED:
                            self._opened.set()
                        else:
                            self._take(event)
                self.fault, pause = None, _LEAST_PAUSE
            except ApiFault as fault:
                if fault.is_expired:
                    self._version = ""
                    continue
                self.fault = fault
                log.info("watching %s: %s", self._kind, fault.message)
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(pause * 2, _MOST_PAUSE)

    async def _read_list(self) -> None:
        answer = await self._api.list(
            self._kind, self._labels, fields=self._fields, everywhere=self._everywhere
        )
        fresh: dict[str, Object] = {self._key(item): self._slim(item) for item in parts(answer, "items")}
        gone = [item for key, item in self.objects.items() if key not in fresh]
        before, self.objects = self.objects, fresh
        self._version, self.fault = str(answer["metadata"]["resourceVersion"]), None
        for item in gone:
            self._changed(item, True)
        for key, item in fresh.items():
            if _version(before.get(key)) != _version(item):
                self._changed(item, False)

    def _take(self, event: Object) -> None:
        item: Object = event["object"]
        if event["type"] != "BOOKMARK":
            item = self._slim(item)
        self._version = str(item["metadata"]["resourceVersion"])
        match event["type"]:
            case "BOOKMARK":
                return
            case "DELETED":
                self.objects.pop(self._key(item), None)
                self._changed(item, True)
            case _:
                self.objects[self._key(item)] = item
                self._changed(item, False)

    def _key(self, item: Object) -> str:
        meta = item["metadata"]
        return f"{meta['namespace']}/{meta['name']}" if self._everywhere else str(meta["name"])


def _version(item: Object | None) -> str:
    return "" if item is None else str(item["metadata"].get("resourceVersion"))

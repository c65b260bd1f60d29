"""ReachGate: what the cluster must have before a pod can reach the server, brought there once.

The backend asks it before each pod is created. It waits until it is known how far Google's names lead to the
server, and puts the roots that programs are to trust into a ConfigMap. It never fails a launch for want of
them: programs then have the server's own address.
"""

import asyncio
import logging
from pathlib import Path

from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.pod import PodReach
from trainshed.backends.cluster.pod_reach import reached, render_roots
from trainshed.backends.machine.loopback import LoopbackPort
from trainshed.core.jobs.launch import Launch

# The first version in which pods may ask that any user listens below 1024.
_LOW_PORTS = (1, 22)
log = logging.getLogger(__name__)


class ReachGate:
    def __init__(self, api: ClusterApi, loopback: LoopbackPort) -> None:
        self._api, self.loopback = api, loopback
        self._version: tuple[int, int] | None = None
        self._roots = ""  # the ConfigMap, once it is there

    async def reached(self, home: str, launch: Launch) -> tuple[Launch, PodReach]:
        """The launch with its variables as they are inside, and what its pod needs for them."""
        await self.loopback.google.settled.wait()
        if self.loopback.named and launch.google is not None and not self._roots:
            await self._bring(home)
        low_ports = self._version is not None and self._version >= _LOW_PORTS
        return reached(launch, self.loopback, self._roots, low_ports=low_ports)

    async def _bring(self, home: str) -> None:
        try:
            self._version = self._version or await self._api.version()
            text = await asyncio.to_thread(Path(self.loopback.google.roots).read_text)
            body = render_roots(home, text)
            await self._api.make("configmaps", body)
            self._roots = str(body["metadata"]["name"])
        except OSError as error:
            log.warning("programs in pods will not trust this server under Google's names: %s", error)

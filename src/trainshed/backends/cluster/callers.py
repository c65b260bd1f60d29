"""Tells the job of a connection to this server that came through the tunnel of a pod.

`assembly/api.py` calls it. The tunnel belongs to one pod, so whoever passed the connection on has said whose
it is (tunnel.py). It never asks the cluster.
"""

from collections.abc import Container

from trainshed.core.caller_port import CallerConnection


class PodCallers:
    """Implements `core.caller_port.Callers`."""

    def __init__(self, jobs: Container[str]) -> None:
        self._jobs = jobs

    async def job_of(self, connection: CallerConnection) -> str:
        return connection.job if connection.job in self._jobs else ""

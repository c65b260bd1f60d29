"""Finds the job in whose container a connection to this server was opened.

`assembly/api.py` calls it. The init of the container has passed the connection on, so its pid tells which
container that is. It never asks the engine.
"""

from trainshed.backends.container.run import ContainerRuns
from trainshed.core.caller_port import CallerConnection


class ContainerCallers:
    """Implements `core.caller_port.Callers`."""

    def __init__(self, runs: ContainerRuns) -> None:
        self._runs = runs

    async def job_of(self, connection: CallerConnection) -> str:
        if not connection.init:
            return ""
        alive = [run for runs in self._runs.values() for run in runs.values() if run.alive]
        return next((run.key.name.job for run in alive if run.init_pid() == connection.init), "")

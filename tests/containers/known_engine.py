"""KnownEngine: what an engine tells of itself is asked once for all tests of a worker.

Podman takes a third of a second of CPU time for it: it asks Debian's package manager for versions.
"""

from collections.abc import Mapping
from typing import Any

from trainshed.backends.container.engine import Engine

_known: dict[str, Mapping[str, Any]] = {}  # by the engine's socket


class KnownEngine(Engine):
    async def about(self) -> Mapping[str, Any]:
        await self.is_podman()  # fails where the engine is away
        if self.socket not in _known:
            _known[self.socket] = await super().about()
        return _known[self.socket]

"""The interpreters that processes run in: the plain one, named runtimes, and which of them are kept warm.

The assembly makes it for a ProcessBackend. Warm interpreters are imported only where some are kept: most
servers keep none. It never starts one: `warm/pool.py` does.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainshed.backends.process.plain import PlainRuntime, version_of
from trainshed.backends.process.render import IMAGE
from trainshed.core.errors import Invalid, Violation
from trainshed.core.supplies.runtime_port import Runtimes

if TYPE_CHECKING:
    from trainshed.backends.process.warm.pool import WarmPool


class Interpreters:
    def __init__(
        self, *, python: str = sys.executable, runtimes: Runtimes | None = None, warm: Sequence[str] = ()
    ) -> None:
        """Without runtimes there is only the plain interpreter. `warm/pool.py` explains the warm names."""
        self.python, self.version = python, version_of(python)
        self.runtimes = runtimes or PlainRuntime(python, self.version)
        self._warm = tuple(warm)
        for name in self._warm:
            # It is not known yet which other versions of the plain interpreter this machine has.
            is_plain = "=" in name or name.partition(":")[0] == IMAGE
            if not is_plain and (refused := self.runtimes.refuse(name)) is not None:
                raise Invalid((Violation("warm", refused),))

    def warm_pool(self, folder: Path) -> "WarmPool | None":
        """What keeps interpreters warm, with its files in the folder; None where none are to be kept."""
        if not self._warm:
            return None
        from trainshed.backends.process.warm.pool import WarmPool

        return WarmPool(folder, self._warm, self.runtimes)

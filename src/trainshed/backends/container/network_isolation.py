"""Keeps the networks of jobs apart: nothing is forwarded from one of our addresses to another.

One packet rule for the whole range, because Podman's own way does not hold: netavark 1.4 takes the rule that
leads to all others away whenever any network ends, and leaves those of ended ones behind. The rule stays when
the server goes, as containers do. It may assume that the engine's packets are this machine's. Where it cannot
be made (only root may) the engine's own way has to do.
"""

import asyncio
import logging
import os
import shutil
import subprocess
import time

_log = logging.getLogger(__name__)
_PLACES = "/usr/local/sbin:/usr/sbin:/sbin"
_AGAIN = 30.0  # seconds after which it is looked at again: somebody may have set all rules anew
_MOST = 10.0  # seconds


class NetworkIsolation:
    def __init__(self, subnets: str) -> None:
        # What passes a bridge from port to port stays inside one network, and may be shown to the rule too.
        where = ("-s", subnets, "-d", subnets, "-m", "physdev", "!", "--physdev-is-bridged")
        self._rule = ("FORWARD", *where, "-m", "comment", "--comment", "trainshed", "-j", "DROP")
        self._stands: bool | None = None
        self._looked_at = 0.0

    async def stands(self) -> bool:
        """Whether it does, put up where it did not."""
        if self._stands is None or (self._stands and time.monotonic() - self._looked_at > _AGAIN):
            self._stands = await asyncio.to_thread(self._raise)
            self._looked_at = time.monotonic()
            if not self._stands:
                _log.info("networks of jobs are kept apart by the container engine alone")
        return self._stands

    def _raise(self) -> bool:
        program = shutil.which("iptables", path=f"{os.environ.get('PATH', '')}:{_PLACES}")
        if program is None or os.geteuid() != 0:
            return False
        return self._did(program, "-C") or self._did(program, "-I")

    def _did(self, program: str, what: str) -> bool:
        try:
            words = [program, "-w", what, *self._rule]
            return subprocess.run(words, check=False, capture_output=True, timeout=_MOST).returncode == 0
        except (OSError, subprocess.SubprocessError):
            return False

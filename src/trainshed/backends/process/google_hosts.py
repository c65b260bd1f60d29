"""The file that programs find as /etc/hosts: the machine's, with Google's names led to this server.

The starter names it in each start (decision 34). Each program's keeper mounts it in the program's own mount
namespace, so the program sees all mounts that the machine has at its start. Nothing is mounted in the
server's own namespace, so a kill -9 leaves nothing behind. Where it cannot be mounted, programs start without
it, and `fault` says why.
"""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.process.keeper import CompiledKeeper, Keeper
from trainshed.core.google import hosts_file, past_proxies, trust_env

_MACHINE = Path("/etc/hosts")
_PATIENCE = 30  # seconds


class HostsFile:
    def __init__(self, file: Path, redirect: GoogleRedirect | None) -> None:
        """`file` is what programs find as /etc/hosts. Without a redirect they find the machine's file."""
        self._redirect = redirect
        self.fault = ""
        self._file = file
        self._tried, self._usable = False, False
        self._lock = asyncio.Lock()
        self._seen = (0, 0)  # the machine's file, as it was copied

    @property
    def roots(self) -> str:
        """The file of root certificates that programs are to trust."""
        return self._redirect.roots if self._redirect is not None else ""

    def env(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """The variables that every program gets which finds the file; `environ` is the server's."""
        return {**trust_env(self.roots), **past_proxies(environ)} if self.path() else {}

    async def open(self, keeper: Keeper) -> None:
        """Write it, once, when the address of the names is known. Every launch waits for that."""
        redirect = self._redirect
        if self._tried or redirect is None:
            return
        await redirect.settled.wait()
        async with self._lock:
            if not self._tried:
                await asyncio.to_thread(self._make, redirect, keeper)
                self._tried = True

    def path(self) -> str:
        """The file for a run that is about to start; empty where programs find the machine's."""
        if not self._usable or self._redirect is None:
            return ""
        if self._seen != _state():
            with contextlib.suppress(OSError):  # the old content stays
                self._copy(self._redirect)
        return str(self._file)

    def _copy(self, redirect: GoogleRedirect) -> None:
        """Write the file in place, so that those who have it mounted see the change."""
        self._seen = _state()
        text = hosts_file(_MACHINE.read_text(errors="surrogateescape"), redirect.address)
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            data = text.encode(errors="surrogateescape")
            os.pwrite(handle, data, 0)
            os.ftruncate(handle, len(data))
            os.fchmod(handle, 0o644)  # readable whatever user a program becomes
        finally:
            os.close(handle)

    def _make(self, redirect: GoogleRedirect, keeper: Keeper) -> None:
        if not redirect.address:
            self.fault = redirect.fault
        elif not isinstance(keeper, CompiledKeeper):
            self.fault = "there is no C compiler to build what leads them here"
        else:
            try:
                self._copy(redirect)
                trial = [keeper.path, "--try-hosts", str(self._file)]
                subprocess.run(trial, check=True, capture_output=True, timeout=_PATIENCE, text=True)
                self._usable = True
            except subprocess.CalledProcessError as error:
                self.fault = error.stderr or "its keeper died"
            except (OSError, subprocess.SubprocessError) as error:
                self.fault = str(error)


def _state() -> tuple[int, int]:
    try:
        state = os.stat(_MACHINE)  # noqa: PTH116 - for each start
    except OSError:
        return 0, 0
    return state.st_ino, state.st_mtime_ns

"""The mount namespace in which programs find another /etc/hosts: the machine's, with Google's names led here.

The starter enters runs into it (decision 34). The server makes one namespace for all runs and keeps it open;
each keeper enters it between fork and exec. Mounts of the machine go on to appear in it. Nothing is mounted
in the server's own namespace, so a kill -9 leaves nothing behind. Where it cannot be made, runs start without
it, and `fault` says why.
"""

import asyncio
import contextlib
import os
import subprocess
from pathlib import Path

from trainshed.backends.machine.google_redirect import GoogleRedirect
from trainshed.backends.process.keeper import CompiledKeeper, Keeper
from trainshed.core.google import hosts_file

_MACHINE = Path("/etc/hosts")
_PATIENCE = 30  # seconds


class HostsNamespace:
    def __init__(self, file: Path) -> None:
        """`file` is what programs find as /etc/hosts."""
        self.redirect: GoogleRedirect | None = None  # None: programs find the machine's file
        self.fault = ""
        self._file = file
        self._tried, self._lock = False, asyncio.Lock()
        self._number = -1  # the namespace, open
        self._seen = (0, 0)  # the machine's file, as it was copied

    async def open(self, keeper: Keeper) -> None:
        """Make it, once, when the address of the names is known. Every launch waits for that."""
        redirect = self.redirect
        if self._tried or redirect is None:
            return
        await redirect.settled.wait()
        async with self._lock:
            if not self._tried:
                await asyncio.to_thread(self._make, redirect, keeper)
                self._tried = True

    def enter(self) -> int:
        """The namespace for a run that is about to start, open; -1 where there is none."""
        if self._number >= 0 and self.redirect is not None and self._seen != _state():
            with contextlib.suppress(OSError):  # the old content stays
                self._copy(self.redirect)
        return self._number

    def close(self) -> None:
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

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
                self._mount(keeper.path)
            except (OSError, subprocess.SubprocessError) as error:
                self.fault = str(error)

    def _mount(self, keeper: str) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [keeper, "--make-hosts", self._file], stdin=pipe, stdout=pipe, stderr=pipe
        ) as maker:
            assert maker.stdout is not None
            if maker.stdout.read(1) == b"+":
                self._number = os.open(f"/proc/{maker.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            _, words = maker.communicate(timeout=_PATIENCE)
        if self._number < 0:
            self.fault = words.decode(errors="replace") or "its keeper died"


def _state() -> tuple[int, int]:
    try:
        state = os.stat(_MACHINE)  # noqa: PTH116 - for each start
    except OSError:
        return 0, 0
    return state.st_ino, state.st_mtime_ns

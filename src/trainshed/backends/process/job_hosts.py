"""The file that programs of a job find as /etc/hosts where its replicas have names of their own.

The starter calls it for each start. All replicas of a job get one file, so that those that share a mount
namespace share it too. It is written in place: programs that have it mounted see the change. Where it cannot
be mounted, programs start without it, and a note on the run says why.
"""

import asyncio
import contextlib
import os
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from trainshed.backends.process.keeper import CompiledKeeper, Keeper
from trainshed.core.jobs.launch import Launch

_MACHINE = "/etc/hosts"
_FIRST = IPv4Address("127.1.0.1")
_PATIENCE = 30  # seconds


@dataclass(slots=True)
class JobHosts:
    jobs: Path  # the folder of all jobs' folders
    fault: str | None = None  # why no such file can be mounted here; None: nobody has tried

    async def show(self, launch: Launch, base: str, keeper: Keeper) -> tuple[str, str]:
        """The file for a run, and a note. `base`: what it would find as /etc/hosts; empty: the machine's."""
        if not any(launch.names):
            return base, ""
        try:
            file = await asyncio.to_thread(self._write, launch, base)
            if self.fault is None:
                self.fault = await asyncio.to_thread(_mount_fault, keeper, file)
        except OSError as error:
            return base, _note(str(error))
        return (base, _note(self.fault)) if self.fault else (file, "")

    def _write(self, launch: Launch, base: str) -> str:
        folder = self.jobs / launch.key.name.job
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / (f"hosts-{Path(base).name}" if base else "hosts")
        data = names_text(Path(base or _MACHINE).read_bytes(), launch)
        with contextlib.suppress(FileNotFoundError):
            if file.read_bytes() == data:
                return str(file)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            os.pwrite(handle, data, 0)
            os.ftruncate(handle, len(data))
            os.fchmod(handle, 0o644)  # readable whatever user a program becomes
        finally:
            os.close(handle)
        return str(file)


def names_text(base: bytes, launch: Launch) -> bytes:
    """A file of hosts, with those of the job's replicas at its end.

    Where programs start others in other replicas each has an address of its own: whoever starts them would
    take replicas of one address for one machine, and that for its own.
    """
    hosts = launch.peers
    if launch.remote is not None:
        hosts = tuple(str(_FIRST + number) for number in range(len(launch.peers)))
    pairs = zip(hosts, launch.names, strict=True)
    lines = [f"{host} {' '.join(names)}\n" for host, names in pairs if names]
    return base.rstrip(b"\n") + b"\n" + "".join(lines).encode()


def _mount_fault(keeper: Keeper, file: str) -> str:
    """Why programs cannot find the file as /etc/hosts; empty where they can."""
    if not isinstance(keeper, CompiledKeeper):
        return "there is no C compiler to build what shows them"
    try:
        trial = [keeper.path, "--try-hosts", file]
        subprocess.run(trial, check=True, capture_output=True, timeout=_PATIENCE, text=True)
    except subprocess.CalledProcessError as error:
        return error.stderr.strip() or "its keeper died"
    except subprocess.SubprocessError as error:
        return str(error)
    return ""


def _note(fault: str) -> str:
    return f"Replicas are not found by their names ({fault}); CLUSTER_SPEC has their addresses."

"""Finds the job whose program is at the other end of a loopback connection that brings no token.

It reads /proc in a thread: with hundreds of processes that takes some milliseconds. A process belongs to a
run if it descends from the run's keeper.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Iterable

from trainshed.backends.machine.processes import ProcessFamilies
from trainshed.backends.process.run import ProcessRun, ProcessRuns
from trainshed.core.caller_port import Address, CallerConnection


class ProcessCallers:
    """Implements `core.caller_port.Callers` for the runs of a backend."""

    def __init__(self, runs: ProcessRuns) -> None:
        self._runs = runs

    async def job_of(self, connection: CallerConnection) -> str:
        if connection.init or connection.job:  # it comes from a container or a pod
            return ""
        alive = [run for runs in self._runs.values() for run in runs.values() if run.alive]
        return await asyncio.to_thread(calling_job, alive, connection.peer, connection.here)


def calling_job(runs: Iterable[ProcessRun], peer: Address, here: Address) -> str:
    """The job whose program has the connection's other end open; empty where none of these has."""
    if (number := _socket(peer, here)) is None:
        return ""
    records = [(run, run.read()) for run in runs]
    jobs = {record.keeper.pid: run.key.name.job for run, record in records if record and record.keeper}
    for keeper, pids in ProcessFamilies().look(set(jobs)).items():
        if any(_has_open(pid, f"socket:[{number}]") for pid in pids):
            return jobs[keeper]
    return ""


def _socket(peer: Address, here: Address) -> int | None:
    """The inode of the other end's socket."""
    ends = [_written(peer), _written(here)]
    try:
        with open("/proc/net/tcp") as lines:  # noqa: PTH123
            for line in lines:
                words = line.split()
                if words[1:3] == ends:
                    return int(words[9])
    except OSError:
        return None
    return None


def _written(place: Address) -> str:
    """The place as /proc/net/tcp writes it: the address in the machine's own byte order."""
    address = int.from_bytes(socket.inet_aton(place[0]), sys.byteorder)
    return f"{address:08X}:{place[1]:04X}"


def _has_open(pid: int, target: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:  # it has ended
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") == target:  # noqa: PTH115
                return True
        except OSError:  # just closed
            continue
    return False

"""Starts the processes of a cluster and ends them: no process of anybody else is ever touched.

A process is known by two variables in its environment, which it has from its first moment and hands down
to what it starts. So nothing is written down about processes, and a run that was killed at any moment
leaves none unknown.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.cluster_parts.place import OWNER, PART, Place

PATIENCE = 30.0


def start(place: Place, part: str, words: list[str], namespace: str) -> "subprocess.Popen[bytes]":
    """A process in a network namespace, in a session of its own: it outlives this one."""
    log = place.log(part)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{namespace}", "--", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=place.programs.environment() | {OWNER: str(place.folder), PART: part},
            start_new_session=True,
        )


def running(folder: Path, part: str | None = None) -> dict[int, str]:
    """The process ids of the cluster in this folder, with the part each belongs to."""
    return {pid: name for pid, name in _all(folder) if part in (None, name)}


def end(folder: Path, part: str | None = None) -> None:
    """Kills the processes of one part, or all of them, and returns when none is left."""
    deadline = time.monotonic() + PATIENCE
    while pids := running(folder, part):
        for pid in pids:
            _kill(pid, folder)
        if time.monotonic() > deadline:
            raise SystemExit(f"cluster: these processes cannot be ended: {pids}")


def _kill(pid: int, folder: Path) -> None:
    """By a handle, so that a process that took the id over in between is safe; waits until it is gone."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            if _part(pid, folder) is not None:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                select.select([handle], [], [], PATIENCE)
        finally:
            os.close(handle)


def _all(folder: Path) -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (part := _part(int(entry.name), folder)) is not None:
            yield int(entry.name), part


def _part(pid: int, folder: Path) -> str | None:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    if f"{OWNER}={folder}".encode() not in entries:
        return None
    prefix = f"{PART}=".encode()
    return next((entry[len(prefix) :].decode() for entry in entries if entry.startswith(prefix)), None)

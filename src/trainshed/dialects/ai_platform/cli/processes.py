"""The processes of a module run here: who they are, and what each is told by TF_CONFIG. Pure, but for `run`.

The first of them decides: when it ends, the others are ended, and its exit code is everybody's.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainshed.client import Json

CHIEF = "chief"
PATIENCE = 5.0  # seconds between asking a process to end and making it
SIGNALLED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    role: str
    index: int
    config: Json  # TF_CONFIG


def single(module: str, args: Sequence[str]) -> list[Part]:
    return [Part(role=CHIEF, index=0, config=_config(module, args, {}, {}))]


def cluster_of(module: str, args: Sequence[str], counts: dict[str, int], port: int) -> list[Part]:
    """A chief, and as many of each role as are wanted, each at a port of its own from the given one on."""
    cluster: dict[str, list[str]] = {}
    for role, count in {CHIEF: 1, **counts}.items():
        if count:
            cluster[role] = [f"localhost:{port + at}" for at in range(count)]
            port += count
    return [
        Part(role=role, index=at, config=_config(module, args, cluster, {"type": role, "index": at}))
        for role, hosts in cluster.items()
        for at in range(len(hosts))
    ]


def _config(module: str, args: Sequence[str], cluster: dict[str, list[str]], task: Json) -> Json:
    job = {"job_name": module, "args": list(args)}
    return {"job": job, "task": task, "cluster": cluster, "environment": "cloud"}


def run(parts: Sequence[Part], argv: Sequence[str], folder: Path) -> int:
    """Starts all in the folder and waits for the first. None outlives it, or a Ctrl-C here."""
    running: list[subprocess.Popen[bytes]] = []
    over = threading.Event()
    try:
        for part in reversed(parts):  # the chief last: it looks for the others
            environ = {**os.environ, "TF_CONFIG": json.dumps(part.config)}
            process = subprocess.Popen(argv, cwd=folder, env=environ)
            running.append(process)
            if part is not parts[0]:
                threading.Thread(target=_watch, args=(part, process, over), daemon=True).start()
        code = running[-1].wait()
    finally:
        over.set()
        _end(running)
    return code if code >= 0 else SIGNALLED - code


def _watch(part: Part, process: subprocess.Popen[bytes], over: threading.Event) -> None:
    code = process.wait()
    if code and not over.is_set():
        sys.stderr.write(f"note: {part.role} {part.index} ended with {code}; the chief goes on.\n")


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

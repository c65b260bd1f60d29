"""How long a person waits for the command line itself: its help, and a list of a thousand waiting jobs."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from statistics import median

from tests.benchmarks.row import Row, ms
from tests.live import LiveServer, pool
from trainshed.client.api import Client

ROUNDS = 15
WAITING = 1_000


def command_line() -> list[Row]:
    """Beside a bare Python that does nothing. All jobs wait, which is the dearest list to draw."""
    with LiveServer("--cpus", "1", "--fit", "strict") as server:
        spec = {"workerPoolSpecs": [pool(["sleep", "1"], machine="n1-standard-96")]}
        with Client(server.url, server.token) as client:
            for number in range(WAITING):
                client.submit(f"waits-{number}", spec)
        environ = os.environ | {"TRAINSHED_HOME": str(server.home)}
        floor = _times(["-c", "pass"], environ)
        rows = [
            _row("trainshed --help", ["--help"], 120, floor, environ),
            _row(f"trainshed ls, {WAITING:,} jobs wait", ["ls"], 200, floor, environ),
        ]
    return rows


def _row(what: str, args: list[str], goal: float, floor: list[float], environ: Mapping[str, str]) -> Row:
    # As the installed script starts it.
    start = "import sys; from trainshed.cli.main import main; main()"
    ours = _times(["-c", start, *args], environ)
    return Row(what=what, floor=ms(floor), ours=ms(ours), value=median(ours) * 1e3, goal=goal, unit="ms")


def _times(args: list[str], environ: Mapping[str, str]) -> list[float]:
    found: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run([sys.executable, *args], env=environ, capture_output=True, check=True)
        found.append(time.perf_counter() - began)
    return found

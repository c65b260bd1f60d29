"""How long a person waits for the command line itself: help, a long list, a program that is submitted."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from tests.benchmarks.row import Row, ms
from tests.live import LiveServer, pool
from trainshed.client.api import Client

ROUNDS = 15
WAITING = 1_000
SUBMITS = 40
COMMAND = str(Path(sys.executable).with_name("trainshed"))  # as `make setup` installs it
STAMP = "import time; print(time.time_ns(), flush=True)\n"


def command_line() -> list[Row]:
    """Beside a bare Python that does nothing. All jobs wait, which is the dearest list to draw."""
    with LiveServer("--cpus", "1", "--fit", "strict") as server:
        spec = {"workerPoolSpecs": [pool(["sleep", "1"], machine="n1-standard-96")]}
        with Client(server.url, server.token) as client:
            for number in range(WAITING):
                client.submit(f"waits-{number}", spec)
        environ = os.environ | {"TRAINSHED_HOME": str(server.home)}
        floor = _times([sys.executable, "-c", "pass"], environ)
        rows = [
            _row("trainshed --help", ["--help"], 120, floor, environ),
            _row(f"trainshed ls, {WAITING:,} jobs wait", ["ls"], 200, floor, environ),
        ]
    return rows


def _row(what: str, args: list[str], goal: float, floor: list[float], environ: Mapping[str, str]) -> Row:
    ours = _times([COMMAND, *args], environ)
    return Row(what=what, floor=ms(floor), ours=ms(ours), value=median(ours) * 1e3, goal=goal, unit="ms")


def _times(command: list[str], environ: Mapping[str, str]) -> list[float]:
    found: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, env=environ, capture_output=True, check=True)
        found.append(time.perf_counter() - began)
    return found


def submitting() -> list[Row]:
    """From starting `trainshed submit` to the first line of user code, beside starting the script by hand.

    In pairs, so that a busy moment hurts both. Twice: a folder as the server knows it, as when a job is sent
    again with other arguments; and one that was edited since, whose new file has to be on the server's disk
    before the job is. Its goal of 4 was set after it was measured, and only guards against getting worse.
    """
    rows: list[Row] = []
    with LiveServer() as server, tempfile.TemporaryDirectory(prefix="ts-bench-") as folder:
        root = Path(folder)
        for number in range(8):
            (root / f"part_{number}.py").write_text(f"VALUE = {number}\n" * 40)
        script = root / "train.py"
        subprocess.run(["git", "init", "-q", folder], check=True)
        for edited in (False, True):
            floor: list[float] = []
            ours: list[float] = []
            for number in range(SUBMITS + 1):
                script.write_text(f"# {number if edited else 0}\n{STAMP}")
                bare, whole = _bare(script), _submitted(server, script)
                if number:  # the first one brings the folder there
                    floor.append(bare)
                    ours.append(whole)
            what = "edited" if edited else "known"
            rows.append(
                Row(
                    what=f"trainshed submit, small {what} folder -> first line",
                    floor=ms(floor),
                    ours=ms(ours),
                    value=median(ours) / median(floor),
                    goal=4 if edited else 3,
                )
            )
    return rows


def _bare(script: Path) -> float:
    began = time.time_ns()
    done = subprocess.run(
        [sys.executable, script.name], cwd=script.parent, stdout=subprocess.PIPE, check=True
    )
    return (int(done.stdout) - began) / 1e9


def _submitted(server: LiveServer, script: Path) -> float:
    """Followed as people follow it; the time is the one that the program printed."""
    environ = os.environ | {"TRAINSHED_HOME": str(server.home)}
    began = time.time_ns()
    done = subprocess.run(
        [COMMAND, "submit", script.name],
        cwd=script.parent,
        env=environ,
        capture_output=True,
        check=True,
    )
    return (int(done.stdout) - began) / 1e9

"""How much later than bare Python a job's first line, its end, and a hundred of its kind come."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from tests.benchmarks.commanding import COMMAND
from tests.benchmarks.row import Row, ms
from tests.live import LiveServer, pool
from trainshed.client.api import Client

STAMP = "import time; print(time.time_ns(), flush=True)"
ROUNDS = 40
MANY = 100
STARTS = 9


def _client(server: LiveServer) -> Client:
    return Client(server.url, server.token, "p1", "us-central1")


def _spec(code: str) -> dict[str, object]:
    return {"workerPoolSpecs": [pool([sys.executable, "-c", code], machine="n1-standard-1")]}


def one_job() -> list[Row]:
    """Pairs of a bare run and a job, so that a busy moment hurts both."""
    bare_first: list[float] = []
    bare_end: list[float] = []
    first: list[float] = []
    end: list[float] = []
    with LiveServer() as server, _client(server) as client:
        for _ in range(ROUNDS):
            began = time.time_ns()
            printed = subprocess.run([sys.executable, "-c", STAMP], stdout=subprocess.PIPE, check=True).stdout
            bare_end.append((time.time_ns() - began) / 1e9)
            bare_first.append((int(printed) - began) / 1e9)
            began = time.time_ns()
            name = str(client.submit("stamp", _spec(STAMP))["name"])
            client.wait(name)
            end.append((time.time_ns() - began) / 1e9)
            first.append((int(next(iter(server.lines(name)))["text"]) - began) / 1e9)
    extra = (median(first) - median(bare_first)) * 1e3
    return [
        Row(
            what="submit -> first line of user code",
            floor=ms(bare_first),
            ours=ms(first),
            value=extra,
            goal=15,
            unit="ms more",
        ),
        Row(
            what="submit -> reported finished, no-op job",
            floor=ms(bare_end),
            ours=ms(end),
            value=median(end) / median(bare_end),
            goal=2,
        ),
    ]


def server() -> Row:
    """`trainshed up` in a home that is there, in pairs with a bare Python. In time of a processor.

    A busy machine takes longer for both. The goal is half a second where a bare Python takes 15 ms.
    """
    floors: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory(prefix="ts-bench-") as home:
        _up(home)  # makes the home, and the caches of Python
        for _ in range(STARTS):
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", "pass"], check=True)
            after = getrusage(RUSAGE_CHILDREN)
            floors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            ours.append(_up(home))
    return Row(
        what="trainshed up -> ready, CPU time",
        floor=ms(floors),
        ours=ms(ours),
        value=median(ours) / median(floors),
        goal=33,
    )


def _up(home: str) -> float:
    """Seconds of a processor until the server is ready."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRAINSHED_")}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # people have Python keep its caches
    command = [COMMAND, "up", "--port", "0", "--home", home, "--engine", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert b"is ready at" in line, line
        spent = 0
        for task in os.listdir(f"/proc/{process.pid}/task"):
            with open(f"/proc/{process.pid}/task/{task}/schedstat") as file:
                spent += int(file.read().split()[0])
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    return spent / 1e9


def many_jobs() -> Row:
    """A hundred no-op jobs, two at a time: bare processes against durable jobs."""

    def bare(_: int) -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)

    floors: list[float] = []
    ours: list[float] = []
    with LiveServer("--cpus", "2") as server, _client(server) as client:
        for _ in range(3):
            with ThreadPoolExecutor(2) as two:
                began = time.perf_counter()
                list(two.map(bare, range(MANY)))
                floors.append(MANY / (time.perf_counter() - began))
            began = time.perf_counter()
            names = [str(client.submit("no-op", _spec("pass"))["name"]) for _ in range(MANY)]
            for name in names:
                client.wait(name)
            ours.append(MANY / (time.perf_counter() - began))
    return Row(
        what=f"{MANY} no-op jobs, two at a time",
        floor=f"{median(floors):.0f} jobs/s",
        ours=f"{median(ours):.0f} jobs/s",
        value=median(ours) / median(floors),
        goal=0.6,
        at_least=True,
    )

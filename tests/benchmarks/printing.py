"""What it costs a program to print a lot, and how soon a follower sees a line."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.commanding import COMMAND
from tests.benchmarks.row import Row, ms
from tests.live import LiveServer, pool
from trainshed.client.api import Client

LINES = 2_000_000  # of 100 bytes: 200 MB
FLOOD = f"line = 'x' * 99\nfor _ in range({LINES}): print(line)"
READ = 1_500_000  # lines of 104 bytes
ROUNDS = 3
SEEN = 200
SLOWLY = f"""
import time
for _ in range({SEEN}):
    time.sleep(0.02)
    print(time.time_ns(), flush=True)
"""


def flood(*, buffered: bool) -> Row:
    """The same program with the same environment, redirected to a file on the same disk."""
    unbuffered = "" if buffered else "1"
    floors: list[float] = []
    ours: list[float] = []
    with LiveServer() as server, Client(server.url, server.token, "p1", "us-central1") as client:
        for _ in range(ROUNDS):
            target = server.base / "floor"
            began = time.perf_counter()
            with target.open("wb") as out:
                env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
                subprocess.run([sys.executable, "-c", FLOOD], stdout=out, env=env, check=True)
            floors.append(time.perf_counter() - began)
            target.unlink()
            one = pool([sys.executable, "-c", FLOOD], env={"PYTHONUNBUFFERED": unbuffered})
            began = time.perf_counter()
            name = str(client.submit("flood", {"workerPoolSpecs": [one]})["name"])
            client.wait(name)
            ours.append(time.perf_counter() - began)
            client.delete(name)
    kind = "buffered" if buffered else "line by line"
    return Row(
        what=f"printing 200 MB, {kind}",
        floor=f"{median(floors):.2f} s",
        ours=f"{median(ours):.2f} s",
        value=median(ours) / median(floors),
        goal=1.1,
    )


def reading() -> list[Row]:
    """A finished log of 150 MB through `trainshed logs`, beside `cat` and `grep` of the same file."""
    rows: list[Row] = []
    with LiveServer() as server, Client(server.url, server.token, "p1", "us-central1") as client:
        program = f"for n in range({READ}): print('%09d loss=%03d ' % (n, n % 997) + 'x' * 80)"
        name = str(
            client.submit("read", {"workerPoolSpecs": [pool([sys.executable, "-c", program])]})["name"]
        )
        client.wait(name)
        identity = name.rsplit("/", 1)[-1]
        file = str(server.home / "logs" / identity / "0.0-0.out")
        size = os.stat(file).st_size / 1e6
        env = os.environ | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": "p1"}
        ours = [COMMAND, "logs", identity]
        for what, floor, more in (
            (f"reading a log of {size:.0f} MB into a pipe", ["cat", file], []),
            ("... with --grep", ["grep", "-E", "loss=99[0-9] ", file], ["--grep", "loss=99[0-9] "]),
        ):
            floors, times = list[float](), list[float]()
            for _ in range(ROUNDS):
                floors.append(_piped(floor, env))
                times.append(_piped([*ours, *more], env))
            # The best of each: what else the machine does only ever adds to a time.
            rate = size / min(times)
            rows.append(
                Row(
                    what=what,
                    floor=f"{floor[0]} {size / min(floors):.0f} MB/s",
                    ours=f"{min(times):.2f} s",
                    value=rate,
                    goal=50,
                    unit="MB/s",
                    at_least=True,
                )
            )
        plain = subprocess.run(ours, env=env, stdout=subprocess.PIPE, check=True).stdout
        assert plain == Path(file).read_bytes(), "not the bytes that the program wrote"
    return rows


def _piped(command: list[str], env: dict[str, str]) -> float:
    """Seconds until a reader of the command's output has all of it."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as writer:
        subprocess.run(["cat"], stdin=writer.stdout, stdout=subprocess.DEVNULL, check=True)
    assert writer.returncode == 0, command
    return time.perf_counter() - began


def follower() -> Row:
    """From just before print() to the line parsed by an HTTP follower."""
    late: list[float] = []
    with LiveServer() as server, Client(server.url, server.token, "p1", "us-central1") as client:
        one = pool([sys.executable, "-c", SLOWLY])
        name = str(client.submit("follow", {"workerPoolSpecs": [one]})["name"])
        for row in client.tail(name, follow=True):
            late.append((time.time_ns() - int(row["text"])) / 1e9)
    assert len(late) == SEEN, json.dumps(late)
    return Row(
        what="line printed -> seen by an HTTP follower",
        floor="0",
        ours=ms(late),
        value=median(late) * 1e3,
        goal=10,
        unit="ms",
    )

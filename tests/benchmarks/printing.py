"""What it costs a program to print a lot, and how soon a follower sees a line."""

import json
import os
import subprocess
import sys
import time
from statistics import median

from tests.benchmarks.row import Row, ms
from tests.live import LiveServer, pool
from trainshed.client.api import Client

LINES = 2_000_000  # of 100 bytes: 200 MB
FLOOD = f"line = 'x' * 99\nfor _ in range({LINES}): print(line)"
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
    """A finished log of 200 MB through `trainshed logs`, beside `cat` and `grep` of the same file."""
    rows: list[Row] = []
    with LiveServer() as server, Client(server.url, server.token, "p1", "us-central1") as client:
        program = f"for n in range({LINES}): print('%09d loss=%03d ' % (n, n % 997) + 'x' * 80)"
        name = str(
            client.submit("read", {"workerPoolSpecs": [pool([sys.executable, "-c", program])]})["name"]
        )
        client.wait(name)
        identity = name.rsplit("/", 1)[-1]
        file = str(server.home / "logs" / identity / "0.0-0.out")
        env = os.environ | {
            "TRAINSHED_URL": server.url,
            "TRAINSHED_TOKEN": server.token,
            "TRAINSHED_PROJECT": "p1",
            "TRAINSHED_LOCATION": "us-central1",
        }
        ours = [sys.executable, "-m", "trainshed.cli", "logs", "-f", identity]
        for what, floor, more, goal in (
            ("following a log of 200 MB to a pipe", ["cat", file], [], 8.0),
            ("... with --grep", ["grep", "-E", "loss=99[0-9] ", file], ["--grep", "loss=99[0-9] "], 12.0),
        ):
            floors, times = list[float](), list[float]()
            for _ in range(ROUNDS):
                floors.append(_piped(floor, env))
                times.append(_piped([*ours, *more], env))
            size = os.stat(file).st_size / 1e6
            rows.append(
                Row(
                    what=what,
                    floor=f"{size / median(floors):.0f} MB/s",
                    ours=f"{size / median(times):.0f} MB/s",
                    value=median(times) / median(floors),
                    goal=goal,
                )
            )
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

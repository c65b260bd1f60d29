"""What a job in a container costs beside a bare `podman run` on the same engine, in such a network too."""

import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Any

from tests.benchmarks.printing import FLOOD
from tests.benchmarks.row import Row, ms
from tests.benchmarks.starting import STAMP
from tests.containers.engine import Podman, an_engine
from tests.containers.engine_images import BASE
from tests.live import LiveServer
from trainshed.client.api import Client

ROUNDS = 15
MANY, AT_ONCE = 50, 4
FLOODS = 3
NETWORK = "bare"


def one_box() -> Row:
    """Pairs of a bare run and a job, so that a busy moment hurts both; both print when they got there."""
    bare: list[float] = []
    ours: list[float] = []
    with _bench() as (podman, server, client):
        for _ in range(ROUNDS):
            began = time.time_ns()
            printed = _run(podman, STAMP).stdout
            bare.append((int(printed) - began) / 1e9)
            began = time.time_ns()
            name = _submit(client, STAMP)
            client.wait(name)
            ours.append((int(next(iter(server.lines(name)))["text"]) - began) / 1e9)
    return Row(
        what="submit -> first line in a container",
        floor=f"podman run {ms(bare)}",
        ours=ms(ours),
        value=median(ours) / median(bare),
        goal=1.15,
    )


def many_boxes() -> Row:
    floors: list[float] = []
    ours: list[float] = []
    with _bench("--cpus", str(AT_ONCE)) as (podman, _, client):
        for _ in range(2):
            with ThreadPoolExecutor(AT_ONCE) as some:
                began = time.perf_counter()
                list(some.map(lambda _: _run(podman, "pass"), range(MANY)))
                floors.append(MANY / (time.perf_counter() - began))
            began = time.perf_counter()
            names = [_submit(client, "pass") for _ in range(MANY)]
            for name in names:
                assert client.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
            ours.append(MANY / (time.perf_counter() - began))
    return Row(
        what=f"{MANY} no-op container jobs, {AT_ONCE} at a time",
        floor=f"podman run {median(floors):.1f} jobs/s",
        ours=f"{median(ours):.1f} jobs/s",
        value=median(ours) / median(floors),
        goal=0.8,
        at_least=True,
    )


def flood(*, buffered: bool) -> Row:
    """The same program with the same environment, redirected to a file on the same disk."""
    unbuffered = "" if buffered else "1"
    floors: list[float] = []
    ours: list[float] = []
    with _bench() as (podman, server, client):
        for _ in range(FLOODS):
            target = server.base / "floor"
            began = time.perf_counter()
            with target.open("wb") as out:
                _run(podman, FLOOD, out, unbuffered)
            floors.append(time.perf_counter() - began)
            assert target.stat().st_size == 200_000_000
            target.unlink()
            began = time.perf_counter()
            name = _submit(client, FLOOD, unbuffered)
            client.wait(name)
            ours.append(time.perf_counter() - began)
            client.delete(name)
    kind = "buffered" if buffered else "line by line"
    return Row(
        what=f"printing 200 MB in a container, {kind}",
        floor=f"podman run > file {median(floors):.2f} s",
        ours=f"{median(ours):.2f} s",
        value=median(ours) / median(floors),
        goal=1.2,
    )


@contextmanager
def _bench(*flags: str) -> Iterator[tuple[Podman, LiveServer, Client]]:
    with (
        an_engine() as podman,
        LiveServer("--engine", str(podman.socket), "--subnets", podman.subnets, *flags) as server,
        Client(server.url, server.token, "p1", "us-central1") as client,
    ):
        podman.run("network", "create", "--disable-dns", "--opt", "isolate=true", NETWORK)
        _run(podman, "pass")
        assert client.wait(_submit(client, "pass"))["state"] == "JOB_STATE_SUCCEEDED"
        yield podman, server, client


def _run(
    podman: Podman, code: str, out: Any = subprocess.PIPE, unbuffered: str = "1"
) -> subprocess.CompletedProcess[bytes]:
    options = ["--rm", "--network", NETWORK, "--env", f"PYTHONUNBUFFERED={unbuffered}"]
    words = ["podman", "run", *options, BASE, "python3", "-c", code]
    return subprocess.run(words, stdout=out, env=os.environ | podman.env, check=True)


def _submit(client: Client, code: str, unbuffered: str = "1") -> str:
    env = [{"name": "PYTHONUNBUFFERED", "value": unbuffered}]
    container = {"imageUri": BASE, "command": ["python3", "-c", code], "env": env}
    pool = {
        "machineSpec": {"machineType": "n1-standard-1"},
        "replicaCount": 1,
        "containerSpec": container,
    }
    return str(client.submit("box", {"workerPoolSpecs": [pool]})["name"])

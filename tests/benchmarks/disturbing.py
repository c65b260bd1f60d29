"""How long others wait while one client does the worst it may: the 99th percentile of /healthz.

A process of its own sends the costly request again and again, and another asks for /healthz every 10 ms.
"""

import http.client
import json
import multiprocessing
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from statistics import median, quantiles
from urllib.parse import quote

from tests.benchmarks.row import Row
from tests.live import JOBS, LOCATION, PROJECT, LiveServer, pool, python

LASTS = 10.0  # seconds for each
PAUSE = 0.01  # seconds between two questions
PAGE = 1000
GOAL = 50.0  # milliseconds
PIPELINES = f"/v1/projects/{PROJECT}/locations/{LOCATION}/trainingPipelines"
# Long lines, so that reading and matching them takes time; then as fast as the server takes them.
LINES = "for number in range(100_000): print('loss ' * 100, number)"
FLOOD = "while True: print('loss ' * 100)"


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A server, and jobs of it that have much to read."""

    port: int
    token: str
    ended: str
    running: str

    def ask(self, verb: str, path: str, body: object = None) -> None:
        """One request on a connection of its own. The answer is read for LASTS seconds at most."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LASTS)
        until = time.monotonic() + LASTS
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(verb, path, data, headers)
            answer = connection.getresponse()
            while time.monotonic() < until and answer.read(1 << 20):
                pass
        finally:
            connection.close()

    def search(self, pattern: str) -> None:
        asked = (
            f'resource.labels.job_id="{self.ended.rsplit("/", 1)[1]}" AND jsonPayload.message=~"{pattern}"'
        )
        body = {"resourceNames": [f"projects/{PROJECT}"], "filter": asked, "pageSize": PAGE}
        self.ask("POST", "/v2/entries:list", body)

    def tail(self) -> None:
        self.ask("GET", f"/v1/{self.ended}:tail?limit={PAGE}")

    def wildcards(self) -> None:
        asked = quote(f'training_task_definition="{"*" * 60}x"')
        self.ask("GET", f"{PIPELINES}?filter={asked}")

    def follow(self) -> None:
        self.ask("GET", f"/v1/{self.running}:output?follow=true")

    def large_spec(self) -> None:
        env = [{"name": f"N{number}", "value": "x" * 1000} for number in range(5000)]
        spec = {"workerPoolSpecs": [{"machineSpec": {"machineType": "none"}, "containerSpec": {"env": env}}]}
        self.ask("POST", JOBS, {"displayName": "large", "jobSpec": spec})

    def deep(self) -> None:
        self.ask("POST", JOBS, b"[" * 500_000)


WORST: dict[str, Callable[[Disturbed], None]] = {
    "nothing": lambda server: time.sleep(0.1),
    "a search of 100,000 lines": lambda server: server.search(".*loss.*nan"),
    "a filter of asterisks": Disturbed.wildcards,
    "tails of a job": Disturbed.tail,
    "a follower of a flood": Disturbed.follow,
    "job files of 5 MB": Disturbed.large_spec,
    "500,000 brackets": Disturbed.deep,
}


def others_wait() -> list[Row]:
    with LiveServer() as live:
        ended = live.submit(pools=[pool(python(LINES), machine="n1-standard-1")])
        live.wait(ended)
        running = live.submit(pools=[pool(python(FLOOD), machine="n1-standard-1")])
        live.wait_for(running, ["JOB_STATE_RUNNING"])
        server = Disturbed(live.port, live.token, ended, running)
        waits = {what: _disturb(server, worst) for what, worst in WORST.items()}
    floor = waits.pop("nothing")
    return [
        Row(
            what=f"healthz beside {what}, p99",
            floor=f"{_percentile(floor):.1f} ms",
            ours=f"{_percentile(times):.1f} ms [median {median(times) * 1e3:.1f}]",
            value=_percentile(times),
            goal=GOAL,
            unit="ms",
        )
        for what, times in waits.items()
    ]


def _disturb(server: Disturbed, worst: Callable[[Disturbed], None]) -> list[float]:
    process = multiprocessing.get_context("fork").Process(target=_repeat, args=(server, worst), daemon=True)
    process.start()
    try:
        return _healthz(server.port)
    finally:
        process.kill()
        process.join()


def _repeat(server: Disturbed, worst: Callable[[Disturbed], None]) -> None:
    while True:
        with suppress(OSError, http.client.HTTPException):
            worst(server)


def _healthz(port: int) -> list[float]:
    times: list[float] = []
    until = time.monotonic() + LASTS
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.monotonic() < until:
        began = time.perf_counter()
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
        times.append(time.perf_counter() - began)
        time.sleep(PAUSE)
    connection.close()
    return times


def _percentile(times: list[float]) -> float:
    """The 99th, in milliseconds."""
    return quantiles(times, n=100)[-1] * 1e3

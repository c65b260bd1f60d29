"""customJobs:watch over HTTP: every change of a job is hinted, also after a kill of the server."""

import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.live import JOBS, LOCATION, PROJECT, LiveServer
from trainshed.client.api import Client, is_final

SHORT = [sys.executable, "-c", "print('hi')"]


@contextmanager
def listening(
    server: LiveServer, query: str = "", headers: dict[str, str] | None = None
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    sent = {"Authorization": f"Bearer {server.token}", **(headers or {})}
    connection.request("GET", f"{JOBS}:watch{query}", headers=sent)
    with closing(connection), connection.getresponse() as answer:
        yield answer


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8") as live:
        yield live


def event(answer: "http.client.HTTPResponse") -> tuple[str, dict[str, object]]:
    """The next event: its id, where it has one, and its data."""
    identity = ""
    while line := answer.readline().decode().rstrip("\n"):
        field, _, value = line.partition(": ")
        if field == "id":
            identity = value
        elif field == "data":
            assert answer.readline() == b"\n"
            return identity, json.loads(value)
    raise AssertionError("the stream ended")


def test_all_changes_of_a_job_are_hinted_and_a_listener_that_comes_back_goes_on(server: LiveServer) -> None:
    with listening(server) as answer:
        assert answer.getheader("content-type", "").startswith("text/event-stream")
        identity, first = event(answer)
        assert first == {"everything": True}
    job = server.submit(SHORT)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    with listening(server, headers={"Last-Event-ID": identity}) as answer:
        while (hint := event(answer)[1])["name"] != job:
            pass
        assert int(str(hint["version"])) >= 2
    with listening(server, f"?job={job.rsplit('/', 1)[-1]}&after={identity}") as answer:
        assert event(answer)[1]["name"] == job
        server.request("DELETE", f"/v1/{job}")
        while "deleted" not in event(answer)[1]:
            pass
    assert server.request("GET", f"{JOBS}:watch?job=123").status == 404


def test_new_samples_of_a_job_are_hinted_to_those_who_ask_for_them(server: LiveServer) -> None:
    job = server.submit([sys.executable, "-c", "import time; time.sleep(1000)"])
    with listening(server, f"?metrics={job}") as answer:
        for _ in range(2):
            while event(answer)[1] != {"name": job, "metrics": True}:
                pass
    server.cancel(job)


def test_a_client_that_only_looks_when_hinted_sees_the_end_of_a_job_across_a_kill_of_the_server(
    server: LiveServer,
) -> None:
    job = server.submit([sys.executable, "-c", "import time; time.sleep(3)"])
    ended = threading.Event()

    def look_when_hinted() -> None:
        with (
            Client(server.url, server.token, PROJECT, LOCATION) as ear,
            Client(server.url, server.token, PROJECT, LOCATION) as eye,
        ):
            for _ in ear.watch(job.rsplit("/", 1)[-1]):
                if is_final(eye.get(job)):
                    ended.set()
                    return

    thread = threading.Thread(target=look_when_hinted, daemon=True)
    thread.start()
    server.wait_for(job, ["JOB_STATE_RUNNING"])
    time.sleep(0.2)
    server.kill()
    server.start()
    assert ended.wait(60)
    thread.join(10)

"""Streams, shells and waiting requests of somebody who may not any more, on a real server."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest

from tests.acceptance.test_shell import PROTOCOL, knock, said
from tests.live import LOCATION, LiveServer, pool, python, until
from trainshed.client.websocket import WebSocket

PARENT = f"/v1/projects/vision/locations/{LOCATION}"
GCLOUD = {"User-Agent": "gcloud/400 command/gcloud.ai.custom-jobs.stream-logs"}
SOON = 3.0  # seconds, on a busy machine


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "4", "--memory", "8GiB", "--engine", "none") as server:
        yield server
        assert " ERROR " not in server.said(), server.said()


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    command = python("import time; print('up', flush=True); time.sleep(600)")
    body = {"displayName": "job", "jobSpec": {"workerPoolSpecs": [pool(command)]}}
    name: str = server.post(f"{PARENT}/customJobs", body)["name"]
    until(lambda: len(server.lines(name)) == 1)
    return name


@pytest.fixture
def ann(server: LiveServer) -> Iterator[str]:
    """Her token. She is user in the project vision."""
    server.post("/v1/accounts", {"name": "ann"})
    bindings = [{"role": "user", "members": ["user:ann"]}]
    server.post("/v1/projects/vision:setIamPolicy", {"policy": {"bindings": bindings}})
    yield server.post("/v1/tokens", {"account": "ann"})["token"]
    server.request("DELETE", "/v1/accounts/ann")


ENDS: dict[str, Callable[[LiveServer], object]] = {
    "disabled": lambda server: server.request("PATCH", "/v1/accounts/ann", {"disabled": True}),
    "removed": lambda server: server.request("DELETE", "/v1/accounts/ann"),
    "without role": lambda server: server.post("/v1/projects/vision:setIamPolicy", {"policy": {}}),
}


@pytest.mark.parametrize("verb", [":tail?follow=true", ":output?follow=true", "watch", "watch of the log"])
@pytest.mark.parametrize("end", ENDS)
def test_an_open_stream_is_cut_off(server: LiveServer, job: str, ann: str, verb: str, end: str):
    watch = f"{PARENT}/customJobs:watch?after=0"
    paths = {"watch": watch, "watch of the log": f"{watch}&{urlencode({'logs': job})}"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", paths.get(verb, f"/v1/{job}{verb}"), headers={"Authorization": f"Bearer {ann}"})
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read1(1)
    ENDS[end](server)
    began = time.monotonic()
    if verb.startswith(":tail"):
        with pytest.raises(http.client.IncompleteRead):  # it does not look like the end of the job
            answer.read()
    else:
        assert b'"end"' not in answer.read()
    assert time.monotonic() - began < SOON
    connection.close()


def test_signing_out_in_one_tab_ends_the_streams_of_all_tabs(server: LiveServer):
    signed_in = server.request("POST", "/v1/console:signIn", {"token": server.token}, token=None)
    cookie = signed_in.headers["set-cookie"].partition(";")[0]
    headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
    tab = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    tab.request("GET", f"{PARENT}/customJobs:watch?after=0", headers=headers)
    answer = tab.getresponse()
    assert answer.status == 200 and answer.read1(1)
    assert server.request("POST", "/v1/console:signOut", {}, token=None, headers=headers).status == 200
    began = time.monotonic()
    answer.read()
    assert time.monotonic() - began < SOON
    tab.close()


@pytest.mark.parametrize("end", ENDS)
def test_requests_that_wait_are_refused(server: LiveServer, job: str, ann: str, end: str):
    filter = f'resource.labels.job_id="{job.rpartition("/")[2]}" AND timestamp>"2100-01-01T00:00:00Z"'
    logs = {"resourceNames": ["projects/vision"], "filter": filter}
    codes = list[int]()

    def ask(verb: str, path: str, body: object = None) -> None:
        codes.append(server.request(verb, path, body, token=ann, headers=GCLOUD).status)

    asked: list[tuple[object, ...]] = [("GET", f"/v1/{job}:wait"), ("POST", "/v2/entries:list", logs)]
    threads = [threading.Thread(target=ask, args=words) for words in asked]
    for thread in threads:
        thread.start()
    time.sleep(1)
    assert not codes
    ENDS[end](server)
    for thread in threads:
        thread.join(SOON)
    assert codes == [403, 403]


def shell(server: LiveServer, job: str, token: str) -> tuple[str, str]:
    """The path of a shell, and its ticket."""
    answer = server.request("POST", f"/v1/{job}:shell", {"command": ["sh"]}, token=token)
    assert answer.status == 200, answer.body
    return answer.json["path"], answer.json["ticket"]


@pytest.mark.parametrize("end", ENDS)
def test_an_open_shell_is_hung_up_with_a_sentence(server: LiveServer, job: str, ann: str, end: str):
    path, ticket = shell(server, job, ann)
    socket = WebSocket(server.url, path, (PROTOCOL, ticket))
    socket.say(b"echo before-$((1+1))\n")
    assert "before-2" in said(socket, "before-2")[0]
    ENDS[end](server)
    began = time.monotonic()
    printed, words = said(socket)
    assert time.monotonic() - began < SOON and printed == ""
    assert "ann" in str(words["error"])
    socket.close()


@pytest.mark.parametrize("end", ENDS)
def test_a_ticket_for_a_shell_is_worth_nothing_then(server: LiveServer, job: str, ann: str, end: str):
    path, ticket = shell(server, job, ann)
    ENDS[end](server)
    assert knock(server, path, ticket) in (401, 403)

"""Who may come in, and that the same request sent twice is one job."""

import http.client
import json
import threading
from collections.abc import Callable

import pytest

from tests.conformance.refusal import refused
from tests.live import JOBS, Answer, LiveServer, pool

Unique = Callable[[str], str]
GOOD = {"displayName": "door", "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}

# ---- the same key is the same job


def create(server: LiveServer, key: str, name: str) -> Answer:
    body = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}
    return server.request("POST", JOBS, body, headers={"Idempotency-Key": key})


def test_the_same_key_twice_is_one_job(server: LiveServer, unique: Unique) -> None:
    key, name = unique("key"), unique("once")
    first, second = create(server, key, name), create(server, key, name)
    assert first.status == second.status == 200
    assert first.json["name"] == second.json["name"]
    other = create(server, unique("key"), name)
    assert other.json["name"] != first.json["name"]
    assert len(server.get(JOBS, filter=f'display_name="{name}"')["customJobs"]) == 2


def test_the_same_key_at_once_from_many_is_one_job(server: LiveServer, unique: Unique) -> None:
    key, name = unique("key"), unique("race")
    answers: list[Answer] = []
    barrier = threading.Barrier(8)

    def send() -> None:
        barrier.wait()
        answers.append(create(server, key, name))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a.status for a in answers] == [200] * 8
    assert len({a.json["name"] for a in answers}) == 1
    assert len(server.get(JOBS, filter=f'display_name="{name}"')["customJobs"]) == 1
    assert server.wait(answers[0].json["name"])["state"] == "JOB_STATE_SUCCEEDED"


def test_a_key_is_remembered_over_kill_9(mortal: LiveServer) -> None:
    first = create(mortal, "k", "survives")
    mortal.kill()
    mortal.start()
    assert create(mortal, "k", "survives").json["name"] == first.json["name"]


def test_an_endless_key_is_refused(server: LiveServer) -> None:
    refused(create(server, "k" * 300, "long"))


# ---- who may come in


FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "evil.example:8080"},
    {"Host": "127.0.0.1.evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
]
REQUESTS = [
    ("GET", "/healthz"),
    ("GET", JOBS),
    ("POST", JOBS),
    ("GET", f"{JOBS}/1"),
    ("DELETE", f"{JOBS}/1"),
    ("POST", f"{JOBS}/1:cancel"),
    ("POST", "/v2/entries:list"),
    ("OPTIONS", JOBS),
    ("GET", "/nothing"),
]


GUARDED = [row for row in REQUESTS if row[0] != "OPTIONS" and row[1] not in ("/healthz", "/nothing")]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("which", ["server", "open_server"])
def test_a_foreign_host_or_page_is_refused_whatever_it_asks(
    request: pytest.FixtureRequest, which: str, headers: dict[str, str]
) -> None:
    live: LiveServer = request.getfixturevalue(which)
    for verb, path in REQUESTS:
        body = GOOD if (verb, path) == ("POST", JOBS) else {} if verb == "POST" else None
        answer = live.request(verb, path, body, headers=headers)
        assert answer.status == 403, (verb, path, answer.status)
        assert answer.error["status"] == "PERMISSION_DENIED"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "LOCALHOST:{port}"])
def test_this_machine_s_own_names_are_let_in(open_server: LiveServer, host: str) -> None:
    headers = {"Host": host.format(port=open_server.port)}
    assert open_server.request("GET", JOBS, headers=headers).status == 200


def test_without_a_host_nobody_is_let_in(open_server: LiveServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", open_server.port, timeout=30)
    try:
        connection.putrequest("GET", JOBS, skip_host=True)
        connection.endheaders()
        assert connection.getresponse().status in (400, 403)
    finally:
        connection.close()


@pytest.mark.parametrize("verb_path", GUARDED, ids=str)
def test_every_method_but_health_asks_for_the_token(server: LiveServer, verb_path: tuple[str, str]) -> None:
    verb, path = verb_path
    body = GOOD if (verb, path) == ("POST", JOBS) else {} if verb == "POST" else None
    refused(server.request(verb, path, body, token=None), 403, "PERMISSION_DENIED")
    refused(server.request(verb, path, body, token="wrong"), 401, "UNAUTHENTICATED")
    for header in ("Bearer", "Bearer ", f"Basic {server.token}", server.token, f"Bearer {server.token}x"):
        answer = server.request(verb, path, body, token=None, headers={"Authorization": header})
        assert answer.status in (401, 403), header


def test_the_token_is_for_its_owner_s_eyes_only(server: LiveServer) -> None:
    assert (server.home / "token").stat().st_mode & 0o777 == 0o600
    assert len(server.token) >= 32
    assert server.token not in server.said()


def test_health_needs_no_token_and_tells_no_secret(server: LiveServer) -> None:
    answer = server.request("GET", "/healthz", token=None)
    assert answer.status == 200
    assert server.token not in answer.body.decode()


def test_many_requests_share_one_connection(server: LiveServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        for _ in range(20):
            connection.request("GET", JOBS, headers={"Authorization": f"Bearer {server.token}"})
            reply = connection.getresponse()
            assert reply.status == 200
            json.loads(reply.read())
    finally:
        connection.close()

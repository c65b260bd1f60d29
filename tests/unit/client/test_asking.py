import socket
from collections.abc import Iterator

import pytest

from tests.unit.client.scripted import Asked, Handler, Script, failure
from trainshed.client import ApiError, ApiViolation, Client, ClientError, Interrupted, Unreachable

NAME = "projects/p/locations/l/customJobs/7"
ANYWHERE = NAME.replace("/l/", "/-/")  # what is asked for by an id alone
BUSY = failure(503, "UNAVAILABLE", "not now")


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    with Client(script.url, "secret", "p", "l", pauses=(0.0, 0.0)) as found:
        yield found


def test_all_questions_go_over_one_connection_and_carry_the_token(script: Script, client: Client) -> None:
    for _ in range(3):
        client.get("7")
    assert len({asked.connection for asked in script.asked}) == 1
    assert {asked.headers["authorization"] for asked in script.asked} == {"Bearer secret"}
    assert script.paths() == [f"GET /v1/{ANYWHERE}"] * 3


def test_a_full_name_is_asked_for_as_it_is_and_an_id_in_all_locations(script: Script, client: Client) -> None:
    client.get("projects/q/locations/m/customJobs/8")
    client.get("a c")
    assert script.paths() == [
        "GET /v1/projects/q/locations/m/customJobs/8",
        "GET /v1/projects/p/locations/-/customJobs/a%20c",
    ]


def test_persistent_resources_are_fetched_page_by_page(script: Script, client: Client) -> None:
    pages = iter(
        [
            {"persistentResources": [{"name": "a"}], "nextPageToken": "t"},
            {"persistentResources": [{"name": "b"}]},
        ]
    )
    script.answer = lambda asked, handler: (200, next(pages))
    assert [found["name"] for found in client.resources().find()] == ["a", "b"]
    path = "GET /v1/projects/p/locations/l/persistentResources"
    assert script.paths() == [path, f"{path}?pageToken=t"]


def test_a_busy_server_is_asked_again(script: Script, client: Client) -> None:
    answers = iter([BUSY, BUSY, (200, {"state": "JOB_STATE_RUNNING"})])
    script.answer = lambda asked, handler: next(answers)
    assert client.get("7") == {"state": "JOB_STATE_RUNNING"}


def test_a_server_that_stays_busy_is_not_asked_forever(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: BUSY
    with pytest.raises(ApiError, match="not now"):
        client.get("7")
    assert len(script.asked) == 3


def test_a_submit_whose_answer_is_lost_is_sent_again_under_the_same_key(
    script: Script, client: Client
) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, object] | None:
        return handler.hang_up() if len(script.asked) == 1 else (200, {"name": NAME})

    script.answer = answer
    assert client.submit("digits", {"workerPoolSpecs": []}, {"team": "vision"}) == {"name": NAME}
    first, second = script.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert (
        first.body
        == second.body
        == {
            "displayName": "digits",
            "jobSpec": {"workerPoolSpecs": []},
            "labels": {"team": "vision"},
        }
    )


def test_two_submits_have_two_keys(script: Script, client: Client) -> None:
    client.submit("a", {})
    client.submit("a", {})
    assert len({asked.headers["idempotency-key"] for asked in script.asked}) == 2


def test_a_cancel_whose_answer_is_lost_is_not_sent_twice(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: handler.hang_up()
    with pytest.raises(Interrupted):
        client.cancel("7")
    assert script.paths() == [f"POST /v1/{ANYWHERE}:cancel"]


def test_a_kept_connection_that_the_server_has_closed_is_replaced_even_for_a_cancel(
    script: Script, client: Client
) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, object]:
        handler.hang_up()  # after this answer, without having announced it
        return 200, {}

    script.answer = answer
    client.get("7")
    while not _is_readable(client):
        pass
    client.cancel("7")
    assert len({asked.connection for asked in script.asked}) == 2


def _is_readable(client: Client) -> bool:
    """Whether the server's goodbye has arrived, so that the test does not race with it."""
    import select

    kept = client._connection._open  # pyright: ignore[reportPrivateUsage]
    assert kept is not None
    return bool(select.select([kept.sock], [], [], 0.1)[0])


def test_a_refusal_is_told_with_every_violation_and_not_asked_again(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: failure(400, "INVALID_ARGUMENT", "two things", a="is bad", b="too")
    with pytest.raises(ApiError) as caught:
        client.submit("a", {})
    error = caught.value
    assert (error.code, error.status, error.message) == (400, "INVALID_ARGUMENT", "two things")
    assert error.violations == (ApiViolation("a", "is bad"), ApiViolation("b", "too"))
    assert len(script.asked) == 1


@pytest.mark.parametrize("body", [b"<html>Bad  Gateway</html>", b'"text"', b'{"error": "text"}', b"[1]", b""])
def test_an_error_that_is_not_googles_is_still_an_error(script: Script, client: Client, body: bytes) -> None:
    script.answer = lambda asked, handler: (502, body)
    with pytest.raises(ApiError) as caught:
        client.get("7")
    assert caught.value.code == 502
    assert "HTTP 502 Bad Gateway" in caught.value.message


@pytest.mark.parametrize("answer", [(200, b"<html>hello</html>"), (200, b"[1, 2]"), (302, b"")])
def test_something_that_is_no_trainshed_server_is_called_so(
    script: Script, client: Client, answer: tuple[int, bytes]
) -> None:
    script.answer = lambda asked, handler: answer
    with pytest.raises(ClientError, match="is it a Trainshed server"):
        client.get("7")


@pytest.mark.parametrize("token", ["t\u00f6ken", "\u20ac", "one\r\nX-Other: two", "a\0b"])
def test_a_token_that_no_header_can_carry_is_refused_before_anything_is_sent(token: str) -> None:
    with pytest.raises(ClientError, match="the token"):
        Client("http://127.0.0.1:1", token)


def test_where_nothing_listens_the_address_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Unreachable) as caught:
        Client(url, pauses=()).health()
    assert caught.value.url == url


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://host", "http://", "http://host:port"])
def test_what_is_no_address_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(ClientError, match="not the address"):
        Client(url)


def test_jobs_come_page_by_page_and_no_more_than_asked_for(script: Script, client: Client) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, object]:
        if "pageToken=second" in asked.path:
            return 200, {"customJobs": [{"name": "c"}, {"name": "d"}]}
        return 200, {"customJobs": [{"name": "a"}, {"name": "b"}], "nextPageToken": "second"}

    script.answer = answer
    assert [job["name"] for job in client.jobs()] == ["a", "b", "c", "d"]
    assert [job["name"] for job in client.jobs(limit=3)] == ["a", "b", "c"]
    assert "pageSize=1&" in script.asked[-1].path
    script.asked.clear()
    assert [job["name"] for job in client.jobs(limit=2, location="-", filter='a="b"')] == ["a", "b"]
    assert script.paths() == ["GET /v1/projects/p/locations/-/customJobs?pageSize=2&filter=a%3D%22b%22"]


def test_waiting_asks_until_the_job_has_ended(script: Script, client: Client) -> None:
    states = iter(["RUNNING", "RUNNING", "SUCCEEDED"])
    script.answer = lambda asked, handler: (200, {"state": f"JOB_STATE_{next(states)}"})
    assert client.wait("7")["state"] == "JOB_STATE_SUCCEEDED"
    assert all(":wait?timeout=30" in path for path in script.paths())


def test_waiting_gives_back_the_job_as_it_is_when_the_time_is_up(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: (200, {"state": "JOB_STATE_RUNNING"})
    assert client.wait("7", timeout=0)["state"] == "JOB_STATE_RUNNING"
    assert script.paths() == [f"GET /v1/{ANYWHERE}:wait?timeout=0.000s"]


def test_waiting_outlasts_a_server_that_hangs_up(script: Script, client: Client) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, object] | None:
        return handler.hang_up() if len(script.asked) <= 5 else (200, {"state": "JOB_STATE_FAILED"})

    script.answer = answer
    assert client.wait("7")["state"] == "JOB_STATE_FAILED"


def test_our_own_view_of_a_list_is_asked_for_by_name(script: Script, client: Client) -> None:
    assert list(client.jobs(view="trainshed", limit=7)) == []
    assert script.paths() == ["GET /v1/projects/p/locations/l/customJobs?pageSize=7&view=trainshed"]


def test_the_environment_is_asked_for_all_replicas_or_for_one(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: (200, {"replicas": [{"task": "workerpool0-0"}]})
    assert client.environment("7") == [{"task": "workerpool0-0"}]
    client.environment("7", "workerpool0-0")
    path = f"GET /v1/{ANYWHERE}:environment"
    assert script.paths() == [path, f"{path}?task=workerpool0-0"]


def test_a_job_may_be_created_beside_another_wherever_that_is(script: Script, client: Client) -> None:
    client.create({"displayName": "x"}, parent="projects/p2/locations/l2")
    assert script.paths() == ["POST /v1/projects/p2/locations/l2/customJobs?view=trainshed"]


def test_a_build_that_a_restart_of_the_server_ended_is_asked_for_anew(script: Script, client: Client) -> None:
    def answer(asked: Asked, handler: Handler) -> tuple[int, object] | None:
        if asked.path.endswith(":build"):
            return 200, {"id": "7", "state": "BUILDING"}
        if len(script.asked) == 2:
            handler.begin_stream()
            return handler.hang_up()
        return 200, {"id": "7", "state": "READY"}

    script.answer = answer
    assert [build["state"] for build in client.runtimes().built("r", [])] == ["BUILDING", "BUILDING", "READY"]


def test_a_build_on_a_server_that_was_never_there_is_told_at_once() -> None:
    with pytest.raises(Unreachable):
        list(Client("http://127.0.0.1:1", pauses=()).runtimes().built("r", []))

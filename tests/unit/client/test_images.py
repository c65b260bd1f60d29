"""Images over HTTP: what is said as it goes on, what fails in the middle, and bodies of unknown length."""

import json
from collections.abc import Iterator

import pytest

from tests.unit.client.scripted import Asked, Handler, Script, failure
from trainshed.client import ApiError, Client, Interrupted

PLACE = "/v1/projects/p/locations/l/images"
GONE = {"error": {"code": 404, "status": "NOT_FOUND", "message": "There is none."}}


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    with Client(script.url, "secret", "p", "l", pauses=(0.0, 0.0)) as found:
        yield found


def streamed(handler: Handler, *lines: object, whole: bool = True) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for line in lines:
        piece = (json.dumps(line) if line else "").encode() + b"\n"
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
    if whole:
        handler.wfile.write(b"0\r\n\r\n")
    handler.close_connection = True


def test_words_come_one_by_one_and_empty_lines_only_keep_the_connection(
    script: Script, client: Client
) -> None:
    script.answer = lambda asked, handler: streamed(handler, {"message": "a"}, None, {"message": "b"})
    assert list(client.images().pull("x:1")) == [{"message": "a"}, {"message": "b"}]
    assert (script.asked[0].body, script.asked[0].path) == ({"name": "x:1"}, f"{PLACE}:pull")


def test_a_failure_in_the_middle_is_raised_as_one_at_the_beginning_is(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: streamed(handler, {"message": "a"}, GONE)
    steps = client.images().push("x:1")
    assert next(steps) == {"message": "a"}
    with pytest.raises(ApiError, match="There is none") as caught:
        next(steps)
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    script.answer = lambda asked, handler: failure(404, "NOT_FOUND", "There is none.")
    with pytest.raises(ApiError, match="There is none"):
        list(client.images().push("x:1"))


def test_an_answer_that_breaks_off_is_no_success(script: Script, client: Client) -> None:
    script.answer = lambda asked, handler: streamed(handler, {"message": "a"}, whole=False)
    with pytest.raises(Interrupted):
        list(client.images().pull("x:1"))


def test_a_body_of_unknown_length_is_sent_in_pieces(script: Script, client: Client) -> None:
    came: list[bytes] = []

    def answer(asked: Asked, handler: Handler) -> None:
        while size := int(handler.rfile.readline(), 16):
            came.append(handler.rfile.read(size + 2)[:-2])
        handler.rfile.readline()
        streamed(handler, {"message": "done"})

    script.answer = answer
    pieces = [b"one", b"", b"two" * 1000]
    told = client.images().build(pieces, ["x:1", "y"], args={"A": "b c"}, more={"noCache": "true"})
    assert list(told) == [{"message": "done"}] and came == [b"one", b"two" * 1000]
    asked = script.asked[0]
    assert asked.path == (
        f"{PLACE}:build?tag=x%3A1%2Cy&dockerfile=Dockerfile&noCache=true&buildArgs=%7B%22A%22%3A+%22b+c%22%7D"
    )
    assert (asked.headers["transfer-encoding"], asked.headers["content-type"]) == (
        "chunked",
        "application/x-tar",
    )

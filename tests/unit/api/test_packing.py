"""Browsers get large JSON answers compressed; everybody and everything else stays as it is."""

import gzip
import json

import pytest
from starlette.responses import Response, StreamingResponse

from trainshed.api.packing import LEAST, packed

BROWSER = {"sec-fetch-mode": "cors", "accept-encoding": "gzip, br"}
BODY = json.dumps({"text": "x" * LEAST}).encode()


def answer(body: bytes = BODY, media_type: str = "application/json; charset=UTF-8") -> Response:
    return Response(body, 201, {"x-more": "kept"}, media_type=media_type)


def test_a_browser_gets_a_large_answer_compressed():
    response = packed(answer(), BROWSER)
    assert gzip.decompress(bytes(response.body)) == BODY
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["content-length"] == str(len(response.body))
    assert (response.status_code, response.headers["x-more"]) == (201, "kept")


@pytest.mark.parametrize(
    "headers",
    [{}, {"accept-encoding": "gzip"}, {"sec-fetch-mode": "cors"}, BROWSER | {"accept-encoding": "br"}],
)
def test_others_get_the_bytes_as_they_are(headers: dict[str, str]):
    given = answer()
    assert packed(given, headers) is given


def test_small_answers_other_types_and_streams_stay_as_they_are():
    stream = StreamingResponse(iter([BODY]), media_type="application/json")
    for given in (answer(b"{}"), answer(media_type="text/plain"), stream):
        assert packed(given, BROWSER) is given

"""Compresses JSON answers for browsers. `api/app.py` passes every answer through it.

Pages read lists of jobs often, perhaps over a slow network. Only browsers get compressed answers, which they
mark by Sec-Fetch-Mode: clients of Google's API get the bytes that they always got.
"""

import gzip
from collections.abc import Mapping

from starlette.responses import Response

LEAST = 2048  # bytes; fewer fit into few packets anyway
MOST = 4 << 20  # bytes; compressing more would keep others waiting
_LEVEL = 3  # a tenth of the size for a millisecond each 100 KiB


def packed(response: Response, headers: Mapping[str, str]) -> Response:
    """The response, compressed where a browser asked that takes it so."""
    if "sec-fetch-mode" not in headers or "gzip" not in headers.get("accept-encoding", ""):
        return response
    if not response.headers.get("content-type", "").startswith("application/json"):
        return response
    body = getattr(response, "body", b"")  # streams have none
    if "content-encoding" in response.headers or not LEAST <= len(body) <= MOST:
        return response
    kept = {name: value for name, value in response.headers.items() if name != "content-length"}
    said = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(gzip.compress(bytes(body), _LEVEL, mtime=0), response.status_code, {**kept, **said})

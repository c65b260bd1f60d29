"""Answers of the storage API: JSON cut to the requested fields, and errors in its own format."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace

from trainshed.api.call import Call, Handler, Json, RawAnswer, Reply
from trainshed.core.accounts.permission import Permission, PrincipalKind
from trainshed.core.bucket import OutOfRange, check_bucket_name, check_object_name
from trainshed.core.errors import Forbidden, NotFound, TrainshedError
from trainshed.wire.partial import partial
from trainshed.wire.storage import render_error

PATIENCE = 256 << 20  # bytes
READING = ("GET", "HEAD")
JSON = {"content-type": "application/json; charset=UTF-8"}


def object_permission(verb: str) -> Permission:
    return Permission.OBJECTS_READ if verb in READING else Permission.OBJECTS_WRITE


def json_answer(call: Call, answer: Json, **headers: str) -> RawAnswer:
    body = partial(answer, call.query.get("fields", ""))
    return RawAnswer(_encoded(body), headers=JSON | headers)


def nothing() -> RawAnswer:
    return RawAnswer(status=204)


def bucket_of(call: Call, key: str = "bucket") -> str:
    return check_bucket_name(call.path[key])


def object_of(call: Call, key: str = "object") -> str:
    return check_object_name(call.path[key])


def request_of(call: Call, verb: str) -> str:
    """Identifies a request that is sent again; empty where the client gave no token.

    It covers the whole request too: two requests with the same token stay different.
    """
    token = call.headers.get("x-goog-gcs-idempotency-token", "")
    if not token:
        return ""
    asked = [token, verb, dict(call.path), dict(call.query), call.body]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


async def not_offered(call: Call) -> Reply:
    """Answers every path of the storage API that no other method has."""
    path = call.path["rest"][:200]
    hint = " A slash in an object's name is written as %2F." if "/o/" in path else ""
    sentence = f"This part of the storage API is not offered here: {path}.{hint}"
    # A job may use objects by their paths and nothing else, whether it exists or not.
    raise Forbidden(sentence) if call.principal.kind is PrincipalKind.JOB else NotFound(sentence)


async def drained(call: Call) -> None:
    """Reads the rest of the body: a client that is cut off while sending would not see the error."""
    size = 0
    async for chunk in call.chunks:
        size += len(chunk)
        if size > PATIENCE:
            return


def _encoded(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _refused(error: TrainshedError, reads: bool) -> RawAnswer:
    code, body = render_error(error, reads=reads)
    return RawAnswer(status=code) if code == 304 else RawAnswer(_encoded(body), code, JSON)


def in_storage_words(
    handler: Handler, *, reads: bool = False, render: Callable[[TrainshedError, bool], RawAnswer] = _refused
) -> Handler:
    """The handler, with its errors rendered as the storage API does. `render`: as JSON or XML."""

    async def answered(call: Call) -> Reply:
        try:
            return await handler(call)
        except TrainshedError as error:
            await drained(call)
            answer = render(error, reads)
            if isinstance(error, OutOfRange):
                ranged = {"content-range": f"bytes */{error.size}"}
                return replace(answer, headers={**answer.headers, **ranged})
            return answer

    return answered

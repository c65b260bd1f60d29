"""Errors as google.rpc.Status. The only module that knows HTTP status codes of errors.

A permanent refusal is never a 5xx, since clients would retry it for half a minute. A Conflict is 400
FAILED_PRECONDITION, as Google answers where the state of a resource forbids the request.
"""

import json
from enum import Enum
from typing import Any

from trainshed.core.bucket import DamagedObject, DiskFull, NotModified, OutOfRange, PreconditionFailed
from trainshed.core.errors import (
    AlreadyExists,
    Conflict,
    Exhausted,
    Forbidden,
    Invalid,
    NotFound,
    TrainshedError,
    Unauthenticated,
    Unavailable,
)

_STATUSES: dict[type[TrainshedError], tuple[int, str]] = {
    Invalid: (400, "INVALID_ARGUMENT"),
    Conflict: (400, "FAILED_PRECONDITION"),
    Unauthenticated: (401, "UNAUTHENTICATED"),
    Forbidden: (403, "PERMISSION_DENIED"),
    NotFound: (404, "NOT_FOUND"),
    AlreadyExists: (409, "ALREADY_EXISTS"),
    Exhausted: (429, "RESOURCE_EXHAUSTED"),
    Unavailable: (503, "UNAVAILABLE"),
}


# The storage API has codes and reasons of its own, also for a full disk and a failed precondition.
_STORAGE: dict[type[TrainshedError], tuple[int, str]] = {
    Invalid: (400, "invalid"),
    Unauthenticated: (401, "authError"),
    Forbidden: (403, "forbidden"),
    NotFound: (404, "notFound"),
    AlreadyExists: (409, "conflict"),
    Conflict: (409, "conflict"),
    DamagedObject: (409, "damaged"),
    PreconditionFailed: (412, "conditionNotMet"),
    NotModified: (304, "notModified"),
    OutOfRange: (416, "requestedRangeNotSatisfiable"),
    Exhausted: (429, "rateLimitExceeded"),
    DiskFull: (507, "insufficientStorage"),
    Unavailable: (503, "backendError"),
}


def to_storage(error: TrainshedError, *, reads: bool = True) -> tuple[int, str]:
    """The storage API's code and reason. Only reads are answered with "not modified"."""
    for cls in type(error).__mro__:
        if known := _STORAGE.get(cls):
            return _STORAGE[PreconditionFailed] if cls is NotModified and not reads else known
    return 500, "internalError"


def to_http(error: TrainshedError) -> tuple[int, dict[str, Any]]:
    """The HTTP status code and the body."""
    for cls in type(error).__mro__:
        if known := _STATUSES.get(cls):
            return known[0], _body(error, *known)
    return 500, INTERNAL


def _body(error: TrainshedError, code: int, status: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"code": code, "message": error.message, "status": status}
    if isinstance(error, Invalid) and error.violations:
        answer["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [
                    {"field": violation.field, "description": violation.description}
                    for violation in error.violations
                ],
            }
        ]
    return {"error": answer}


class HeadFault(Enum):
    """Why a request is refused before it is known what it asks for."""

    MALFORMED = (400, "INVALID_ARGUMENT", "The request is not HTTP.")
    TWO_HOSTS = (400, "INVALID_ARGUMENT", "The request has two Host headers: send one.")
    LATE = (408, "DEADLINE_EXCEEDED", "The rest of the request did not come in time: send it again.")
    LONG_ADDRESS = (414, "INVALID_ARGUMENT", "The address is longer than 65536 bytes: send less in it.")
    TOO_MANY = (429, "RESOURCE_EXHAUSTED", "Too many requests wait for the answer before: wait for it.")
    CROWDED = (503, "UNAVAILABLE", "The server has all the connections it can serve: try again in a moment.")
    LARGE_HEAD = (431, "INVALID_ARGUMENT", "The headers are larger than 65536 bytes, or more than 1000.")

    def to_http(self) -> tuple[int, dict[str, Any]]:
        code, status, message = self.value
        return code, {"error": {"code": code, "message": message, "status": status}}


def plain_refusal(url: str) -> tuple[int, str]:
    """Of a request without TLS to a server that speaks TLS."""
    message = f"This server speaks TLS. Its address is {url}."
    return 400, json.dumps({"error": {"code": 400, "message": message, "status": "FAILED_PRECONDITION"}})


INTERNAL: dict[str, Any] = {
    "error": {
        "code": 500,
        "message": "Something went wrong in the server; its log says what.",
        "status": "INTERNAL",
    }
}

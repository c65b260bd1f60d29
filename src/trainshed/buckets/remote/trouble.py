"""Translates errors of a remote store into errors of the core. Messages repeat only S3's code and message:
the rest may contain signed addresses.
"""

import contextlib
import re
from collections.abc import Generator

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotModifiedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from trainshed.core.bucket import NotModified, PreconditionFailed
from trainshed.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TrainshedError,
    Unavailable,
    Violation,
)

_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>(?:\s*<Message>([^<]{1,200})</Message>)?")
_STATUS = re.compile(r"status code: (\d{3})")


@contextlib.contextmanager
def translated(place: str) -> Generator[None]:
    """`place`: the bucket or object as people write it."""
    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise _as_error(place, error) from None  # its text may hold more than may be told


def _as_error(place: str, error: Exception) -> TrainshedError:
    text = str(error)
    matched = _CODE.search(text)
    reason = f"{matched[1]}{': ' + matched[2].rstrip('.') if matched[2] else ''}" if matched else ""
    code = matched[1] if matched else ""
    status = int(match[1]) if (match := _STATUS.search(text)) else 0
    match error:
        case FileNotFoundError() if code == "NoSuchBucket":
            return NotFound(f"The store of {place} has no such bucket.")
        case FileNotFoundError():
            return NotFound(f"No such object: {place}")
        case AlreadyExistsError() | PreconditionError():
            return PreconditionFailed(f"{place} has changed meanwhile.")
        case NotModifiedError():
            return NotModified(f"{place} is still the same.")
        case PermissionDeniedError() | UnauthenticatedError():
            return Forbidden(f"The store refused the keys this server has for {place}{_behind(reason)}.")
        case InvalidPathError() | ValueError():
            return Conflict(f"{place} holds an object whose name cannot be used from here.")
        case _ if status in (401, 403):
            return Forbidden(f"The store refused the keys this server has for {place}{_behind(reason)}.")
        case _ if 400 <= status < 500 and status not in (408, 429):
            return Invalid((Violation("", f"The store refused what was asked of {place}{_behind(reason)}."),))
        case _:
            return Unavailable(f"The store of {place} cannot be used now{_behind(reason or _brief(text))}.")


def _brief(text: str) -> str:
    return "it cannot be reached" if "error sending request" in text else ""


def _behind(reason: str) -> str:
    return f": {reason}" if reason else ""

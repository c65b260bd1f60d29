"""Page tokens: opaque, checked, and valid only for the list they were made for.

A token has the place where the next page begins and a digest of the question (parent, filter, order), signed
with a key of the home: nobody else can make one, so those who read its place need not doubt it. It is no
secret and gives no rights.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from trainshed.core.errors import Violation
from trainshed.wire import scalars
from trainshed.wire.faults import invalid

DEFAULT_SIZE = 100
LARGEST_SIZE = 1000
LONGEST_TOKEN = 4096
_MARK = 8  # bytes

Cursor = tuple[str, str]


def fingerprint(*question: str) -> str:
    """Identifies a question. Pass everything but the page's size and place."""
    return "\0".join(question)


@dataclass(frozen=True, slots=True)
class PageTokens:
    """Makes tokens and reads them again, by a key that outlives the server."""

    key: bytes = field(repr=False)

    @classmethod
    def signed_with(cls, secret: bytes) -> "PageTokens":
        return cls(hashlib.blake2b(secret, person=b"page tokens").digest())

    def render(
        self, name: str, rows: Sequence[object], cursor: Cursor | None, fingerprint: str
    ) -> dict[str, object]:
        """The rows under `name`, if any, and a token where another page follows."""
        answer: dict[str, object] = {name: rows} if rows else {}
        if cursor is not None:
            answer["nextPageToken"] = self.encode(cursor, fingerprint)
        return answer

    def encode(self, cursor: Cursor, fingerprint: str) -> str:
        place = json.dumps(cursor, separators=(",", ":")).encode()
        question = _digest(fingerprint.encode())
        sealed = _digest(question + place, self.key) + question + place
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def decode(self, token: str, fingerprint: str) -> Cursor | None:
        """The place where the page begins; None for the first page, which has no token."""
        if not token:
            return None
        place, question = self._open(token)
        if question != _digest(fingerprint.encode()):
            sentence = (
                "was made for another list: use it with the same parent, filter and order it came from."
            )
            raise invalid((Violation("page_token", sentence),))
        return place

    def _open(self, token: str) -> tuple[Cursor, bytes]:
        try:
            if len(token) > LONGEST_TOKEN:
                raise ValueError
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            check, question, place = raw[:_MARK], raw[_MARK : 2 * _MARK], raw[2 * _MARK :]
            if not hmac.compare_digest(check, _digest(question + place, self.key)):
                raise ValueError
            first, second = cast("list[Any]", json.loads(place))
        except (ValueError, binascii.Error, RecursionError) as error:
            raise invalid((Violation("page_token", "is not a token this server gave out."),)) from error
        return (str(first), str(second)), question


UNSIGNED = PageTokens(b"")  # for calls that have no pages


def _digest(data: bytes, key: bytes = b"") -> bytes:
    return hashlib.blake2b(data, digest_size=_MARK, key=key).digest()


def parse_size(value: object, *, default: int = DEFAULT_SIZE, most: int = LARGEST_SIZE) -> int:
    """The page size: the default where none (or zero) is given, at most `most`."""
    try:
        size = scalars.read_int(value, scalars.INT32_MOST) if value not in (None, "") else 0
    except ValueError as error:
        raise invalid((Violation("page_size", str(error)),)) from error
    if size < 0:
        raise invalid((Violation("page_size", f"must not be negative, as {size} is."),))
    return min(size or default, most)

"""SessionSigner of browsers: what a cookie holds instead of the server's token.

A session is the moment of its end, signed with a key of the home and the server's token. Nothing is kept for
each: a server that was killed and started again knows them all, and another token ends all of them.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from trainshed.core.permission import OWNER, Principal

LIFE = timedelta(days=7)


class SignedSessions:
    """Implements `core.ports.SessionSigner`."""

    def __init__(self, secret: bytes, token: Callable[[], str]) -> None:
        self._secret, self._token = secret, token
        # Browsers send cookies of one host to all of its ports: servers side by side need names of their own.
        self.cookie = f"trainshed-{hashlib.blake2b(secret, digest_size=4, person=b'cookie').hexdigest()}"

    def issue(self, now: datetime) -> tuple[str, timedelta]:
        end = str(int((now + LIFE).timestamp()))
        return f"{end}.{self._signature(end)}", LIFE

    def principal(self, session: str, now: datetime) -> Principal | None:
        end, _, given = session.partition(".")
        # Compared in constant time, so that nobody can find the signature letter by letter.
        same = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._signature(end).encode())
        return OWNER if same and now < datetime.fromtimestamp(int(end), UTC) else None

    def _signature(self, end: str) -> str:
        key = hashlib.blake2b(self._token().encode(), key=self._secret[:64], person=b"session").digest()
        digest = hmac.digest(key, end.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

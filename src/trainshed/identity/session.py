"""SessionSigner of browsers: what a cookie holds instead of the server's token.

A session is the moment of its end, signed with a key of the home and the server's token; one that was made
with the token of an account has the id of that, too. Nothing is kept for each: a server that was killed and
started again knows them all, and another token ends all of them.
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

    def __init__(
        self,
        secret: bytes,
        token: Callable[[], str],
        principal: Callable[[str], Principal | None] = lambda _: None,
    ) -> None:
        """`token` is the server's own. `principal` says who has the token of an account, by its id."""
        self._secret, self._token, self._principal = secret, token, principal
        # Browsers send cookies of one host to all of its ports: servers side by side need names of their own.
        self.cookie = f"trainshed-{hashlib.blake2b(secret, digest_size=4, person=b'cookie').hexdigest()}"

    def issue(self, now: datetime, token: str = "") -> tuple[str, timedelta]:
        signed = f"{int((now + LIFE).timestamp())}{f'.{token}' if token else ''}"
        return f"{signed}.{self._signature(signed)}", LIFE

    def principal(self, session: str, now: datetime) -> Principal | None:
        signed, _, given = session.rpartition(".")
        # Compared in constant time, so that nobody can find the signature letter by letter.
        same = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._signature(signed).encode())
        end, _, token = signed.partition(".")
        if not same or now >= datetime.fromtimestamp(int(end), UTC):
            return None
        return self._principal(token) if token else OWNER

    def _signature(self, signed: str) -> str:
        key = hashlib.blake2b(self._token().encode(), key=self._secret[:64], person=b"session").digest()
        digest = hmac.digest(key, signed.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

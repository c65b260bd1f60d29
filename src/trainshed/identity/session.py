"""SessionSigner of browsers: what a cookie holds instead of the server's token.

A session is the moment of its end, signed with a key of the home and the server's token; one that was made
with the token of an account has the id of that, too. Nothing is kept for each, only for those that somebody
signed out of: a server that was killed and started again knows them all, and another token ends all of them.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainshed.core.accounts.permission import OWNER, Principal
from trainshed.identity.ended_sessions import EndedSessions

LIFE = timedelta(days=7)


class SignedSessions:
    """Implements `core.ports.SessionSigner`."""

    def __init__(
        self,
        secret: bytes,
        token: Callable[[], str],
        principal: Callable[[str], Principal | None] = lambda _: None,
        ended: EndedSessions | None = None,
    ) -> None:
        """`token` is the server's own. `principal` says who has the token of an account, by its id."""
        self._secret, self._token, self._principal = secret, token, principal
        self._ended = EndedSessions() if ended is None else ended
        # Browsers send cookies of one host to all of its ports: servers side by side need names of their own.
        self.cookie = f"trainshed-{hashlib.blake2b(secret, digest_size=4, person=b'cookie').hexdigest()}"

    def issue(self, now: datetime, token: str = "") -> tuple[str, timedelta]:
        # The last part tells two of the same moment apart.
        signed = f"{int((now + LIFE).timestamp())}.{token}.{secrets.token_urlsafe(9)}"
        return f"{signed}.{self._signature(signed)}", LIFE

    def principal(self, session: str, now: datetime) -> Principal | None:
        if (proof := self._read(session)) is None or now >= proof[0] or _mark(session) in self._ended:
            return None
        principal = self._principal(proof[1]) if proof[1] else OWNER
        return principal and replace(principal, session=_mark(session), session_ends_at=proof[0])

    def end(self, session: str, now: datetime) -> None:
        if (proof := self._read(session)) is not None:
            self._ended.add(_mark(session), proof[0], now)

    def _read(self, session: str) -> tuple[datetime, str] | None:
        """When it ends and the id of its token, which the owner's has not; None: it is none of ours."""
        signed, _, given = session.rpartition(".")
        # Compared in constant time, so that nobody can find the signature letter by letter.
        same = hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._signature(signed).encode())
        if not same:
            return None
        end, token = (*signed.split("."), "")[:2]  # older ones of the owner have an end alone
        return datetime.fromtimestamp(int(end), UTC), token

    def _signature(self, signed: str) -> str:
        key = hashlib.blake2b(self._token().encode(), key=self._secret[:64], person=b"session").digest()
        digest = hmac.digest(key, signed.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _mark(session: str) -> str:
    """What is kept of one that was ended: nobody can make it of this."""
    return hashlib.sha256(session.encode()).hexdigest()[:32]

"""Use cases of signing in to the console: a ticket or the token becomes a session.

`api/console.py` calls it. Whoever has the token may ask for a ticket; a browser that shows the ticket, once
and within a minute, gets a session. So the token is never in an address.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.permission import Principal
from trainshed.core.ports import Authenticator, Clock, SessionSigner
from trainshed.service.tickets import Tickets

LIFE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class BrowserSession:
    cookie: str
    word: str
    lasts: timedelta


@dataclass(slots=True)
class SignInService:
    authenticator: Authenticator
    sessions: SessionSigner
    clock: Clock
    _tickets: Tickets[str] = field(default_factory=lambda: Tickets[str]("the console", LIFE))

    def ticket(self, principal: Principal) -> tuple[str, datetime]:
        """A ticket, and until when it can be used. For callers that are already known."""
        return self._tickets.issue(principal.token, self.clock.now())

    def with_ticket(self, ticket: str) -> BrowserSession:
        return self._session(self._tickets.redeem(ticket, self.clock.now()))

    def with_token(self, token: str) -> BrowserSession:
        return self._session(self.authenticator.authenticate(f"Bearer {token}").token)

    def signed_in(self, cookies: Mapping[str, str]) -> Principal | None:
        """Whose session it is; None where it is nobody's."""
        word = cookies.get(self.sessions.cookie, "")
        return self.sessions.principal(word, self.clock.now()) if word else None

    def _session(self, token: str) -> BrowserSession:
        return BrowserSession(self.sessions.cookie, *self.sessions.issue(self.clock.now(), token))

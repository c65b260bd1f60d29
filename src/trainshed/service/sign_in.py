"""Use cases of signing in to the console: a ticket or the token becomes a session.

`api/console.py` calls it. Whoever has the token may ask for a ticket; a browser that shows the ticket, once
and within a minute, gets a session. So the token is never in an address.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.accounts.permission import Principal
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
    end_session: Callable[[str], None] = lambda _: None  # by the id of its token, if that is its own alone
    _tickets: Tickets[str] = field(default_factory=lambda: Tickets[str]("the console", LIFE))

    def ticket(self, principal: Principal) -> tuple[str, datetime]:
        """A ticket, and until when it can be used. For callers that are already known."""
        return self._tickets.issue(principal.token, self.clock.now())

    def with_ticket(self, ticket: str) -> BrowserSession:
        return self.session_of(self._tickets.redeem(ticket, self.clock.now()))

    def meant_by(self, ticket: str) -> Principal | None:
        """Whose session the ticket would give, which it does not yet."""
        return self._of(self.session_of(self._tickets.look(ticket, self.clock.now())).word)

    def with_token(self, token: str) -> BrowserSession:
        return self.session_of(self.authenticator.authenticate(f"Bearer {token}").token)

    def signed_in(self, cookies: Mapping[str, str]) -> Principal | None:
        """Whose session it is; None where it is nobody's."""
        return self._of(cookies.get(self.sessions.cookie, ""))

    def _of(self, word: str) -> Principal | None:
        return self.sessions.principal(word, self.clock.now()) if word else None

    def sign_out(self, cookies: Mapping[str, str]) -> BrowserSession:
        """What replaces the session in the browser. Nobody can use it again, also not who kept the cookie."""
        principal = self.signed_in(cookies)
        if principal is not None:
            self.sessions.end(cookies[self.sessions.cookie], self.clock.now())
            self.end_session(principal.token)
        return BrowserSession(self.sessions.cookie, "", timedelta())

    def session_of(self, token: str) -> BrowserSession:
        """A session that counts as long as the token with this id."""
        return BrowserSession(self.sessions.cookie, *self.sessions.issue(self.clock.now(), token))

"""Tokens of accounts: `ts.ID.SECRET`. The ID finds what is kept of it, the SECRET is compared with that.

The request gate asks it for each request, and calls that last ask again when the directory has changed.
Whatever is no token of an account is compared with the server's own token.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime

from trainshed.core.accounts.account_token import MARK, split_token
from trainshed.core.accounts.permission import Principal, PrincipalKind
from trainshed.core.errors import Unauthenticated
from trainshed.core.ports import Authenticator, Clock, DirectoryStore
from trainshed.identity.ended_sessions import EndedSessions

_SLACK = 0.05  # seconds after a token or session has ended, by the clock of timers
_LONGEST = 3600.0  # seconds until a timer looks at the clock again


class _Alarm:
    """Rings at a time of the clock. Long waits are cut: over a week the loop may drift from it."""

    def __init__(self, clock: Clock, at: datetime, ring: Callable[[], None]) -> None:
        self._clock, self._at, self._ring = clock, at, ring
        self._timer = self._begun()

    def cancel(self) -> None:
        self._timer.cancel()

    def _begun(self) -> asyncio.TimerHandle:
        left = (self._at - self._clock.now()).total_seconds()
        return asyncio.get_running_loop().call_later(min(max(left, 0.0), _LONGEST) + _SLACK, self._look)

    def _look(self) -> None:
        if self._clock.now() >= self._at:
            self._ring()
        else:
            self._timer = self._begun()


class AccountTokens:
    """Implements `core.ports.Authenticator` and `PresentRights`."""

    def __init__(
        self,
        owner: Authenticator,
        directories: DirectoryStore,
        clock: Clock,
        note_use: Callable[[str, datetime], None] = lambda _, __: None,
        ended: EndedSessions | None = None,
    ) -> None:
        """`owner` knows the server's own token. `note_use` is told the id of each token that is used.

        `ended` are the sessions of browsers by which nobody asks any more.
        """
        self._ended = EndedSessions() if ended is None else ended
        self._owner, self._directories, self._clock, self._note_use = owner, directories, clock, note_use
        self._directory = directories.directory
        self._known: dict[str, Principal] = {}  # by the ids of their tokens, of that directory

    def authenticate(self, authorization: str | None) -> Principal:
        scheme, _, given = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not given.strip().startswith(MARK):
            return self._owner.authenticate(authorization)
        id, secret = split_token(given.strip())
        token = self._directories.directory.tokens.get(id)
        if token is None or not token.fits(secret):
            raise Unauthenticated(
                "The token is not known to this server: it may be cut off, revoked, of a disabled account or "
                "of another server. Sign in again: trainshed login."
            )
        principal = self.principal(id)
        if principal is None:
            words = (
                "has expired"
                if token.is_over(self._clock.now())
                else "belongs to an account that is disabled"
            )
            raise Unauthenticated(f"The token '{token.title}' {words}. Sign in again: trainshed login.")
        return principal

    def principal(self, id: str) -> Principal | None:
        """Whose token that is, which is used now; None where it does not count any more."""
        known = self._present(id)
        if known is not None:
            self._note_use(id, self._clock.now())
        return known

    def of(self, principal: Principal) -> Principal:
        ends_at = principal.session_ends_at
        if principal.session in self._ended or (ends_at is not None and self._clock.now() >= ends_at):
            raise Unauthenticated("The session that this was begun with has ended. Sign in again.")
        if principal.kind is not PrincipalKind.ACCOUNT:
            return principal
        present = self._present(principal.token)
        if present is None:
            raise Unauthenticated(
                f"The token of {principal.id} that this was begun with has ended. "
                "Sign in again: trainshed login."
            )
        return replace(present, session=principal.session, session_ends_at=ends_at)

    @contextlib.contextmanager
    def listen(self, principal: Principal, listener: Callable[[], None]) -> Generator[None]:
        token = self._directories.directory.tokens.get(principal.token)
        ends = (principal.session_ends_at, token and token.expires_at)
        alarms = [_Alarm(self._clock, at, listener) for at in ends if at is not None]
        sources = (self._directories.listeners, self._ended.listeners)
        for source in sources:
            source.add(listener)
        try:
            yield
        finally:
            for source in sources:
                source.discard(listener)
            for alarm in alarms:
                alarm.cancel()

    def _present(self, id: str) -> Principal | None:
        """A directory never changes: a change makes another one. So its answers count as long as it does."""
        now, directory = self._clock.now(), self._directories.directory
        if directory is not self._directory:
            self._directory, self._known = directory, {}
        known = self._known.get(id)
        if known is None:
            known = directory.principal(id, now)
            if known is not None:
                self._known[id] = known
        if known is None or directory.tokens[id].is_over(now):
            return None
        return known

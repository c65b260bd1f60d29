"""Use cases of `trainshed login` by the browser: who is signed in to the console gives it a token.

`api/provider_sign_in.py` calls it. The command line makes a verifier and shows its digest, the challenge.
A person allows it in the console. A command line on the same machine as the browser gets a word by its
loopback address; one elsewhere asks with a code, which the person compares. Either needs the verifier for its
token. All of it is only in memory, and counts for minutes.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainshed.core.accounts.directory import AccessToken, TokenRequest
from trainshed.core.accounts.permission import Principal
from trainshed.core.errors import Exhausted, Forbidden, Invalid, NotFound, Violation
from trainshed.service.accounts import AccountService
from trainshed.service.tickets import Tickets

LIFE = timedelta(minutes=1)  # of a word
PATIENCE = timedelta(minutes=10)  # for a person who types a code
MOST_WAITING = 200  # logins by code, of all machines
MOST_OF_ADDRESS = 10  # ... and of one
MOST_TITLE = 60  # characters
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # of codes: no vowels, so that they are no words
_CHALLENGE = re.compile(r"[\w-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class LoginRequest:
    challenge: str  # the SHA-256 of the verifier, as PKCE writes it
    title: str  # of the token: the machine's name


@dataclass(frozen=True, slots=True)
class AllowedLogin:
    request: LoginRequest
    token: str  # the id of the token or session of who allowed it


@dataclass(slots=True)
class WaitingLogin:
    """A login by code."""

    code: str
    request: LoginRequest
    address: str  # where it was asked for
    until_at: datetime
    allowed_by: str | None = None


@dataclass(slots=True)
class BrowserLogins:
    accounts: AccountService
    principal: Callable[[str], Principal | None]  # who has a token, by its id
    lifetime: timedelta  # of the tokens
    _words: Tickets[AllowedLogin] = field(default_factory=lambda: Tickets[AllowedLogin]("a login", LIFE))
    _waiting: dict[str, WaitingLogin] = field(default_factory=dict[str, WaitingLogin])

    def allow(self, principal: Principal, request: LoginRequest) -> str:
        """A word for the command line on the machine of the browser."""
        self._check(principal, request)
        return self._words.issue(AllowedLogin(request, principal.token), self.accounts.clock.now())[0]

    def redeem(self, word: str, verifier: str) -> tuple[AccessToken, str]:
        """What is kept of a new token, and its text. The word cannot be used again."""
        allowed = self._words.redeem(word, self.accounts.clock.now())
        return self._token(allowed, verifier)

    def ask(self, request: LoginRequest, address: str) -> WaitingLogin:
        """A code for a person to allow, wherever they have a browser."""
        _check(request)
        self._forget()
        waiting = list(self._waiting.values())
        self._make_room([login for login in waiting if login.address == address], MOST_OF_ADDRESS)
        self._make_room(waiting, MOST_WAITING)
        letters = [secrets.choice(_LETTERS) for _ in range(8)]
        code = f"{''.join(letters[:4])}-{''.join(letters[4:])}"
        login = WaitingLogin(code, request, address, self.accounts.clock.now() + PATIENCE)
        self._waiting[code] = login
        return login

    def waiting(self, code: str) -> WaitingLogin:
        self._forget()
        login = self._waiting.get(code.strip().upper())
        if login is None:
            raise NotFound(f"No login with the code '{code[:20]}' waits: run trainshed login again.")
        return login

    def allow_code(self, principal: Principal, code: str) -> None:
        login = self.waiting(code)
        self._check(principal, login.request)
        login.allowed_by = principal.token

    def refuse_code(self, code: str) -> None:
        del self._waiting[self.waiting(code).code]

    def redeem_code(self, code: str, verifier: str) -> tuple[AccessToken, str] | None:
        """None while nobody has allowed it yet."""
        login = self.waiting(code)
        _compare(verifier, login.request.challenge)
        if login.allowed_by is None:
            return None
        del self._waiting[login.code]
        return self._token(AllowedLogin(login.request, login.allowed_by), verifier)

    def _check(self, principal: Principal, request: LoginRequest) -> None:
        _check(request)
        if not principal.token:
            raise Forbidden("You are signed in with the server's own token: sign in as an account.")
        if principal.limited:
            raise Forbidden("You are signed in with a token of limited rights, which makes no tokens.")

    def _token(self, allowed: AllowedLogin, verifier: str) -> tuple[AccessToken, str]:
        _compare(verifier, allowed.request.challenge)
        principal = self.principal(allowed.token)  # may have ended since
        if principal is None:
            raise Forbidden("Who allowed this login is not signed in any more: run trainshed login again.")
        is_session = self.accounts.directory.token(allowed.token).is_session
        title = f"{allowed.request.title} ({'OIDC' if is_session else 'console'})"
        return self.accounts.make_token(principal, TokenRequest(title=title, lifetime=self.lifetime))

    def _make_room(self, waiting: list[WaitingLogin], most: int) -> None:
        """For one more among these, the oldest first. Refusing it would let anybody keep others out."""
        if len(waiting) < most:
            return
        oldest = next((login for login in waiting if login.allowed_by is None), None)
        if oldest is None:
            raise Exhausted("Too many logins were allowed and not fetched yet: try again in some minutes.")
        self._waiting.pop(oldest.code, None)

    def _forget(self) -> None:
        now = self.accounts.clock.now()
        for code in [code for code, login in self._waiting.items() if login.until_at <= now]:
            del self._waiting[code]


def _check(request: LoginRequest) -> None:
    violations: list[Violation] = []
    if not _CHALLENGE.fullmatch(request.challenge):
        violations.append(Violation("challenge", "must be a SHA-256 in base64url: 43 characters."))
    if not request.title or len(request.title) > MOST_TITLE or not request.title.isprintable():
        violations.append(Violation("title", f"must be 1 to {MOST_TITLE} printable characters."))
    if violations:
        raise Invalid(tuple(violations))


def _compare(verifier: str, challenge: str) -> None:
    digest = hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest()
    # Compared in constant time, so that nobody can find it letter by letter.
    if not hmac.compare_digest(base64.urlsafe_b64encode(digest).decode().rstrip("="), challenge):
        raise Forbidden("The verifier is not the one of this login: run trainshed login again.")

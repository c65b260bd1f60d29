"""Use case of signing in with a provider: a browser goes there, comes back, and gets a session.

`api/provider_sign_in.py` calls it. What belongs to one attempt is derived from a random word that only the
browser has, in a signed cookie: so another browser cannot end it, and nothing is kept for attempts that
nobody ends. An attempt that was ended once is remembered until it would have run out. Codes and tokens of the
provider are kept nowhere.
"""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from trainshed.core.accounts.directory import AccessToken, Account, Directory, digest_of
from trainshed.core.accounts.oidc import IdentityProvider, ProvidedPerson, SignInAttempt
from trainshed.core.accounts.sign_in_rules import signed_in, with_session
from trainshed.core.errors import Forbidden
from trainshed.service.accounts import AccountService
from trainshed.service.sign_in import BrowserSession, SignInService

CALLBACK = "/signin/callback"
FIRST_PAGE = "/console/jobs"
LIFE = timedelta(minutes=10)  # from leaving for the provider to coming back
TITLE = "console (OIDC)"
MOST_PAGE = 1500  # characters of the address of a page
# Pages of the console and nothing else: neither another host (//, \) nor another path (..).
_PAGE = re.compile(r"/console/(?!/)[\w\-./~%?=&:+,@]*", re.ASCII)
_AGAIN = "Begin again at {address}/console."


@dataclass(frozen=True, slots=True)
class CallbackQuery:
    """What the browser brings back from the provider."""

    state: str = ""
    code: str = ""
    issuer: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class CompletedSignIn:
    session: BrowserSession
    page: str  # where the browser goes on
    account: str
    token: str  # the id of the session's token


@dataclass(slots=True)
class ProviderSignIns:
    provider: IdentityProvider
    accounts: AccountService
    sign_ins: SignInService
    secret: bytes  # of the home
    adds_accounts: bool = False
    _ended: dict[str, datetime] = field(default_factory=dict[str, datetime])  # states, until they run out

    async def begin(self, page: str, address: str) -> tuple[str, str]:
        """Where the browser goes, and the cookie that it brings back. `address` is the server's."""
        word = secrets.token_urlsafe(32)
        until = int((self.accounts.clock.now() + LIFE).timestamp())
        place = base64.urlsafe_b64encode(page_of_console(page).encode()).decode()
        signed = f"{word}.{until}.{place}"
        target = await self.provider.address(self._attempt(word, address))
        return target, f"{signed}.{self._derived('cookie', signed)}"

    async def end(self, cookie: str, query: CallbackQuery, address: str) -> CompletedSignIn:
        """A session for who has signed in. Forbidden with the reason, or Unavailable."""
        word, page = self._opened(cookie, query.state, address)
        if query.error or not query.code:
            words = "".join(c for c in query.error if c.isprintable())[:100]
            raise Forbidden(f"The provider has not signed you in ({words or 'it sent no code'}).")
        person = await self.provider.person(self._attempt(word, address), query.code, query.issuer)
        id = secrets.token_hex(5)
        session = self.sign_ins.session_of(id)
        account = await self._admit(person, id, session.lasts)
        return CompletedSignIn(session, page, account.name, id)

    def _opened(self, cookie: str, state: str, address: str) -> tuple[str, str]:
        """The word of the attempt and its page, for the browser that began it, once."""
        now, again = self.accounts.clock.now(), _AGAIN.format(address=address)
        signed, _, signature = cookie.rpartition(".")
        if not cookie or not _same(signature, self._derived("cookie", signed)):
            raise Forbidden(f"This sign-in was not begun in this browser, or at another address. {again}")
        word, until, place = signed.split(".")
        if not _same(state, self._derived("state", word)):
            raise Forbidden(f"This sign-in is not the one that this browser began last. {again}")
        end = datetime.fromtimestamp(int(until), UTC)
        self._ended = {key: value for key, value in self._ended.items() if value > now}
        if now >= end or state in self._ended:
            words = "took too long" if now >= end else "was used already"
            raise Forbidden(f"This sign-in {words}. {again}")
        self._ended[state] = end
        return word, page_of_console(base64.urlsafe_b64decode(place).decode())

    async def _admit(self, person: ProvidedPerson, id: str, lasts: timedelta) -> Account:
        """Writes all that the sign-in changes at once."""
        now, accounts = self.accounts.clock.now(), list[Account]()
        token = AccessToken(
            id=id,
            account="",
            title=TITLE,
            digest=digest_of(secrets.token_urlsafe(32)),  # nobody gets what fits it
            created_at=now,
            expires_at=now + lasts,
            is_session=True,
        )

        def change(directory: Directory) -> Directory:
            directory, account = signed_in(directory, person, now, adds_accounts=self.adds_accounts)
            accounts.append(account)
            return with_session(directory, replace(token, account=account.name), now)

        await self.accounts.make_way(change(self.accounts.directory), accounts[-1].name)
        self.accounts.store.change(change)
        return accounts[-1]

    def _attempt(self, word: str, address: str) -> SignInAttempt:
        return SignInAttempt(
            state=self._derived("state", word),
            nonce=self._derived("nonce", word),
            verifier=self._derived("verifier", word),
            redirect_uri=f"{address}{CALLBACK}",
        )

    def _derived(self, purpose: str, text: str) -> str:
        key = hashlib.blake2b(self.secret[:64], person=b"sign-in").digest()
        digest = hmac.digest(key, f"{purpose}\0{text}".encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def page_of_console(page: str) -> str:
    """The page, where it is one of the console; else the first one. So nobody is led elsewhere."""
    path = unquote(page.partition("?")[0])  # a browser takes %2e%2e for .. too
    leads_away = any(mark in text for text in (page, path) for mark in ("..", "//", "\\"))
    return page if len(page) <= MOST_PAGE and _PAGE.fullmatch(page) and not leads_away else FIRST_PAGE


def _same(given: str, right: str) -> bool:
    # Compared in constant time, so that nobody can find it letter by letter.
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())

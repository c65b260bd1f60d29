"""`trainshed login` by the browser: a token for who has the verifier, after somebody allowed it."""

import base64
import hashlib
from datetime import timedelta
from pathlib import Path

import pytest

from tests.builders import T0
from tests.id_tokens import StepClock
from trainshed.core.accounts.account_token import split_token
from trainshed.core.accounts.directory import Account, AccountChange, TokenRequest
from trainshed.core.accounts.permission import OWNER, Principal
from trainshed.core.accounts.role import Role
from trainshed.core.errors import Exhausted, Forbidden, Invalid, NotFound
from trainshed.identity.account_tokens import AccountTokens
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.directory_file import DirectoryFile
from trainshed.identity.open import NoAuthentication
from trainshed.service.accounts import AccountService
from trainshed.service.browser_logins import (
    LIFE,
    MOST_OF_ADDRESS,
    MOST_WAITING,
    PATIENCE,
    BrowserLogins,
    LoginRequest,
)

VERIFIER = "v" * 64
SECOND = timedelta(seconds=1)


def challenge(verifier: str = VERIFIER) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


REQUEST = LoginRequest(challenge(), "laptop")


class House:
    def __init__(self, home: Path) -> None:
        self.clock = StepClock()
        store = DirectoryFile(home / "accounts.json")
        self.accounts = AccountService(store, AuditFiles(home / "audit"), self.clock)
        self.people = AccountTokens(NoAuthentication(), store, self.clock)
        store.change(lambda directory: directory.with_account(Account(name="ann", created_at=T0)))
        self.logins = BrowserLogins(self.accounts, self.people.principal, timedelta(days=30))
        self.ann = self.signed_in()

    def signed_in(self, role: Role | None = None) -> Principal:
        token, _ = self.accounts.make_token(OWNER, TokenRequest(account="ann", role=role))
        principal = self.people.principal(token.id)
        assert principal is not None
        return principal


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_who_brings_the_word_and_the_verifier_gets_a_token_once(house: House):
    word = house.logins.allow(house.ann, REQUEST)
    token, text = house.logins.redeem(word, VERIFIER)
    assert (token.account, token.title, token.expires_at) == (
        "ann",
        "laptop (console)",
        T0 + timedelta(days=30),
    )
    assert house.accounts.directory.token(token.id).fits(split_token(text)[1])
    with pytest.raises(Forbidden, match="was used"):
        house.logins.redeem(word, VERIFIER)


@pytest.mark.parametrize("verifier", ["", "w" * 64, challenge(), "\udcff"])
def test_the_word_alone_gives_nothing(house: House, verifier: str):
    word = house.logins.allow(house.ann, REQUEST)
    with pytest.raises(Forbidden, match="verifier"):
        house.logins.redeem(word, verifier)
    with pytest.raises(Forbidden, match="was used"):
        house.logins.redeem(word, VERIFIER)


def test_a_word_counts_for_a_minute(house: House):
    word = house.logins.allow(house.ann, REQUEST)
    house.clock.time += LIFE + SECOND
    with pytest.raises(Forbidden, match="too old"):
        house.logins.redeem(word, VERIFIER)


def test_who_is_not_signed_in_any_more_has_allowed_nothing(house: House):
    word = house.logins.allow(house.ann, REQUEST)
    house.accounts.update("ann", AccountChange(is_disabled=True))
    with pytest.raises(Forbidden, match="not signed in any more"):
        house.logins.redeem(word, VERIFIER)


def test_the_owner_and_limited_tokens_allow_nothing(house: House):
    with pytest.raises(Forbidden, match="sign in as an account"):
        house.logins.allow(OWNER, REQUEST)
    with pytest.raises(Forbidden, match="limited"):
        house.logins.allow(house.signed_in(Role.VIEWER), REQUEST)


def test_every_violation_of_a_request_is_told(house: House):
    for wrong in (LoginRequest("short", ""), LoginRequest(f"{challenge()}=", "a\x1bb")):
        with pytest.raises(Invalid) as caught:
            house.logins.allow(house.ann, wrong)
        assert [violation.field for violation in caught.value.violations] == ["challenge", "title"]


def test_a_login_by_code_waits_until_somebody_allows_it(house: House):
    login = house.logins.ask(REQUEST, "10.0.0.7")
    assert house.logins.redeem_code(login.code, VERIFIER) is None
    assert house.logins.waiting(f" {login.code.lower()} ").address == "10.0.0.7"
    house.logins.allow_code(house.ann, login.code)
    with pytest.raises(Forbidden, match="verifier"):
        house.logins.redeem_code(login.code, "w" * 64)
    taken = house.logins.redeem_code(login.code, VERIFIER)
    assert taken is not None and taken[0].account == "ann"
    with pytest.raises(NotFound, match="waits"):
        house.logins.redeem_code(login.code, VERIFIER)


def test_a_refused_or_old_login_by_code_is_gone(house: House):
    login = house.logins.ask(REQUEST, "10.0.0.7")
    house.logins.refuse_code(login.code)
    with pytest.raises(NotFound):
        house.logins.redeem_code(login.code, VERIFIER)
    login = house.logins.ask(REQUEST, "10.0.0.7")
    house.clock.time += PATIENCE
    with pytest.raises(NotFound):
        house.logins.allow_code(house.ann, login.code)


def test_the_oldest_login_that_nobody_allowed_makes_room_for_the_next_of_its_address(house: House):
    elsewhere = house.logins.ask(REQUEST, "10.0.0.8")
    asked = [house.logins.ask(REQUEST, "10.0.0.7") for _ in range(MOST_OF_ADDRESS)]
    house.logins.allow_code(house.ann, asked[0].code)
    newest = house.logins.ask(REQUEST, "10.0.0.7")
    with pytest.raises(NotFound):
        house.logins.waiting(asked[1].code)
    for login in (elsewhere, asked[0], *asked[2:], newest):
        assert house.logins.waiting(login.code) is login
    assert house.logins.redeem_code(asked[0].code, VERIFIER) is not None


def test_so_many_logins_wait_and_no_more(house: House):
    asked = [house.logins.ask(REQUEST, f"10.0.0.{n}") for n in range(MOST_WAITING)]
    house.logins.ask(REQUEST, "10.0.1.1")
    with pytest.raises(NotFound):
        house.logins.waiting(asked[0].code)
    for login in asked[1 : MOST_OF_ADDRESS + 1]:
        login.address = "10.0.1.2"
        house.logins.allow_code(house.ann, login.code)
    with pytest.raises(Exhausted, match="not fetched"):
        house.logins.ask(REQUEST, "10.0.1.2")

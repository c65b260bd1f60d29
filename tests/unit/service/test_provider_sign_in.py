"""Signing in with a provider: a session for the browser that began, once, and for nobody else."""

import shutil
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.builders import T0
from tests.id_tokens import StepClock
from trainshed.core.accounts.directory import Account, AccountChange, ProviderIdentity, TokenRequest
from trainshed.core.accounts.oidc import ProvidedPerson, SignInAttempt
from trainshed.core.errors import Forbidden, Unavailable
from trainshed.identity.account_tokens import AccountTokens
from trainshed.identity.audit_files import AuditFiles
from trainshed.identity.directory_file import DirectoryFile
from trainshed.identity.open import NoAuthentication
from trainshed.identity.session import SignedSessions
from trainshed.service.accounts import AccountService
from trainshed.service.provider_sign_in import (
    LIFE,
    CallbackQuery,
    CompletedSignIn,
    ProviderSignIns,
    page_of_console,
)
from trainshed.service.sign_in import SignInService

HERE = "https://gpu.example"
ANN = ProvidedPerson(identity=ProviderIdentity("https://id.example.org", "ann-1"), name="ann")
SECOND = timedelta(seconds=1)


@dataclass
class WordlessProvider:
    """Signs in whom the test says, for each attempt and code once."""

    person_there: ProvidedPerson = ANN
    title: str = "Team"
    issuer: str = "https://id.example.org"
    attempts: list[SignInAttempt] = field(default_factory=list[SignInAttempt])
    codes: set[str] = field(default_factory=set[str])

    async def address(self, attempt: SignInAttempt) -> str:
        self.attempts.append(attempt)
        return f"{self.issuer}/auth?state={attempt.state}"

    async def person(self, attempt: SignInAttempt, code: str, issuer: str) -> ProvidedPerson:
        assert attempt in self.attempts, "PKCE and nonce are those of the attempt that began"
        if code in self.codes:
            raise Forbidden("The provider refuses the code.")
        self.codes.add(code)
        return self.person_there


class House:
    def __init__(self, home: Path) -> None:
        self.clock, self.provider = StepClock(), WordlessProvider()
        store = DirectoryFile(home / "accounts.json")
        store.change(lambda directory: directory.with_account(Account(name="ann", created_at=T0)))
        self.forgotten: list[str] = []

        async def forget(name: str) -> None:
            self.forgotten.append(name)

        self.accounts = AccountService(store, AuditFiles(home / "audit"), self.clock, forget=forget)
        people = AccountTokens(NoAuthentication(), store, self.clock)
        self.sessions = SignedSessions(b"secret" * 8, lambda: "token", people.principal)
        self.browser = SignInService(NoAuthentication(), self.sessions, self.clock, self.accounts.end_session)
        self.sign_ins = ProviderSignIns(self.provider, self.accounts, self.browser, b"secret" * 8)

    async def begin(self, page: str = "/console/queue") -> tuple[str, str]:
        """The cookie, and the state that the provider gives back."""
        address, cookie = await self.sign_ins.begin(page, HERE)
        return cookie, address.rpartition("=")[2]

    async def end(self, cookie: str, state: str, code: str = "c1", **more: str) -> CompletedSignIn:
        return await self.sign_ins.end(cookie, CallbackQuery(state, code, **more), HERE)

    def who(self, signed_in: CompletedSignIn) -> str:
        principal = self.sessions.principal(signed_in.session.word, self.clock.now())
        return principal.id if principal else ""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_who_comes_back_has_a_session_of_the_account_and_the_page_they_wanted(house: House):
    signed_in = await house.end(*await house.begin("/console/queue?a=b"))
    assert (house.who(signed_in), signed_in.account, signed_in.page) == ("ann", "ann", "/console/queue?a=b")
    [token] = house.accounts.directory.tokens_of("ann")
    assert token.is_session and token.title == "console (OIDC)" and token.expires_at == T0 + timedelta(days=7)


async def test_a_new_account_gets_nothing_of_who_had_its_name_before(house: House):
    house.sign_ins.adds_accounts = True
    for code, name in (("c1", "ann"), ("c2", "bob"), ("c3", "bob")):
        house.provider.person_there = replace(ANN, identity=ProviderIdentity("i", name), name=name)
        await house.end(*await house.begin(), code)
    assert house.forgotten == ["bob"]


async def test_what_was_kept_for_a_name_is_gone_before_it_has_a_new_account(house: House, tmp_path: Path):
    """Wherever a server dies: here it cannot write the accounts."""
    house.sign_ins.adds_accounts = True
    house.provider.person_there = replace(ANN, identity=ProviderIdentity("i", "bob"), name="bob")
    begun = await house.begin()
    shutil.rmtree(tmp_path)
    with pytest.raises(Unavailable):
        await house.end(*begun)
    assert house.forgotten == ["bob"] and "bob" not in house.accounts.directory.accounts


async def test_the_address_to_come_back_to_is_the_servers_own(house: House):
    await house.begin()
    [attempt] = house.provider.attempts
    assert attempt.redirect_uri == f"{HERE}/signin/callback"
    assert len({attempt.state, attempt.nonce, attempt.verifier}) == 3 and len(attempt.verifier) == 43


async def test_a_state_counts_once(house: House):
    cookie, state = await house.begin()
    await house.end(cookie, state)
    for code in ("c1", "c2"):
        with pytest.raises(Forbidden, match="was used already"):
            await house.end(cookie, state, code)
    assert house.provider.codes == {"c1"}


async def test_a_code_counts_once_also_for_another_attempt(house: House):
    await house.end(*await house.begin())
    with pytest.raises(Forbidden, match="refuses the code"):
        await house.end(*await house.begin())


async def test_the_state_of_another_browser_signs_nobody_in(house: House):
    _, of_eve = await house.begin()
    of_ann, _ = await house.begin()
    for cookie, reason in (
        (of_ann, "not the one that this browser began"),
        ("", "not begun in this browser"),
    ):
        with pytest.raises(Forbidden, match=reason):
            await house.end(cookie, of_eve)
    assert not house.provider.codes and not house.accounts.directory.tokens


async def test_a_changed_or_invented_cookie_signs_nobody_in(house: House):
    cookie, state = await house.begin()
    word, until, page, signature = cookie.split(".")
    for wrong in (
        f"{word}.{int(until) + 600}.{page}.{signature}",
        f"{word}.{until}.Ly9ldmls.{signature}",
        f"{word}.{until}.{page}.",
        f"{word}x.{until}.{page}.{signature}",
        "a.b.c.d",
        "....",
        "\udcff",
    ):
        with pytest.raises(Forbidden, match="not begun in this browser"):
            await house.end(wrong, state)


async def test_an_attempt_ends_after_ten_minutes(house: House):
    cookie, state = await house.begin()
    house.clock.time += LIFE + SECOND
    with pytest.raises(Forbidden, match="took too long"):
        await house.end(cookie, state)


async def test_a_server_that_was_started_again_knows_the_attempt(house: House):
    cookie, state = await house.begin()
    again = ProviderSignIns(house.provider, house.accounts, house.browser, b"secret" * 8)
    assert (await again.end(cookie, CallbackQuery(state, "c1"), HERE)).account == "ann"
    other = ProviderSignIns(house.provider, house.accounts, house.browser, b"another" * 8)
    with pytest.raises(Forbidden, match="not begun in this browser"):
        await other.end(cookie, CallbackQuery(state, "c2"), HERE)


async def test_what_the_provider_refused_is_told_without_control_characters(house: House):
    cookie, state = await house.begin()
    with pytest.raises(Forbidden, match=r"not signed you in \(access_denied\)"):
        await house.end(cookie, state, "", error="access\x1b_denied")
    with pytest.raises(Forbidden, match="it sent no code"):
        await house.end(*await house.begin(), "")


async def test_signing_out_ends_the_session_for_good(house: House):
    signed_in = await house.end(*await house.begin())
    cookies = {signed_in.session.cookie: signed_in.session.word}
    assert house.browser.sign_out(cookies).lasts == timedelta()
    assert house.who(signed_in) == "" and not house.accounts.directory.tokens


async def test_who_had_an_account_before_it_was_given_away_keeps_neither_session_nor_token(house: House):
    before = await house.end(*await house.begin())
    principal = house.sessions.principal(before.session.word, house.clock.now())
    assert principal is not None
    house.accounts.make_token(principal, TokenRequest(title="laptop"))
    await house.accounts.unlink("ann")
    assert house.who(before) == "" and not house.accounts.directory.tokens
    assert house.who(await house.end(*await house.begin(), "c2")) == "ann"


async def test_a_session_ends_with_its_account(house: House):
    signed_in = await house.end(*await house.begin())
    house.accounts.update("ann", AccountChange(is_disabled=True))
    assert house.who(signed_in) == ""
    with pytest.raises(Forbidden, match="is disabled"):
        await house.end(*await house.begin(), "c2")


@pytest.mark.parametrize(
    "page",
    [
        "https://evil.example/console/",
        "//evil.example/console/",
        "/\\evil.example",
        "/console//evil.example",
        "/console/\\evil.example",
        "/console/../signin",
        "/console/%2e%2e/storage/v1/b/x/o/y?alt=media",
        "/console/%2E./signin",
        "/console/.%2e/signin",
        "/console/%2f/evil.example",
        "/console/%5cevil.example",
        "/console/%0d%0aset-cookie: a=b",
        "/console/\r\nset-cookie: a=b",
        "javascript:alert(1)",
        "/v1/tokens",
        "/consolex",
        "",
        "/console/" + "a" * 2000,
    ],
)
async def test_nobody_is_led_away_from_the_console(house: House, page: str):
    assert page_of_console(page) == "/console/jobs"
    assert (await house.end(*await house.begin(page))).page == "/console/jobs"


def test_pages_of_the_console_are_kept():
    for page in (
        "/console/jobs/p/us-central1/7/logs?task=workerpool0-0",
        "/console/login?code=BCDF-GHJK",
        "/console/buckets/my%20pictures?path=a%2F%2Fb",
    ):
        assert page_of_console(page) == page

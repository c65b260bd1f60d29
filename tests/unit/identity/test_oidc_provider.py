"""The provider as the server asks it: what is sent, what is believed, and what is said where it fails."""

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.id_tokens import (
    CLIENT,
    ISSUER,
    NONCE,
    MemoryProvider,
    StepClock,
    claims,
    public_key,
    signed,
)
from trainshed.core.accounts.directory import ProviderIdentity
from trainshed.core.accounts.oidc import ProvidedPerson, SignInAttempt
from trainshed.core.errors import Exhausted, Forbidden, Unavailable
from trainshed.identity.oidc.provider import (
    FAILED,
    FRESH,
    KEYS_AGAIN,
    MOST_AT_ONCE,
    OidcProvider,
    ProviderSettings,
)
from trainshed.outgoing_request import OutgoingAnswer, OutgoingRequest

ATTEMPT = SignInAttempt(
    state="the-state",
    nonce=NONCE,
    verifier="dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    redirect_uri="https://gpu.example/signin/callback",
)
SETTINGS = ProviderSettings(issuer=ISSUER, client_id=CLIENT, title="Team", scopes=("email", "profile"))


class House:
    """The server's end, the provider's end, and the clock of both."""

    def __init__(self, **changes: Any) -> None:
        self.clock, self.there = StepClock(), MemoryProvider(token=signed(claims()))
        self.provider = OidcProvider(replace(SETTINGS, **changes), self.clock, self.there.ask)

    async def person(self, issuer: str = "") -> ProvidedPerson:
        return await self.provider.person(ATTEMPT, "the-code", issuer)


async def test_the_browser_is_sent_with_state_nonce_and_a_challenge_but_not_with_the_verifier():
    house = House()
    address = await house.provider.address(ATTEMPT)
    assert address.startswith(f"{ISSUER}/auth?") and ATTEMPT.verifier not in address
    query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert query.pop("code_challenge") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert query == {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": ATTEMPT.redirect_uri,
        "scope": "openid email profile",
        "state": "the-state",
        "nonce": NONCE,
        "code_challenge_method": "S256",
    }


async def test_who_signed_in_is_named_by_the_verified_address():
    house = House()
    person = await house.person(ISSUER)
    assert person == ProvidedPerson(identity=ProviderIdentity(ISSUER, "ann-1"), name="ann@example.org")
    assert house.there.form() == {
        "grant_type": "authorization_code",
        "code": "the-code",
        "redirect_uri": ATTEMPT.redirect_uri,
        "code_verifier": ATTEMPT.verifier,
        "client_id": CLIENT,
    }


@pytest.mark.parametrize("methods", [None, ["client_secret_basic"], ["client_secret_post"]])
async def test_the_secret_goes_as_the_provider_takes_it(tmp_path: Path, methods: list[str] | None):
    file = tmp_path / "secret"
    file.write_text("s/e cret\n")
    house = House(secret_file=file)
    if methods is not None:
        house.there.metadata["token_endpoint_auth_methods_supported"] = methods
    await house.person()
    [request] = [row for row in house.there.asked if row.url == f"{ISSUER}/token"]
    if methods == ["client_secret_post"]:
        assert house.there.form()["client_secret"] == "s/e cret" and "Authorization" not in request.headers
    else:
        pair = base64.b64decode(request.headers["Authorization"].removeprefix("Basic "))
        assert pair == f"{CLIENT}:s%2Fe%20cret".encode() and "client_secret" not in house.there.form()


async def test_a_secret_that_cannot_be_read_is_named():
    with pytest.raises(Unavailable, match=r"--oidc-client-secret-file /gone/secret cannot be read: No such"):
        await House(secret_file=Path("/gone/secret")).person()


async def test_claims_that_the_token_lacks_are_asked_for_and_must_be_of_the_same_person():
    house = House()
    house.there.token = signed(claims(email=None, email_verified=None))
    house.there.user_info = (
        200,
        {"sub": "ann-1", "email": "Ann@Example.org", "email_verified": True, "iss": "x"},
    )
    assert await house.person() == ProvidedPerson(
        identity=ProviderIdentity(ISSUER, "ann-1"), name="ann@example.org"
    )
    house.there.user_info = 200, {"sub": "eve-1", "email": "ann@example.org", "email_verified": True}
    with pytest.raises(Forbidden, match="somebody else"):
        await house.person()
    house.there.user_info = 401, {}
    with pytest.raises(Unavailable, match="does not say who signed in"):
        await house.person()


@pytest.mark.parametrize("value", [False, None, "false", 1, 1.5, "yes"])
async def test_an_address_that_is_not_verified_names_nobody(value: object):
    house = House()
    house.there.token = signed(claims(email_verified=value))
    house.there.user_info = 200, {"sub": "ann-1"}
    with pytest.raises(Forbidden, match=r"has not verified that ann@example.org is yours"):
        await house.person()


async def test_another_claim_may_name_the_account():
    house = House(name_claim="preferred_username")
    house.there.token = signed(claims(preferred_username="Ann", email_verified=False))
    assert (await house.person()).name == "ann"
    for wrong in (None, "", 7, ["ann"]):
        house.there.token = signed(claims(preferred_username=wrong))
        house.there.user_info = 200, {"sub": "ann-1"}
        with pytest.raises(Forbidden, match=r"no claim 'preferred_username'.*--oidc-name-claim"):
            await house.person()


@pytest.mark.parametrize(
    ("value", "groups"),
    [(["/vision", "speech", 7], {"vision", "speech"}), ("vision", {"vision"}), ([], set()), (7, set())],
)
async def test_groups_are_those_of_the_claim(value: object, groups: set[str]):
    house = House(groups_claim="groups")
    house.there.token = signed(claims(groups=value))
    assert (await house.person()).groups == groups


async def test_an_answer_of_another_provider_is_refused():
    house = House()
    with pytest.raises(Forbidden, match="another provider"):
        await house.person("https://eve.example")
    house.there.metadata["authorization_response_iss_parameter_supported"] = True
    house.clock.time += FRESH
    with pytest.raises(Forbidden, match="another provider"):
        await house.person("")
    assert house.there.count("/token") == 0


async def test_a_code_that_the_provider_refuses_signs_nobody_in():
    house = House()
    house.there.token_answer = 400, {"error": "invalid_grant", "error_description": "code was used\x1b[2J"}
    with pytest.raises(Forbidden, match=r"refuses the code of this sign-in \(code was used\[2J\)"):
        await house.person()


async def test_a_client_that_the_provider_does_not_know_names_the_settings():
    house = House()
    house.there.token_answer = 401, {"error": "invalid_client"}
    with pytest.raises(Unavailable, match=r"invalid_client.*--oidc-client-id trainshed and the content of"):
        await house.person()


async def test_new_keys_are_fetched_for_a_token_of_an_unknown_key_but_not_all_the_time():
    house = House()
    await house.person()
    house.there.token, house.there.keys = signed(claims(), name="new"), [public_key("RS256", "new")]
    with pytest.raises(Forbidden, match="none of the provider's keys"):
        await house.person()
    assert house.there.count("/keys") == 1
    house.clock.time += KEYS_AGAIN
    assert (await house.person()).name == "ann@example.org"
    assert house.there.count("/keys") == 2


async def test_a_key_that_the_provider_gave_up_counts_no_more_after_an_hour():
    house = House()
    await house.person()
    house.there.keys = []
    house.clock.time += FRESH
    house.there.token = signed(claims(exp=int(house.clock.time.timestamp()) + 60))
    with pytest.raises(Forbidden, match="none of the provider's keys"):
        await house.person()


async def test_a_provider_that_is_away_is_not_asked_again_at_once():
    house = House()
    house.there.is_away = True
    for _ in range(3):
        with pytest.raises(Unavailable, match=f"--oidc-issuer {ISSUER}.*Connection refused. Tokens count"):
            await house.provider.address(ATTEMPT)
    assert len(house.there.asked) == 1
    house.there.is_away = False
    house.clock.time += FAILED
    assert await house.provider.address(ATTEMPT)


async def test_only_a_few_people_at_once_keep_the_server_asking():
    house, go_on = House(), asyncio.Event()

    async def slow(request: OutgoingRequest) -> OutgoingAnswer:
        await go_on.wait()
        return await house.there.ask(request)

    house.provider = OidcProvider(SETTINGS, house.clock, slow)
    waiting = [asyncio.create_task(house.person()) for _ in range(MOST_AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(Exhausted, match="try again"):
        await house.person()
    go_on.set()
    assert len(await asyncio.gather(*waiting)) == MOST_AT_ONCE
    assert house.there.count("/keys") == 1 and await house.person()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"issuer": "https://eve.example"}, "calls itself 'https://eve.example': give that exactly"),
        ({"issuer": f"{ISSUER}/"}, "calls itself"),
        ({"issuer": None}, "calls itself"),
        ({"authorization_endpoint": "http://id.example.org/auth"}, "no authorization_endpoint with https"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "no authorization_endpoint with https"),
        ({"authorization_endpoint": "https://x/\r\nset-cookie: a=b"}, "no authorization_endpoint"),
        ({"authorization_endpoint": None}, "no authorization_endpoint"),
    ],
)
async def test_a_provider_that_describes_itself_wrongly_is_not_used(change: dict[str, Any], words: str):
    house = House()
    house.there.metadata |= change
    with pytest.raises(Unavailable, match=words):
        await house.provider.address(ATTEMPT)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"[" * 200_000, b"\xff"])
async def test_an_answer_that_is_no_json_object_says_so(body: bytes):
    house = House()
    house.there.token_answer = 200, body
    with pytest.raises(Unavailable, match="/token answers with something else than JSON"):
        await house.person()


async def test_a_provider_without_a_token_in_its_answer_signs_nobody_in():
    house = House()
    for answer in ({}, {"id_token": 7}, {"id_token": None}):
        house.there.token_answer = 200, answer
        with pytest.raises(Forbidden, match="no signed JSON web token"):
            await house.person()


def test_times_fit_each_other():
    assert KEYS_AGAIN < FRESH and timedelta() < FAILED < KEYS_AGAIN

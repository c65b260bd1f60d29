"""ID tokens: only those that the provider signed, for this server, for this sign-in, and now, are good."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.builders import T0
from tests.id_tokens import CLIENT, ISSUER, MINUTE, NONCE, claims, private_key, public_key, signed
from trainshed.core.errors import Forbidden
from trainshed.identity.oidc.id_token import (
    ALGORITHMS,
    MOST_TOKEN,
    ExpectedToken,
    UnknownKey,
    verified_claims,
)

NOW = int(T0.timestamp())
EXPECTED = ExpectedToken(issuer=ISSUER, client_id=CLIENT, nonce=NONCE, now=T0)


def verified(token: str, *keys: dict[str, Any]) -> dict[str, Any]:
    return verified_claims(token, keys or [public_key("RS256")], EXPECTED)


def packed(part: object) -> str:
    content = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_that_the_provider_signed_for_us_is_good(algorithm: str):
    assert verified(signed(claims(), algorithm), public_key(algorithm))["sub"] == "ann-1"


def test_the_key_is_found_among_many_by_its_id_or_tried_where_the_token_names_none():
    keys = [public_key("RS256", "other"), public_key("ES256"), {"kty": "oct", "k": "AA"}, public_key("RS256")]
    assert verified(signed(claims()), *keys)
    assert verified(signed(claims(), kid=None), *keys)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://id.example.org/realms/other"}, "issuer"),
        ({"iss": f"{ISSUER}/"}, "issuer"),
        ({"iss": None}, "iss"),
        ({"aud": "another-client"}, "[Aa]udience"),
        ({"aud": [f"{CLIENT}2"]}, "[Aa]udience"),
        ({"aud": []}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": [CLIENT, "another"]}, "azp"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "azp"),
        ({"azp": "another"}, "azp"),
        ({"exp": NOW - 61}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "tomorrow"}, "no time"),
        ({"exp": True}, "no time"),
        ({"exp": float("nan")}, "expired"),
        ({"iat": NOW + 61}, "time to come"),
        ({"iat": None}, "iat"),
        ({"iat": float("nan")}, "time to come"),
        ({"nbf": NOW + 61}, "time to come"),
        ({"nonce": None}, "another sign-in"),
        ({"nonce": "of-another-sign-in"}, "another sign-in"),
        ({"nonce": ["x"]}, "another sign-in"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "names nobody"),
        ({"sub": "x" * 256}, "names nobody"),
    ],
)
def test_a_token_with_a_wrong_claim_is_refused_with_the_reason(changes: dict[str, Any], reason: str):
    with pytest.raises(Forbidden, match=f"token of the provider is refused: .*{reason}"):
        verified(signed(claims(**changes)))


def test_clocks_may_differ_by_a_minute():
    assert verified(signed(claims(exp=NOW - 59, iat=NOW + 59)))


def test_a_token_for_several_is_good_where_we_are_the_authorized_party():
    assert verified(signed(claims(aud=[CLIENT, "another"], azp=CLIENT)))


@pytest.mark.parametrize("name", ["none", "None", "NONE", "HS256", "RS384", "RS1", "", None])
def test_a_token_of_another_algorithm_is_refused_before_any_key_is_tried(name: str | None):
    head = {"alg": name, "kid": "RS256"} if name is not None else {"kid": "RS256"}
    token = f"{packed(head)}.{packed(claims())}."
    with pytest.raises(Forbidden, match="algorithm"):
        verified(token)


def test_a_token_without_a_signature_is_refused():
    head, content, _ = signed(claims()).split(".")
    for token in (f"{head}.{content}.", f"{head}.{content}", f"{head}.{content}.AAAA", head, "", ".", ".."):
        with pytest.raises(Forbidden, match="refused"):
            verified(token)


def test_a_token_that_is_signed_with_the_public_key_as_a_secret_is_refused():
    key = private_key("RS256").public_key()
    for secret in (
        key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(public_key("RS256")).encode(),
    ):
        text = f"{packed({'alg': 'HS256', 'kid': 'RS256'})}.{packed(claims())}"
        token = f"{text}.{packed(hmac.digest(secret, text.encode(), hashlib.sha256))}"
        with pytest.raises(Forbidden, match="'HS256'"):
            verified(token)


def test_a_key_in_the_token_itself_counts_for_nothing():
    own = public_key("RS256", "of-eve")
    with pytest.raises(Forbidden, match=r"[Ss]ignature"):
        verified(signed(claims(), name="of-eve", kid="RS256", jwk=own, jku="https://eve.example/keys"))


def test_changed_claims_are_refused():
    head, _, signature = signed(claims()).split(".")
    with pytest.raises(Forbidden, match=r"[Ss]ignature"):
        verified(f"{head}.{packed(claims(sub='eve-1'))}.{signature}")


def test_a_key_serves_its_own_algorithm_and_use_only():
    token = signed(claims())
    for key in (
        public_key("RS256", use="enc"),
        public_key("RS256", alg="PS256"),
        public_key("RS256", kid="another"),
        {**public_key("RS256"), "kty": "oct", "k": "c2VjcmV0"},
        {**public_key("RS256"), "d": "AQAB"},
    ):
        with pytest.raises(UnknownKey):
            verified(token, key)
    with pytest.raises(Forbidden, match="refused"):
        verified(token, {**public_key("ES256"), "kid": "RS256", "alg": "RS256"})


def test_a_key_that_is_broken_or_too_short_is_refused():
    for change in ({"n": "AQAB"}, {"n": 7}, {"n": None}, {"e": ""}):
        with pytest.raises(Forbidden, match="refused"):
            verified(signed(claims()), {**public_key("RS256"), **change})


def test_a_token_of_an_unknown_key_asks_for_new_keys():
    with pytest.raises(UnknownKey):
        verified(signed(claims(), name="new"))


def test_a_token_that_is_too_long_or_too_deep_is_refused():
    for token in ("a" * (MOST_TOKEN + 1), f"{packed(b'[' * 40_000)}.e30.AA", f"{packed([1])}.e30.AA"):
        with pytest.raises(Forbidden, match="refused"):
            verified(token)


def test_a_good_token_is_refused_later():
    token = signed(claims())
    late = ExpectedToken(issuer=ISSUER, client_id=CLIENT, nonce=NONCE, now=T0 + 7 * MINUTE)
    with pytest.raises(Forbidden, match="expired"):
        verified_claims(token, [public_key("RS256")], late)

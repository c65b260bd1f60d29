"""Whether a provider's ID token is good: signed by the provider, for this server, for this sign-in, now.

`provider.py` calls it. PyJWT verifies signatures, audience and issuer. The times, the nonce and the
authorized party are compared here. Whatever is not good raises Forbidden with the reason. It never looks at
claims before the signature is verified.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any

import jwt

from trainshed.core.errors import Forbidden

# Signatures of key pairs only. "none" is no signature; HS256 would take a public key as its secret.
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
SKEW = timedelta(seconds=60)  # by which two clocks may differ
MOST_KEYS = 20  # that are tried for a token which names none
MOST_TOKEN = 64 << 10  # characters
_NEEDED = ["iss", "sub", "aud", "exp", "iat"]
_MOST_SUBJECT = 255  # characters, as the standard says


class UnknownKey(Exception):
    """None of the keys is the one that the token names: the provider may have new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    issuer: str
    client_id: str
    nonce: str
    now: datetime


def verified_claims(token: str, keys: Sequence[Mapping[str, Any]], expected: ExpectedToken) -> dict[str, Any]:
    """The claims of a good token. Raises UnknownKey, or Forbidden with what is wrong."""
    header = _header(token)
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise _refused(f"its algorithm is {str(algorithm)[:20]!r}, and not one of {', '.join(ALGORITHMS)}")
    candidates = [key for key in keys if _may_have_signed(key, header)][:MOST_KEYS]
    if not candidates:
        raise UnknownKey
    error: Exception | None = None
    for key in candidates:
        try:
            claims = _decoded(token, key, algorithm, expected)
        except (jwt.PyJWTError, RecursionError) as wrong:
            error = wrong
        else:
            _check(claims, expected)
            return claims
    raise _refused(str(error)) from error


def _decoded(token: str, key: Mapping[str, Any], algorithm: str, expected: ExpectedToken) -> dict[str, Any]:
    decoder = jwt.PyJWT(options={"enforce_minimum_key_length": True})
    return decoder.decode(
        token,
        jwt.PyJWK(dict(key), algorithm),  # fails where the key is of another kind than the algorithm
        algorithms=[algorithm],
        audience=expected.client_id,
        issuer=expected.issuer,
        # The times are compared with the clock of the server, below.
        options={"require": _NEEDED, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )


def _header(token: str) -> dict[str, Any]:
    if len(token) > MOST_TOKEN:
        raise _refused(f"it has more than {MOST_TOKEN} characters")
    try:
        return jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError) as error:
        raise _refused("it is no signed JSON web token") from error


def _may_have_signed(key: Mapping[str, Any], header: Mapping[str, Any]) -> bool:
    return (
        ("kid" not in header or key.get("kid") == header["kid"])
        and key.get("use", "sig") == "sig"
        and key.get("alg", header["alg"]) == header["alg"]
        and key.get("kty") in ("RSA", "EC", "OKP")
        and "d" not in key  # a private key that is public proves nothing
    )


def _check(claims: Mapping[str, Any], expected: ExpectedToken) -> None:
    now, skew = expected.now.timestamp(), SKEW.total_seconds()
    times = {name: claims.get(name, default) for name, default in (("exp", None), ("iat", None), ("nbf", 0))}
    for name, value in times.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refused(f"its claim {name} is no time")
    # Each is what must hold, so that a number which compares with nothing (NaN) does not pass.
    if not now < times["exp"] + skew:
        raise _refused("it has expired")
    if not (times["iat"] <= now + skew and times["nbf"] <= now + skew):
        raise _refused("it is of a time to come: compare the clocks of this machine and the provider's")
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not compare_digest(nonce.encode(), expected.nonce.encode()):
        raise _refused("it was made for another sign-in (nonce)")
    audience, party = claims["aud"], claims.get("azp")
    is_shared = isinstance(audience, list) and len(audience) > 1  # pyright: ignore[reportUnknownArgumentType]
    if (is_shared or party is not None) and party != expected.client_id:
        raise _refused("it was made for another client (azp)")
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= _MOST_SUBJECT:
        raise _refused("its claim sub names nobody")


def _refused(reason: str) -> Forbidden:
    return Forbidden(f"The token of the provider is refused: {reason}.")

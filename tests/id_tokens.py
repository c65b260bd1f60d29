"""ID tokens of a provider, made and signed in the test, and a provider in memory that hands them out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from tests.builders import T0
from trainshed.outgoing_request import OutgoingAnswer, OutgoingRequest

ISSUER = "https://id.example.org/realms/team"
CLIENT = "trainshed"
NONCE = "the-nonce-of-this-sign-in"


@dataclass
class StepClock:
    time: datetime = T0

    def now(self) -> datetime:
        return self.time


@cache
def private_key(algorithm: str, name: str = "") -> Any:
    """One for each name, made once: RSA takes a while."""
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_key(algorithm: str, name: str = "", **more: object) -> dict[str, Any]:
    """As the provider publishes it."""
    key = get_default_algorithms()[algorithm].to_jwk(private_key(algorithm, name).public_key(), as_dict=True)
    return {**key, "kid": f"{algorithm}{name}", "alg": algorithm, "use": "sig", **more}


def claims(**changes: object) -> dict[str, Any]:
    """Those of a good token. None leaves a claim out."""
    now = int(T0.timestamp())
    whole = {
        "iss": ISSUER,
        "sub": "ann-1",
        "aud": CLIENT,
        "iat": now,
        "exp": now + 300,
        "nonce": NONCE,
        "email": "ann@example.org",
        "email_verified": True,
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def signed(content: Mapping[str, Any], algorithm: str = "RS256", name: str = "", **header: Any) -> str:
    headers = {"kid": f"{algorithm}{name}", **header}
    return jwt.encode(
        dict(content),
        private_key(algorithm, name),
        algorithm,
        headers={key: value for key, value in headers.items() if value is not None},
    )


@dataclass
class MemoryProvider:
    """Answers as a provider does. A test changes what it says."""

    keys: list[dict[str, Any]] = field(default_factory=lambda: [public_key("RS256")])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    token: str = ""
    token_answer: tuple[int, object] | None = None
    user_info: tuple[int, object] = (200, {})
    is_away: bool = False
    asked: list[OutgoingRequest] = field(default_factory=list[OutgoingRequest])

    async def ask(self, request: OutgoingRequest) -> OutgoingAnswer:
        self.asked.append(request)
        if self.is_away:
            raise ConnectionRefusedError(111, "Connection refused")
        status, body = self._answer(request.url.removeprefix(ISSUER))
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return OutgoingAnswer(status, "", content)

    def _answer(self, path: str) -> tuple[int, object]:
        match path:
            case "/.well-known/openid-configuration":
                return 200, {
                    "issuer": ISSUER,
                    "authorization_endpoint": f"{ISSUER}/auth",
                    "token_endpoint": f"{ISSUER}/token",
                    "jwks_uri": f"{ISSUER}/keys",
                    "userinfo_endpoint": f"{ISSUER}/me",
                    **self.metadata,
                }
            case "/token":
                return self.token_answer or (200, {"id_token": self.token, "access_token": "opaque"})
            case "/keys":
                return 200, {"keys": self.keys}
            case "/me":
                return self.user_info
            case _:
                return 404, b"not here"

    def count(self, path: str) -> int:
        return sum(request.url == f"{ISSUER}{path}" for request in self.asked)

    def form(self) -> dict[str, str]:
        """What the last request for tokens brought."""
        [*_, request] = [request for request in self.asked if request.url == f"{ISSUER}/token"]
        return {name: values[0] for name, values in parse_qs((request.body or b"").decode()).items()}


MINUTE = timedelta(minutes=1)

"""OidcProvider: implements `IdentityProvider`: discovery, the code flow with PKCE, signed tokens.

The assembly makes it. Nothing is asked before somebody signs in. What the provider says of itself counts for
an hour; keys are fetched again for a token of an unknown key, at most every half minute. Requests run in
threads of their own, a few at a time, and follow no redirect.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode

from trainshed.bounded_thread import bounded
from trainshed.core.accounts.oidc import ProvidedPerson, SignInAttempt
from trainshed.core.errors import Exhausted, Forbidden, TrainshedError, Unavailable
from trainshed.core.ports import Clock
from trainshed.identity.oidc.claims import lacks, person_of
from trainshed.identity.oidc.id_token import ExpectedToken, UnknownKey, verified_claims
from trainshed.outgoing_request import OutgoingAnswer, OutgoingRequest, send_request

LONGEST = 15.0  # seconds for one request
MOST_ANSWER = 1 << 20  # bytes
MOST_AT_ONCE = 8  # sign-ins that ask the provider at the same time
FRESH = timedelta(hours=1)  # for what the provider says of itself, and for its keys
KEYS_AGAIN = timedelta(seconds=30)  # between two looks for a key that is not known
FAILED = timedelta(seconds=3)  # for which a provider that did not answer is not asked again
_WORDS = 200  # characters of the provider's own words in a sentence

Ask = Callable[[OutgoingRequest], Awaitable[OutgoingAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    issuer: str
    client_id: str
    title: str
    secret_file: Path | None = None
    scopes: tuple[str, ...] = ()
    name_claim: str = "email"
    groups_claim: str = ""


async def ask_provider(request: OutgoingRequest) -> OutgoingAnswer:
    """Raises OSError or ValueError where there is no answer."""
    return await bounded(lambda hold: send_request(request, hold, MOST_ANSWER), LONGEST)


class OidcProvider:
    def __init__(self, settings: ProviderSettings, clock: Clock, ask: Ask = ask_provider) -> None:
        self.title, self.issuer = settings.title, settings.issuer
        self._settings, self._clock, self._ask = settings, clock, ask
        self._metadata = FetchedObject(self._discover, clock)
        self._keys = FetchedObject(self._fetch_keys, clock)
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def address(self, attempt: SignInAttempt) -> str:
        metadata = await self._metadata.get(FRESH)
        digest = hashlib.sha256(attempt.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": attempt.redirect_uri,
            "scope": " ".join(dict.fromkeys(("openid", *self._settings.scopes))),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = self._endpoint(metadata, "authorization_endpoint")
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def person(self, attempt: SignInAttempt, code: str, issuer: str) -> ProvidedPerson:
        if self._places.locked():
            raise Exhausted(f"{MOST_AT_ONCE} people sign in at this moment: try again.")
        async with self._places:
            metadata = await self._metadata.get(FRESH)
            is_sent = metadata.get("authorization_response_iss_parameter_supported") is True
            if (issuer or is_sent) and issuer != self.issuer:
                raise Forbidden("The answer came from another provider than the one that was asked (iss).")
            tokens = await self._redeem(metadata, attempt, code)
            claims = await self._claims(str(tokens.get("id_token", "")), attempt)
            claim, groups = self._settings.name_claim, self._settings.groups_claim
            if lacks(claims, claim, groups):
                claims = await self._with_user_info(metadata, tokens, claims)
        return person_of(claims, claim, groups)

    async def _redeem(
        self, metadata: Mapping[str, Any], attempt: SignInAttempt, code: str
    ) -> Mapping[str, Any]:
        """The tokens for a code, which the provider takes once."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        client, secret = self._settings.client_id, self._secret()
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if secret and "client_secret_basic" in methods:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": client, **({"client_secret": secret} if secret else {})}
        request = OutgoingRequest(
            url=self._endpoint(metadata, "token_endpoint"),
            verb="POST",
            headers=headers,
            body=urlencode(form).encode(),
        )
        status, answer = await self._json(request)
        if status == 200:
            return answer
        problem = _words(answer.get("error")), _words(answer.get("error_description"))
        if problem[0] == "invalid_grant":
            raise Forbidden(
                f"The provider refuses the code of this sign-in ({problem[1] or problem[0]}): begin again."
            )
        raise self._away(
            f"it refuses this server ({status} {': '.join(filter(None, problem))}). Compare --oidc-client-id "
            f"{client} and the content of --oidc-client-secret-file with what the provider has"
        )

    def _secret(self) -> str:
        """Read at each sign-in, so that a new one needs no restart."""
        file = self._settings.secret_file
        try:
            return file.read_text(encoding="utf-8").strip() if file else ""
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", "") or error
            raise Unavailable(f"--oidc-client-secret-file {file} cannot be read: {reason}.") from error

    async def _claims(self, token: str, attempt: SignInAttempt) -> dict[str, Any]:
        expected = ExpectedToken(
            issuer=self.issuer, client_id=self._settings.client_id, nonce=attempt.nonce, now=self._clock.now()
        )
        for age in (FRESH, KEYS_AGAIN):
            keys = (await self._keys.get(age))["keys"]
            try:
                return verified_claims(token, keys, expected)
            except UnknownKey:
                continue
        raise Forbidden("The token of the provider is refused: none of the provider's keys has signed it.")

    async def _with_user_info(
        self, metadata: Mapping[str, Any], tokens: Mapping[str, Any], claims: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Many providers tell the address only where they are asked for it once more."""
        if "userinfo_endpoint" not in metadata or not isinstance(tokens.get("access_token"), str):
            return claims
        headers = {"Authorization": f"Bearer {_words(tokens['access_token'], 1 << 14)}"}
        url = self._endpoint(metadata, "userinfo_endpoint")
        status, info = await self._json(OutgoingRequest(url=url, headers=headers))
        if status != 200:
            raise self._away(f"it does not say who signed in ({url} answers {status})")
        if info.get("sub") != claims["sub"]:
            raise Forbidden("The provider speaks of somebody else than the one who signed in (sub).")
        return {**info, **claims}

    async def _discover(self) -> Mapping[str, Any]:
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        status, metadata = await self._json(OutgoingRequest(url=url))
        if status != 200:
            raise self._away(f"{url} answers {status}: is that the issuer of an OpenID Connect provider?")
        if metadata.get("issuer") != self.issuer:
            raise self._away(
                f"the provider calls itself {_words(metadata.get('issuer'))!r}: give that exactly"
            )
        return metadata

    async def _fetch_keys(self) -> Mapping[str, Any]:
        url = self._endpoint(await self._metadata.get(FRESH), "jwks_uri")
        status, answer = await self._json(OutgoingRequest(url=url))
        keys: Any = answer.get("keys")
        if status != 200 or not isinstance(keys, list):
            raise self._away(f"its keys are not at {url} (answer {status})")
        return {"keys": [key for key in cast(list[Any], keys) if isinstance(key, dict)]}

    def _endpoint(self, metadata: Mapping[str, Any], name: str) -> str:
        url = metadata.get(name)
        # Only an issuer on this machine may do without TLS: the settings see to that.
        schemes = ("https://", self.issuer.partition("://")[0] + "://")
        if not isinstance(url, str) or not url.startswith(schemes) or not url.isprintable() or " " in url:
            raise self._away(f"it names no {name} with https")
        return url

    async def _json(self, request: OutgoingRequest) -> tuple[int, dict[str, Any]]:
        try:
            answer = await self._ask(request)
        except TimeoutError as error:
            raise self._away(f"no answer within {LONGEST:g} s") from error
        except (OSError, ValueError) as error:
            raise self._away(_words(getattr(error, "strerror", "") or error)) from error
        try:
            content = json.loads(answer.body)
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, dict):
            return answer.status, content  # pyright: ignore[reportUnknownVariableType]
        if answer.status == 200:
            raise self._away(f"{request.url.partition('?')[0]} answers with something else than JSON")
        return answer.status, {}

    def _away(self, reason: str) -> Unavailable:
        return Unavailable(
            f"Signing in with {self.title} does not work now (--oidc-issuer {self.issuer}): {reason}. "
            "Tokens count as before."
        )


class FetchedObject:
    """Something of the provider: one caller fetches it for all, and where that failed, not again at once."""

    def __init__(self, fetch: Callable[[], Awaitable[Mapping[str, Any]]], clock: Clock) -> None:
        self._fetch, self._clock = fetch, clock
        self._value: tuple[Mapping[str, Any], datetime] | None = None
        self._failure: tuple[str, datetime] | None = None
        self._lock = asyncio.Lock()

    async def get(self, age: timedelta) -> Mapping[str, Any]:
        """As it was at most so long ago. Raises Unavailable."""
        async with self._lock:
            now = self._clock.now()
            if self._value is not None and now - self._value[1] < age:
                return self._value[0]
            if self._failure is not None and now - self._failure[1] < FAILED:
                raise Unavailable(self._failure[0])
            try:
                value = await self._fetch()
            except TrainshedError as error:
                self._failure = error.message, now
                raise
            self._value = value, now
            return value


def _words(value: object, most: int = _WORDS) -> str:
    """Text of the provider, fit for a line."""
    return "".join(c for c in str(value or "") if c.isprintable())[:most]

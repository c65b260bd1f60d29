"""What the server knows of people who sign in with an OpenID Connect provider, and the port to that provider.

`service/provider_sign_in.py` uses the port, `identity/oidc/` implements it. Pure.
"""

from dataclasses import dataclass
from typing import Protocol

from trainshed.core.accounts.directory import ProviderIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedPerson:
    """What the provider vouches for."""

    identity: ProviderIdentity
    name: str  # of the account that is meant
    display_name: str = ""
    groups: frozenset[str] | None = None  # None: the provider is not asked for groups


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInAttempt:
    """What belongs to one sign-in of one browser."""

    state: str
    nonce: str
    verifier: str  # of PKCE
    redirect_uri: str


class IdentityProvider(Protocol):
    """An OpenID Connect provider.

    1. nothing is asked of it before somebody signs in: the server starts without it.
    2. Unavailable says what is wrong with it and which setting to look at. Forbidden says why a person is
       refused.
    3. a person is returned only for a signed token that was made for this server and for this attempt.
    """

    title: str  # what people call it
    issuer: str

    async def address(self, attempt: SignInAttempt) -> str:
        """Where the browser goes to sign in."""
        ...

    async def person(self, attempt: SignInAttempt, code: str, issuer: str) -> ProvidedPerson:
        """Who has signed in there, by the code that the browser brought; `issuer` came along, or is empty."""
        ...

"""Which account a provider's claims mean. `provider.py` calls it after the token was verified. Pure."""

from collections.abc import Mapping
from typing import Any

from trainshed.core.accounts.directory import ProviderIdentity
from trainshed.core.accounts.oidc import ProvidedPerson
from trainshed.core.errors import Forbidden

EMAIL = "email"
MOST_GROUPS = 1000


def lacks(claims: Mapping[str, Any], name_claim: str, groups_claim: str) -> bool:
    """Whether something of them has to be asked for besides."""
    wanted = {name_claim, groups_claim, "email_verified" if name_claim == EMAIL else ""} - {""}
    return not wanted <= claims.keys()


def person_of(claims: Mapping[str, Any], name_claim: str, groups_claim: str) -> ProvidedPerson:
    name = claims.get(name_claim)
    if not isinstance(name, str) or not name.strip():
        raise Forbidden(
            f"The provider does not say who you are: it sent no claim '{name_claim}'. Whoever keeps the "
            "server can ask for more with --oidc-scope, or name another claim with --oidc-name-claim."
        )
    is_verified = claims.get("email_verified")
    if name_claim == EMAIL and is_verified is not True and is_verified != "true":  # a text, of some providers
        raise Forbidden(
            f"The provider has not verified that {name[:100]} is yours (email_verified). Verify the address "
            "there, and sign in again."
        )
    return ProvidedPerson(
        identity=ProviderIdentity(claims["iss"], claims["sub"]),
        name=name.strip().lower(),  # names of accounts have small letters
        display_name=_text(claims.get("name")),
        groups=_groups(claims.get(groups_claim)) if groups_claim else None,
    )


def _groups(value: object) -> frozenset[str]:
    """Keycloak writes a group as a path, with a slash before it. A claim that is not there names no group."""
    names: list[object] = [value] if isinstance(value, str) else [*value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]
    return frozenset(name.removeprefix("/") for name in names[:MOST_GROUPS] if isinstance(name, str))


def _text(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() else ""

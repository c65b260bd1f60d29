"""What a registry asks for before it answers, and the token that its realm gives for it.

`registry.py` calls it, after it has judged the realm's address. Most registries give one to anybody for a
public image.
"""

import json
import re
from dataclasses import dataclass

import httpx2

from trainshed.backends.machine.registry_auth import Credentials

_PARAMETER = re.compile(r'(\w+)\s*=\s*(?:"([^"]*)"|([^",\s]+))')
_MOST = 1 << 20  # bytes of an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    is_basic: bool = False
    realm: str = ""  # the address that gives tokens
    service: str = ""
    scope: str = ""


def read_challenge(header: str) -> Challenge | None:
    """What `WWW-Authenticate` asks for; None where it is nothing that registries ask for."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() == "basic":
        return Challenge(is_basic=True)
    if scheme.lower() != "bearer":
        return None
    given = {match[1].lower(): match[2] or match[3] or "" for match in _PARAMETER.finditer(rest)}
    if not given.get("realm"):
        return None
    return Challenge(realm=given["realm"], service=given.get("service", ""), scope=given.get("scope", ""))


async def bearer_token(
    client: httpx2.AsyncClient, challenge: Challenge, credentials: Credentials | None
) -> str:
    """Empty where it gives none."""
    asked = {
        name: value for name, value in (("service", challenge.service), ("scope", challenge.scope)) if value
    }
    if credentials is not None and credentials.token:
        form = {
            "grant_type": "refresh_token",
            "client_id": "trainshed",
            "refresh_token": credentials.token,
            **asked,
        }
        answer = await client.post(challenge.realm, data=form)
    else:
        known = (credentials.user, credentials.password) if credentials is not None else None
        answer = await client.get(challenge.realm, params=asked, auth=known)
    if answer.status_code != 200 or len(answer.content) > _MOST:
        return ""
    try:
        document = json.loads(answer.content)
        return str(document.get("token") or document.get("access_token") or "")
    except (ValueError, AttributeError):
        return ""

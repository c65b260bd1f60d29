"""Tell requests that a web page of somebody else made a browser send.

A page cannot choose the Host its request carries, nor hide its Origin: a foreign Host means that some
name was made to point here (DNS rebinding), a foreign Origin that another site's script is asking. A request
for an image or a script carries no Origin; Sec-Fetch-Site says where it comes from. It holds for every
method: reading leaks, deleting destroys. Pure: it looks at headers only and never
resolves a name.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

_HOST = re.compile(r"(?P<name>[a-z0-9]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[^/?#@\s]+)")
_PORTS = {"http": "80", "https": "443"}


def foreign_headers(headers: Mapping[str, str], own_hosts: frozenset[str], *, page: bool) -> str | None:
    """A sentence where the request with these headers is foreign, else None.

    To a `page` of ours a link on any site may lead. A browser says so: it opens a document, in a tab.
    """
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    site = None if page and opened else headers.get("sec-fetch-site")
    return foreign_request(headers.get("host"), headers.get("origin"), own_hosts, site)


def foreign_request(
    host: str | None, origin: str | None, own_hosts: frozenset[str], sec_fetch_site: str | None = None
) -> str | None:
    """A sentence where the request is foreign, else None.

    `own_hosts` are names with or without a port; one without stands for any port. A loopback name among them
    stands for all of them: then the server listens on loopback only.
    """
    asked = _split(host)
    if asked is None:
        return f"The Host header {host!r} is missing or malformed."
    if not _is_own(asked, own_hosts):
        return f"The Host {host!r} is not a name of this server; use the address it printed when it started."
    if origin is not None and not _is_same(origin, asked):
        return f"Requests from pages of {origin!r} are refused: only this server's own pages may call it."
    if sec_fetch_site is not None and sec_fetch_site.strip().lower() not in ("same-origin", "none"):
        return f"Requests from other sites' pages (Sec-Fetch-Site: {sec_fetch_site}) are refused."
    return None


def _split(host: str | None) -> tuple[str, str] | None:
    """Name and port ("" where none is given), or None where malformed."""
    match = _HOST.fullmatch(host.lower()) if host else None
    if match is None:
        return None
    port = match["port"] or ""
    if port and not 0 < int(port) < 65536:
        return None
    return match["name"], port.lstrip("0")


def _is_own(asked: tuple[str, str], own_hosts: frozenset[str]) -> bool:
    own, on_loopback = _parsed(own_hosts)
    if asked[0] in LOOPBACK and on_loopback:
        return True
    return asked in own or (asked[0], "") in own


@lru_cache(maxsize=8)
def _parsed(own_hosts: frozenset[str]) -> tuple[frozenset[tuple[str, str]], bool]:
    own = frozenset(place for place in map(_split, own_hosts) if place is not None)
    return own, any(name in LOOPBACK for name, _ in own)


def _is_same(origin: str, asked: tuple[str, str]) -> bool:
    """Whether a page of that origin came from the host asked. Our scheme is unknown: TLS may end in front."""
    match = _ORIGIN.fullmatch(origin.lower())
    if match is None:
        return False
    place = _split(match["host"])
    if place is None:
        return False
    default = _PORTS[match["scheme"]]
    return (place[0], place[1] or default) == (asked[0], asked[1] or default)

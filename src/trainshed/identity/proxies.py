"""Where a call comes from when proxies stand between: those that are trusted tell it by X-Forwarded-For.

Each proxy appends whom it got the call from. So the list is read from its end, as long as those who wrote it
are trusted: whatever a caller puts into the header itself stands before that, and is not believed.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network


class TrustedProxies:
    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(text) for text in networks]

    def caller(self, peer: str, forwarded: str) -> str:
        """The address of the caller. `peer` is who connected, `forwarded` all values of the header."""
        known, hops = peer, forwarded.split(",")
        address = _address(peer)
        while hops and address is not None and self._trusts(address):
            if (address := _address(hops.pop())) is not None:
                known = str(address)
        return known

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._networks)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Of a hop, which may have a port; None where it is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address

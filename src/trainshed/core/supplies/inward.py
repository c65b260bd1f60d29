"""Which addresses lead inward: to this machine, its private network, or a cloud's metadata. Pure.

Whoever follows an address that a job names asks here after the name was resolved, and connects to the very
addresses it asked about: `runtimes/outward_proxy.py` for pip, `registry_host.py` for registries.
A name with one inward address among others is refused: who connects may take any of them.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

# IPv6 addresses that carry an IPv4 address: such a packet ends where that leads.
_NAT64 = IPv6Network("64:ff9b::/96")


def inward(addresses: Iterable[str]) -> str:
    """The first address that leads inward; "" where none does. What is no address counts as inward."""
    return next((text for text in addresses if not _is_outward(text)), "")


def never_a_registry(addresses: Iterable[str], *, is_own_name: bool) -> str:
    """The first address at which no registry is asked for an image; "" where there is none.

    Registries in private networks are usual, and jobs in containers reach those networks anyway. This
    machine's loopback is meant only by its own names; link-local addresses have credentials, never images.
    """
    return next((text for text in addresses if not _may_be_registry(text, is_own_name)), "")


def _is_outward(text: str) -> bool:
    address = _carried(text)
    return address is not None and address.is_global and not address.is_multicast


def _may_be_registry(text: str, is_own_name: bool) -> bool:
    address = _carried(text)
    if address is None or address.is_link_local or address.is_unspecified or address.is_multicast:
        return False
    return is_own_name or not address.is_loopback


def _carried(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])  # without the zone of fe80::1%eth0
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address

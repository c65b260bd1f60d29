"""One network: its name, its addresses, and the bodies with which Docker and Podman create it. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import IPv4Network
from typing import Any

_SMALLEST = 27  # bits: room for 28 replicas
_OWN = 4  # addresses that no replica gets: network, bridge, anchor, broadcast


@dataclass(frozen=True, slots=True)
class JobNetwork:
    name: str
    subnet: IPv4Network
    internal: bool = False  # no route out

    def address(self, number: int) -> str:
        return str(self.subnet.network_address + 2 + number)

    @property
    def last(self) -> str:
        """The address of the network anchor."""
        return str(self.subnet.broadcast_address - 1)

    @property
    def _place(self) -> dict[str, str]:
        subnet, gateway = str(self.subnet), str(self.subnet.network_address + 1)
        # An internal network must not reach this machine either, so its bridge has no address.
        return {"subnet": subnet} if self.internal else {"subnet": subnet, "gateway": gateway}

    def for_podman(self, labels: Mapping[str, str], *, isolate: bool) -> dict[str, object]:
        """For Podman's own API: its Docker API cannot isolate networks."""
        return {
            "name": self.name,
            "driver": "bridge",
            # Podman avoids only its own bridge names; another engine may use the same one.
            "network_interface": f"ts{blake2b(self.name.encode(), digest_size=6).hexdigest()}",
            "dns_enabled": False,
            "internal": self.internal,
            "subnets": [self._place],
            "options": {"isolate": "true"} if isolate else {},
            "labels": dict(labels),
        }

    def for_docker(self, labels: Mapping[str, str]) -> dict[str, object]:
        place = {name.capitalize(): at for name, at in self._place.items()}
        return {
            "Name": self.name,
            "Driver": "bridge",
            "CheckDuplicate": True,
            "Internal": self.internal,
            "IPAM": {"Driver": "default", "Config": [place]},
            "Options": {"com.docker.network.bridge.inhibit_ipv4": "true"} if self.internal else {},
            "Labels": dict(labels),
        }


def prefix(replicas: int) -> int:
    """Prefix length of the smallest network with room for so many replicas."""
    return min(_SMALLEST, 32 - (replicas + _OWN - 1).bit_length())


def first_free(within: IPv4Network, bits: int, taken: Collection[IPv4Network]) -> IPv4Network | None:
    for subnet in within.subnets(new_prefix=bits):
        if not any(subnet.overlaps(other) for other in taken):
            return subnet
    return None


def subnets_of(network: Mapping[str, Any]) -> list[IPv4Network]:
    """The subnets in an answer of Docker or Podman."""
    result: list[IPv4Network] = []
    plan: dict[str, Any] = network.get("IPAM") or {}
    parts: list[dict[str, Any]] = plan.get("Config") or network.get("subnets") or []
    for part in parts:
        subnet = str(part.get("Subnet") or part.get("subnet") or "")
        if subnet and ":" not in subnet:
            result.append(IPv4Network(subnet, strict=False))
    return result

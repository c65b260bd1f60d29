"""A network for each job: its replicas reach each other there by fixed addresses, and others do not.

The engine has the truth: what networks there are is asked of it once, and each new one is a call. Addresses
are ours, from a private range, so that every replica can be told all of them before any is started. It may
assume that calls for the same job come one after the other or together, never against a removal.
"""

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import IPv4Network
from typing import Any

from trainshed.backends.container.engine import Engine, EngineFault
from trainshed.backends.container.render import LABEL
from trainshed.backends.container.wall import Wall
from trainshed.core.errors import Invalid, Unavailable, Violation

_SMALLEST = 27  # bits: room for 29 replicas
_UNKNOWN = 250  # replicas, where nobody says how many there will be
_OWN = 3  # addresses that are no replica's: the network's, the bridge's, that for all
_MOST_TRIES = 64  # subnets somebody else turned out to have
_VANISHED = "no such network interface"  # said where another's goes while the engine looks at all of them


@dataclass(frozen=True, slots=True)
class Net:
    name: str
    subnet: IPv4Network

    def address(self, number: int) -> str:
        return str(self.subnet.network_address + 2 + number)


class Networks:
    def __init__(self, engine: Engine, home: str, subnets: str, *, podman: bool) -> None:
        self._engine, self._home, self._podman = engine, home, podman
        self._range = ipaddress.IPv4Network(subnets)
        self._taken: set[IPv4Network] | None = None
        self._known: dict[str, Net] = {}
        self._making = asyncio.Lock()
        self._wall = Wall(subnets)

    def name(self, job: str) -> str:
        return f"{LABEL}-{self._home}-{job}"

    async def make(self, job: str, replicas: int, *, internal: bool = False) -> Net:
        """The job's network, made where it is not there."""
        if (known := self._known.get(job)) is not None:
            return known
        async with self._making:
            if (known := self._known.get(job)) is None:
                try:
                    self._known[job] = known = await self._make(job, replicas or _UNKNOWN, internal)
                except EngineFault as error:
                    raise Unavailable(f"No network could be made for job {job}: {error.message}") from error
            return known

    async def keep_apart(self) -> bool:
        """Whether no job reaches another, whatever the engine does. Docker sees to it by itself."""
        return self._podman and await self._wall.stands()

    def forget(self, job: str) -> None:
        """It may not be there any more."""
        self._known.pop(job, None)

    async def remove(self, job: str) -> None:
        known = self._known.pop(job, None)
        try:
            await self._engine.ask("DELETE", f"/networks/{self.name(job)}")
        except EngineFault as error:
            if error.status != 404:
                raise Unavailable(f"The network of job {job} cannot be removed: {error.message}") from error
        if known is not None and self._taken is not None:
            self._taken.discard(known.subnet)

    async def spoil(self, job: str) -> None:
        """An address is held by the dead: away with the network and all in it; the next has other addresses.

        Podman keeps an address for a container whose start it did not survive, under the network's name.
        """
        known = self._known.pop(job, None) or await self._find(self.name(job))
        if self._podman:
            await self._engine.ask("DELETE", f"/libpod/networks/{self.name(job)}", {"force": True})
        if self._taken is not None:
            self._taken.add(known.subnet)

    async def jobs(self) -> frozenset[str]:
        """The jobs of this home that have a network."""
        found: set[str] = set()
        for one in await self._all():
            labels: dict[str, str] = one.get("Labels") or one.get("labels") or {}
            if labels.get(f"{LABEL}.home") == self._home:
                found.add(labels.get(f"{LABEL}.job", ""))
        return frozenset(found)

    async def _make(self, job: str, replicas: int, internal: bool) -> Net:
        taken = self._taken
        if taken is None:
            taken = self._taken = {net for one in await self._all() for net in _subnets(one)}
        bits = min(_SMALLEST, 32 - (replicas + _OWN - 1).bit_length())
        if bits < self._range.prefixlen:
            raise Invalid((Violation("subnets", f"{self._range} has no room for {replicas} replicas."),))
        name = self.name(job)
        for _ in range(_MOST_TRIES):
            net = Net(name, self._free(bits, taken))
            taken.add(net.subnet)
            try:
                await self._create(net, job, internal)
            except EngineFault as error:
                said = error.message.lower()
                if error.status == 409 or "already exists" in said or "already used: network" in said:
                    taken.discard(net.subnet)
                    return await self._find(name)
                if _VANISHED in said:
                    taken.discard(net.subnet)
                    continue
                if "overlap" in said or "already used" in said or "subnet" in said:
                    continue  # it stays among the taken ones
                taken.discard(net.subnet)
                raise
            return net
        raise Unavailable(f"No subnet of {self._range} is free on this machine.")

    def _free(self, bits: int, taken: set[IPv4Network]) -> IPv4Network:
        for subnet in self._range.subnets(new_prefix=bits):
            if not any(subnet.overlaps(other) for other in taken):
                return subnet
        raise Unavailable(f"All subnets of {self._range} are in use: jobs have to end first.")

    async def _all(self) -> list[dict[str, Any]]:
        # Podman by its own words: for Docker's it looks at every container, and stumbles over a broken one.
        return await self._engine.ask("GET", "/libpod/networks/json" if self._podman else "/networks")

    async def _find(self, name: str) -> Net:
        place = f"/libpod/networks/{name}/json" if self._podman else f"/networks/{name}"
        found = _subnets(await self._engine.ask("GET", place))
        if not found:
            raise Unavailable(f"Network {name} has no addresses.")
        return Net(name, found[0])

    async def _create(self, net: Net, job: str, internal: bool) -> None:
        labels = {f"{LABEL}.home": self._home, f"{LABEL}.job": job}
        subnet, gateway = str(net.subnet), str(net.subnet.network_address + 1)
        # One that leads nowhere does not lead to this machine either: its bridge has no address.
        place = {"subnet": subnet} if internal else {"subnet": subnet, "gateway": gateway}
        if self._podman:  # by its own words: Docker's have none for what keeps networks apart
            body: dict[str, object] = {
                "name": net.name,
                "driver": "bridge",
                # Its own choice is free among its own networks only: another engine may have the same bridge.
                "network_interface": f"ts{blake2b(net.name.encode(), digest_size=6).hexdigest()}",
                "dns_enabled": False,
                "internal": internal,
                "subnets": [place],
                "options": {} if await self.keep_apart() else {"isolate": "true"},
                "labels": labels,
            }
            await self._engine.ask("POST", "/libpod/networks/create", None, body)
            return
        body = {
            "Name": net.name,
            "Driver": "bridge",
            "CheckDuplicate": True,
            "Internal": internal,
            "IPAM": {"Driver": "default", "Config": [{name.capitalize(): at for name, at in place.items()}]},
            "Options": {"com.docker.network.bridge.inhibit_ipv4": "true"} if internal else {},
            "Labels": labels,
        }
        await self._engine.ask("POST", "/networks/create", None, body)


def _subnets(network: Mapping[str, Any]) -> list[IPv4Network]:
    """As Docker tells them, or Podman."""
    found: list[IPv4Network] = []
    plan: dict[str, Any] = network.get("IPAM") or {}
    parts: list[dict[str, Any]] = plan.get("Config") or network.get("subnets") or []
    for one in parts:
        subnet = str(one.get("Subnet") or one.get("subnet") or "")
        if subnet and ":" not in subnet:
            found.append(IPv4Network(subnet, strict=False))
    return found

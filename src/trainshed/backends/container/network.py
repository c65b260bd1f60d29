"""A network for each job: its replicas reach each other at fixed addresses, and no other job reaches them.

The starter makes networks, the reaper removes them. The server asks the engine once which networks exist;
each new one is a call. Addresses come from a private range, so every replica knows all of them before any
is started. A network has the name of the job it was made for, and may serve another job later
(network_pool.py). Callers never use a job's network while they remove it.
"""

import asyncio
import ipaddress
import logging
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Collection
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.job_network import JobNetwork, first_free, prefix, subnets_of
from trainshed.backends.container.network_pool import MOST, NetworkAnchor, NetworkPool
from trainshed.backends.container.render import LABEL
from trainshed.core.errors import Invalid, Unavailable, Violation

_log = logging.getLogger(__name__)
_PLACES = "/usr/local/sbin:/usr/sbin:/sbin"
_AGAIN = 30.0  # seconds between two checks: others may have replaced all rules
_MOST = 10.0  # seconds
_UNKNOWN = 250  # replicas, where their number is not known
_MOST_TRIES = 64  # subnets that others turned out to use


class NetworkIsolation:
    """One packet rule for the whole range: nothing is forwarded from one of our addresses to another.

    Podman's own isolation does not last: netavark 1.4 removes the rule that leads to all others whenever any
    network is removed. Our rule stays when the server stops, as containers do. Only root can add it;
    elsewhere the engine isolates networks alone.
    """

    def __init__(self, subnets: str) -> None:
        # The rule may also see packets that stay on one bridge: those belong to one network, and pass.
        where = ("-s", subnets, "-d", subnets, "-m", "physdev", "!", "--physdev-is-bridged")
        self._rule = ("FORWARD", *where, "-m", "comment", "--comment", "trainshed", "-j", "DROP")
        self._is_in_force: bool | None = None
        self._looked_at = 0.0

    async def ensure(self) -> bool:
        """Add the rule where it is missing; whether it is in force."""
        if self._is_in_force is None or (self._is_in_force and time.monotonic() - self._looked_at > _AGAIN):
            self._is_in_force = await asyncio.to_thread(self._add_rule)
            self._looked_at = time.monotonic()
            if not self._is_in_force:
                _log.info("networks of jobs are kept apart by the container engine alone")
        return self._is_in_force

    def _add_rule(self) -> bool:
        program = shutil.which("iptables", path=f"{os.environ.get('PATH', '')}:{_PLACES}")
        if program is None or os.geteuid() != 0:
            return False
        return self._run(program, "-C") or self._run(program, "-I")

    def _run(self, program: str, what: str) -> bool:
        try:
            words = [program, "-w", what, *self._rule]
            return subprocess.run(words, check=False, capture_output=True, timeout=_MOST).returncode == 0
        except (OSError, subprocess.SubprocessError):
            return False


class Networks:
    def __init__(self, engine: Engine, home: str, subnets: str, folder: Path, *, podman: bool) -> None:
        """`folder` is for the files of the network anchor."""
        self._engine, self._home, self._podman = engine, home, podman
        self._range = ipaddress.IPv4Network(subnets)
        self._taken: set[IPv4Network] | None = None
        self._given: dict[str, str] = {}  # the network's name, by job
        self._known: dict[str, JobNetwork] = {}  # by name: those that surely exist
        self._making = asyncio.Lock()
        self._isolation = NetworkIsolation(subnets)
        # Docker keeps a bridge as long as its network exists: it needs no anchor.
        most = MOST if podman else 0
        self._pool = NetworkPool(NetworkAnchor(engine, home, folder), self._delete, most=most)

    async def close(self) -> None:
        await self._pool.close()

    @property
    def containers(self) -> frozenset[str]:
        """Those of the network anchor."""
        return self._pool.containers

    def name(self, job: str) -> str:
        """The name of the job's network, whether or not it exists."""
        return self._given.get(job) or f"{LABEL}-{self._home}-{job}"

    def adopt(self, job: str, name: str) -> None:
        """Remember a network that an earlier server gave to the job."""
        self._given[job] = name

    async def make(self, job: str, replicas: int, *, internal: bool = False) -> JobNetwork:
        """The job's network, created where it does not exist."""
        if (known := self._known_of(job)) is not None:
            return known
        async with self._making:
            if (known := self._known_of(job)) is None:
                try:
                    known = await self._find_or_make(job, replicas or _UNKNOWN, internal)
                except EngineFault as error:
                    raise Unavailable(f"No network could be made for job {job}: {error.message}") from error
                self._known[known.name], self._given[job] = known, known.name
            return known

    async def keep_apart(self) -> bool:
        """Whether our rule isolates jobs from each other. Docker isolates them itself."""
        return self._podman and await self._isolation.ensure()

    def forget(self, job: str) -> None:
        """The job's network, and others, may not exist any more: look again."""
        self._known.pop(self.name(job), None)
        self._pool.drop_free()

    def is_kept(self, job: str) -> bool:
        """Whether the pool keeps it for the next job."""
        known = self._known_of(job)
        return known is not None and self._pool.holds(known)

    async def remove(self, job: str) -> None:
        """Remove it, or keep it for the next job. Nothing of the job may be left in it."""
        if job not in self._given and self.name(job) in self._used():
            return  # another job has the network now
        known = self._known_of(job)
        if known is None or not self._pool.keep(known):
            await self._delete(known or self.name(job))
        self._given.pop(job, None)

    async def replace(self, job: str) -> None:
        """Remove the network and all in it; the next one has other addresses.

        When Podman is killed while it starts a container, it keeps that address until the network is removed.
        """
        known = self._known_of(job) or await self._find(self.name(job))
        if self._podman:
            await self._engine.ask("DELETE", f"/libpod/networks/{known.name}", {"force": True})
        self._known.pop(known.name, None)
        self._given.pop(job, None)
        if self._taken is not None:
            self._taken.add(known.subnet)

    async def sweep(self, jobs: Callable[[], Collection[str]]) -> None:
        """Remove those of this home that no job has any more."""
        for item in await self._all():
            labels: dict[str, str] = item.get("Labels") or item.get("labels") or {}
            name = str(item.get("Name") or item.get("name"))
            used = name in self._used() or labels.get(f"{LABEL}.job") in jobs()
            if labels.get(f"{LABEL}.home") == self._home and not used:
                await self._delete(name)

    def _known_of(self, job: str) -> JobNetwork | None:
        return self._known.get(self._given.get(job, ""))

    def _used(self) -> frozenset[str]:
        return self._pool.names.union(self._given.values())

    async def _find_or_make(self, job: str, replicas: int, internal: bool) -> JobNetwork:
        if (given := self._given.get(job)) is not None:
            try:
                return await self._find(given)
            except EngineFault as error:
                if error.kind is not FaultKind.MISSING:
                    raise
                del self._given[job]
        bits = prefix(replicas)
        if bits < self._range.prefixlen:
            raise Invalid((Violation("subnets", f"{self._range} has no room for {replicas} replicas."),))
        if (kept := self._pool.take(bits, internal=internal)) is not None:
            return kept
        made = await self._make(job, bits, internal)
        self._pool.made(made)
        return made

    async def _make(self, job: str, bits: int, internal: bool) -> JobNetwork:
        taken = self._taken
        if taken is None:
            taken = self._taken = {net for item in await self._all() for net in subnets_of(item)}
        name = self._new_name(job)
        for _ in range(_MOST_TRIES):
            subnet = first_free(self._range, bits, taken)
            if subnet is None:
                raise Unavailable(f"All subnets of {self._range} are in use: jobs have to end first.")
            net = JobNetwork(name, subnet, internal)
            taken.add(subnet)
            try:
                await self._create(net, job)
            except EngineFault as error:
                if error.kind is FaultKind.SUBNET_TAKEN and not error.passing:
                    continue  # it stays in `taken`
                taken.discard(subnet)
                if error.kind is FaultKind.NAME_TAKEN:
                    return await self._find(name)
                if not error.passing:
                    raise
                continue
            return net
        raise Unavailable(f"No subnet of {self._range} is free on this machine.")

    def _new_name(self, job: str) -> str:
        """A name that no network has, also where another job has the one made for this job."""
        own, used = self.name(job), self._used()
        others = (f"{own}-{number}" for number in range(2, len(used) + 3))
        return next(name for name in (own, *others) if name not in used)

    async def _all(self) -> list[dict[str, Any]]:
        # Podman's own API: its Docker API inspects every container, and fails at a broken one.
        return await self._engine.ask("GET", "/libpod/networks/json" if self._podman else "/networks")

    async def _find(self, name: str) -> JobNetwork:
        place = f"/libpod/networks/{name}/json" if self._podman else f"/networks/{name}"
        inspected: dict[str, Any] = await self._engine.ask("GET", place)
        subnets = subnets_of(inspected)
        if not subnets:
            raise Unavailable(f"Network {name} has no addresses.")
        return JobNetwork(name, subnets[0], bool(inspected.get("Internal") or inspected.get("internal")))

    async def _create(self, net: JobNetwork, job: str) -> None:
        labels = {f"{LABEL}.home": self._home, f"{LABEL}.job": job}
        if self._podman:
            body = net.for_podman(labels, isolate=not await self.keep_apart())
            await self._engine.ask("POST", "/libpod/networks/create", None, body)
        else:
            await self._engine.ask("POST", "/networks/create", None, net.for_docker(labels))

    async def _delete(self, net: JobNetwork | str) -> None:
        name = net if isinstance(net, str) else net.name
        try:
            await self._engine.ask("DELETE", f"/networks/{name}")
        except EngineFault as error:
            if error.kind is not FaultKind.MISSING:
                raise Unavailable(f"Network {name} cannot be removed: {error.message}") from error
        known = self._known.pop(name, None)
        if known is not None and self._taken is not None:
            self._taken.discard(known.subnet)

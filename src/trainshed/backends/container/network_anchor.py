"""Holds networks of Podman between two jobs: a container that is in all of them and does nothing.

Podman takes a bridge down, with all its packet rules, as the last container leaves it, and sets all up again
for the next. That is two thirds of what a short job costs, and it does one at a time. Where a container stays
in the network, the next job finds it standing.

It needs no image, and no right: it forwards nothing and has no capability. It ends by itself when the server
does, however that comes. It may assume a network once, and that nobody waits for it: a network that cannot be
held is as good as others, and slower.
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
from pathlib import Path

from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.engine import Engine, EngineFault
from trainshed.backends.container.net import JobNetwork
from trainshed.backends.container.render import LABEL
from trainshed.backends.machine.compiled import compiled
from trainshed.core.errors import TrainshedError, Unavailable

_SOURCE = Path(__file__).with_name("holder.c")
_MEMORY, _PIDS = 32 << 20, 8


class NetworkAnchor:
    def __init__(self, engine: Engine, home: str, folder: Path) -> None:
        self._engine, self._home = engine, home
        self._boxes = EngineContainers(engine, home)
        self._tools, self._root = folder / "bin", folder / "holder"
        self.name = self._new_name()
        self._held: dict[str, JobNetwork] = {}
        self._turn = asyncio.Lock()
        self._alive: int | None = None  # the lock

    @property
    def held(self) -> tuple[JobNetwork, ...]:
        return tuple(self._held.values())

    def holds(self, net: JobNetwork) -> bool:
        return net.name in self._held

    async def hold(self, net: JobNetwork) -> None:
        async with self._turn:
            if not await self._connected(net):
                await self._begin(net)
            self._held[net.name] = net

    async def let_go(self, net: JobNetwork) -> None:
        """Whether or not it is there; the holder goes with the last."""
        async with self._turn:
            if self._held.pop(net.name, None) is None:
                return
            if not self._held:
                await self._end()
                return
            with contextlib.suppress(EngineFault):
                await self._tell("disconnect", net, {})

    async def close(self) -> None:
        async with self._turn:
            if self._alive is not None:
                await self._end()

    async def _connected(self, net: JobNetwork) -> bool:
        """False where there is no holder, or somebody took it away."""
        if self._alive is None:
            return False
        try:
            await self._tell("connect", net, {"static_ips": [net.last]})
        except EngineFault as error:
            if "no such container" not in error.message:
                raise
            await self._end()
            return False
        except Unavailable:
            self._held[net.name] = net  # perhaps: the engine went away over it
            raise
        return True

    async def _begin(self, net: JobNetwork) -> None:
        await asyncio.to_thread(self._furnish)
        self.name = self._new_name()  # nothing that is left of an earlier one is in the way
        spec = {
            "name": self.name,
            "rootfs": str(self._root),
            "entrypoint": ["/holder"],
            "command": ["/alive"],
            "labels": {f"{LABEL}.home": self._home},
            "netns": {"nsmode": "bridge"},
            "Networks": {net.name: {"static_ips": [net.last]}},
            "sysctl": {"net.ipv4.ip_forward": "0"},  # it leads from no network to another
            "cap_drop": ["ALL"],
            "no_new_privileges": True,
            "read_only_filesystem": True,
            "restart_policy": "no",
            "log_configuration": {"driver": "none"},
            "resource_limits": {"memory": {"limit": _MEMORY}, "pids": {"limit": _PIDS}},
        }
        try:
            await self._engine.ask("POST", "/libpod/containers/create", None, spec)
            await self._boxes.start(self.name)
        except BaseException:
            with contextlib.suppress(TrainshedError):
                await self._end()
            raise

    async def _end(self) -> None:
        self._held.clear()
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None
        await self._boxes.remove(self.name)

    def _new_name(self) -> str:
        return f"{LABEL}-{self._home}-holder-{os.urandom(3).hex()}"

    def _furnish(self) -> None:
        """Its files, and the lock on the one that it waits for."""
        program = compiled(_SOURCE, self._tools)
        if program is None:
            raise Unavailable("The holder of networks cannot be compiled.")
        try:
            self._root.mkdir(mode=0o755, exist_ok=True)
            shutil.copy2(program, self._root / ".holder")
            (self._root / ".holder").replace(self._root / "holder")
            alive = self._root / "alive"
            alive.unlink(missing_ok=True)  # that of an earlier one, who may be about to go
            self._alive = os.open(alive, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Unavailable(f"The holder of networks has no place: {error}.") from error

    async def _tell(self, verb: str, net: JobNetwork, more: dict[str, object]) -> None:
        body = {"container": self.name, **more}
        async with self._engine.open("POST", f"/libpod/networks/{net.name}/{verb}", None, body) as answer:
            await answer.whole()  # which is no JSON

"""Keeps networks of Podman for the next job while jobs start in quick succession.

Podman removes a bridge with all its packet rules when the last container leaves it, and sets both up again
for the next. That is two thirds of the cost of a short job, and Podman does one at a time. So an anchor
container, which does nothing, stays in the networks that are kept, and the next job gets one that is
already set up.

`Networks` calls it. A new network is kept once several jobs needed one within a short time. After a while
without such jobs the anchor leaves all networks; those of running jobs need no anchor. Callers give a
network back only when nothing of its job is left. The pool never creates a network, and a failure here
costs only time.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path

from trainshed.backends.container.containers import EngineContainers, retry_until_done
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import EngineFault, FaultKind
from trainshed.backends.container.job_network import JobNetwork
from trainshed.backends.container.render import LABEL
from trainshed.backends.machine.compiled import compiled
from trainshed.background_tasks import BackgroundTasks
from trainshed.core.errors import TrainshedError, Unavailable

_SOURCE = Path(__file__).with_name("network_anchor.c")
_MEMORY, _PIDS = 32 << 20, 8
_log = logging.getLogger(__name__)
_MANY, _WITHIN = 3, 5.0  # jobs in so many seconds: the next one will come soon
MOST = 8  # networks kept at once
_IDLE = 20.0  # seconds without a job that needed one
_TRIES = 3  # failures in a row, after which no network is kept
_CLOSING = 3.0  # seconds


class NetworkAnchor:
    """A container that does nothing and stays in the networks that are kept. Holding is best effort.

    It needs no image. It forwards nothing, has no capability, and ends by itself when the server does, also
    when the server is killed. Pass each network once.
    """

    def __init__(self, engine: Engine, home: str, folder: Path) -> None:
        self._engine, self._home = engine, home
        self._containers = EngineContainers(engine, home)
        self._tools, self._root = folder / "bin", folder / "anchor"
        self.name = self._new_name()
        self._networks: dict[str, JobNetwork] = {}
        self._turn = asyncio.Lock()
        self._alive: int | None = None  # the descriptor of the locked file
        self._background = BackgroundTasks()

    @property
    def networks(self) -> tuple[JobNetwork, ...]:
        return tuple(self._networks.values())

    def holds(self, net: JobNetwork) -> bool:
        return net.name in self._networks

    async def hold(self, net: JobNetwork) -> None:
        async with self._turn:
            if not await self._connected(net):
                await self._begin(net)
            self._networks[net.name] = net

    async def let_go(self, net: JobNetwork) -> None:
        """Leave the network, if the anchor is in it; the anchor ends with the last. May be repeated."""
        async with self._turn:
            self._networks.pop(net.name, None)
            if self._alive is None:
                return
            if not self._networks:
                await self._end()
                return
            with contextlib.suppress(EngineFault):
                await self._tell("disconnect", net, {})

    async def close(self) -> None:
        await self._background.close()
        async with self._turn:
            if self._alive is not None:
                await self._end()

    async def _connected(self, net: JobNetwork) -> bool:
        """False where there is no anchor, or somebody removed it."""
        if self._alive is None:
            return False
        try:
            await self._tell("connect", net, {"static_ips": [net.last]})
        except EngineFault as error:
            if error.kind is not FaultKind.CONTAINER_MISSING:
                raise
            await self._end()
            return False
        except Unavailable:
            self._networks[net.name] = net  # perhaps: the engine stopped answering
            raise
        return True

    async def _begin(self, net: JobNetwork) -> None:
        await asyncio.to_thread(self._prepare_files)
        self.name = self._new_name()  # leftovers of an earlier one must not conflict
        spec = {
            "name": self.name,
            "rootfs": str(self._root),
            "entrypoint": ["/anchor"],
            "command": ["/alive"],
            "labels": {f"{LABEL}.home": self._home},
            "netns": {"nsmode": "bridge"},
            "Networks": {net.name: {"static_ips": [net.last]}},
            "sysctl": {"net.ipv4.ip_forward": "0"},  # it forwards nothing between networks
            "cap_drop": ["ALL"],
            "no_new_privileges": True,
            "read_only_filesystem": True,
            "restart_policy": "no",
            "log_configuration": {"driver": "none"},
            "resource_limits": {"memory": {"limit": _MEMORY}, "pids": {"limit": _PIDS}},
        }
        try:
            await self._engine.ask("POST", "/libpod/containers/create", None, spec)
            await self._containers.start(self.name)
        except BaseException:
            with contextlib.suppress(TrainshedError):
                await self._end()
            raise

    async def _end(self) -> None:
        self._networks.clear()
        if self._alive is not None:
            os.close(self._alive)
            self._alive = None
        name = self.name
        try:
            await self._containers.remove(name)
        except TrainshedError:  # while it is there, nobody can remove its networks
            self._background.run(
                retry_until_done(lambda: self._containers.remove(name), f"network anchor {name}")
            )
            raise

    def _new_name(self) -> str:
        return f"{LABEL}-{self._home}-anchor-{os.urandom(3).hex()}"

    def _prepare_files(self) -> None:
        """Make its files, and lock the one for which it waits."""
        program = compiled(_SOURCE, self._tools)
        if program is None:
            raise Unavailable("The network anchor cannot be compiled.")
        try:
            self._root.mkdir(mode=0o755, exist_ok=True)
            shutil.copy2(program, self._root / ".anchor")
            (self._root / ".anchor").replace(self._root / "anchor")
            alive = self._root / "alive"
            alive.unlink(missing_ok=True)  # that of an earlier anchor, which may be ending
            self._alive = os.open(alive, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Unavailable(f"The files of the network anchor cannot be made: {error}.") from error

    async def _tell(self, verb: str, net: JobNetwork, more: dict[str, object]) -> None:
        body = {"container": self.name, **more}
        async with self._engine.open("POST", f"/libpod/networks/{net.name}/{verb}", None, body) as answer:
            await answer.whole()  # the body is no JSON


class NetworkPool:
    def __init__(
        self,
        anchor: NetworkAnchor,
        remove: Callable[[JobNetwork], Coroutine[None, None, None]],
        *,
        most: int = MOST,
    ) -> None:
        self._anchor, self._remove, self._most = anchor, remove, most
        self._free: list[JobNetwork] = []
        self._wanted: deque[float] = deque(maxlen=_MANY)
        self._background = BackgroundTasks()
        self._resting = False
        self._failures = 0  # in a row

    @property
    def names(self) -> frozenset[str]:
        return frozenset(net.name for net in self._free)

    @property
    def containers(self) -> frozenset[str]:
        return frozenset((self._anchor.name,))

    def take(self, bits: int, *, internal: bool) -> JobNetwork | None:
        self._wanted.append(time.monotonic())
        for net in self._free:
            if net.subnet.prefixlen == bits and net.internal == internal:
                self._free.remove(net)
                return net
        return None

    def made(self, net: JobNetwork) -> None:
        """A network was created because the pool had none."""
        rush = len(self._wanted) == _MANY and self._wanted[-1] - self._wanted[0] < _WITHIN
        if rush and self._failures < _TRIES and len(self._anchor.networks) < self._most:
            self._background.run(self._hold(net))

    def holds(self, net: JobNetwork) -> bool:
        return self._anchor.holds(net)

    def keep(self, net: JobNetwork) -> bool:
        """Whether the pool takes the network back."""
        kept = self.holds(net)
        if kept:
            self._free.append(net)
        return kept

    def drop_free(self) -> None:
        """Networks have vanished: give none of the free ones away."""
        free, self._free = self._free, []
        for net in free:
            self._background.run(self._let_go(net, free=True))

    async def close(self) -> None:
        await self._background.close()
        try:
            async with asyncio.timeout(_CLOSING):  # the next server removes the rest
                await self._anchor.close()
                while self._free:
                    await self._remove(self._free.pop())
        except (TimeoutError, TrainshedError) as error:
            _log.info("networks are left to the next server: %s", error)

    async def _hold(self, net: JobNetwork) -> None:
        try:
            await self._anchor.hold(net)
            self._failures = 0
        except TrainshedError as error:
            job_has_ended = isinstance(error, EngineFault) and error.kind is FaultKind.NETWORK_MISSING
            if not job_has_ended:
                self._failures += 1
                _log.info("a network is not kept for the next job: %s", error.message)
        if self._kept and not self._resting:
            self._resting = True
            self._background.run(self._rest())

    async def _rest(self) -> None:
        """Leave them one at a time, so that a new job does not wait for all."""
        try:
            while networks := self._kept:
                wait = self._wanted[-1] + _IDLE - time.monotonic()
                if wait > 0:
                    await asyncio.sleep(wait)
                    continue
                await self._let_go(networks[0], free=self._claim(networks[0]))
        finally:
            self._resting = False

    @property
    def _kept(self) -> tuple[JobNetwork, ...]:
        """Those that the anchor is in, and the free ones that it was in before somebody removed it."""
        return tuple(dict.fromkeys((*self._anchor.networks, *self._free)))

    def _claim(self, net: JobNetwork) -> bool:
        """Take it out of the free ones; whether it was free."""
        free = net in self._free
        if free:
            self._free.remove(net)
        return free

    async def _let_go(self, net: JobNetwork, *, free: bool) -> None:
        """Leave it, and remove it unless a job has it. What does not succeed now is tried again."""

        async def leave() -> None:
            nonlocal free
            await self._anchor.let_go(net)
            free = free or self._claim(net)  # its job may have ended meanwhile
            if free:
                await self._remove(net)

        try:
            await leave()
        except TrainshedError:
            self._background.run(retry_until_done(leave, f"network {net.name}"))

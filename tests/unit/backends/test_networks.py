"""Networks of jobs, where the engine is busy with those of others."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from trainshed.backends.container import containers, network_pool
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.engine_errors import fault_of
from trainshed.backends.container.network import NetworkIsolation, Networks
from trainshed.backends.container.network_pool import NetworkAnchor
from trainshed.core.errors import Unavailable


class BusyEngine:
    """Says what Podman says where an interface goes while it looks at all of them."""

    def __init__(self, times: int) -> None:
        self.left, self.made = times, list[str]()

    async def ask(self, verb: str, path: str, query: object = None, body: Any = None) -> Any:
        if verb == "GET":
            return []
        if self.left:
            self.left -= 1
            raise fault_of(verb, path, 500, b"route ip+net: no such network interface")
        self.made.append(path)
        return {}


async def test_an_interface_that_goes_while_a_network_is_made_is_no_reason_to_give_up(tmp_path: Path):
    engine = BusyEngine(times=3)
    networks = Networks(cast(Engine, engine), "home", "10.210.0.0/24", tmp_path, podman=False)
    net = await networks.make("job", 2)
    assert str(net.subnet) == "10.210.0.0/27"
    assert len(engine.made) == 1


class AnchoredEngine:
    """Knows networks, and which of them the anchor is in. It can be away."""

    def __init__(self) -> None:
        self.networks, self.anchors, self.is_away = set[str](), dict[str, set[str]](), False

    async def ask(self, verb: str, path: str, query: object = None, body: Any = None) -> Any:
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("The engine is away.")
        name = path.rpartition("/")[2]
        match verb, path.strip("/").split("/"):
            case "GET", _:
                return []
            case "POST", [*_, "networks", "create"]:
                self.networks.add(body["name"])
            case "POST", [*_, "containers", "create"]:
                self.anchors[body["name"]] = {*body["Networks"]}
            case "DELETE", ["containers", _]:
                self.anchors.pop(name, None)
            case "DELETE", ["networks", _]:
                if any(name in held for held in self.anchors.values()):
                    raise fault_of(verb, path, 403, b"network is being used")
                self.networks.discard(name)
            case _:
                pass
        return {}

    @contextlib.asynccontextmanager
    async def open(self, verb: str, path: str, query: object, body: Any) -> AsyncGenerator["AnchoredEngine"]:
        await self.ask(verb, "")
        *_, network, what = path.split("/")
        if body["container"] not in self.anchors:
            raise fault_of(verb, path, 404, b"no such container")
        held = self.anchors[body["container"]]
        (held.add if what == "connect" else held.discard)(network)
        yield self

    async def whole(self) -> bytes:
        return b""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every network is held from the first job on, for a moment, and what failed is tried again soon."""

    def prepare(anchor: NetworkAnchor) -> None:
        anchor._alive = os.open(os.devnull, os.O_RDONLY)

    async def is_apart(isolation: NetworkIsolation) -> bool:
        return True

    monkeypatch.setattr(NetworkIsolation, "ensure", is_apart)
    monkeypatch.setattr(NetworkAnchor, "_prepare_files", prepare)
    monkeypatch.setattr(network_pool, "_MANY", 1)
    monkeypatch.setattr(network_pool, "_IDLE", 0.05)
    monkeypatch.setattr(containers, "_PAUSE", 0.001)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.005)


async def kept_networks(engine: AnchoredEngine, folder: Path, count: int) -> Networks:
    """So many that the pool keeps; no job has one."""
    networks = Networks(cast(Engine, engine), "home", "10.210.0.0/16", folder, podman=True)
    for number in range(count):
        await networks.make(f"job{number}", 2)
    await until(lambda: sum(map(len, engine.anchors.values())) == count)
    for number in range(count):
        await networks.remove(f"job{number}")
    assert len(engine.networks) == count
    return networks


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("count", [1, 3])
async def test_networks_that_no_job_needs_go_also_where_the_engine_was_away_then(tmp_path: Path, count: int):
    engine = AnchoredEngine()
    networks = await kept_networks(engine, tmp_path, count)
    engine.is_away = True
    await asyncio.sleep(0.2)
    assert len(engine.networks) == count
    engine.is_away = False
    await until(lambda: not engine.networks and not engine.anchors)
    await networks.close()


@pytest.mark.usefixtures("soon")
async def test_networks_whose_anchor_somebody_removed_go_as_others_do(tmp_path: Path):
    engine = AnchoredEngine()
    networks = await kept_networks(engine, tmp_path, 2)
    engine.anchors.clear()
    await networks.make("one that no network fits", 30)
    await networks.remove("one that no network fits")
    await until(lambda: not engine.networks and not engine.anchors)
    await networks.close()

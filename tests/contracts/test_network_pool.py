"""Networks that serve one job after the other, on a real Podman: kept while jobs come thick and fast."""

import asyncio
import contextlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests import live
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.contracts.backend_bench import Bench, until
from tests.contracts.container_backend import CALL, LISTEN, a_bench, of_gang, python, world_of
from tests.live import LiveServer
from trainshed.backends.container import network_pool
from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.job_network import JobNetwork
from trainshed.backends.container.network_pool import NetworkAnchor
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.replica import Exit, Observation
from trainshed.core.names import ReplicaName, RunKey


@pytest.fixture
async def bench(tmp_path: Path, podman: Podman, tools: Path):
    async with a_bench(tmp_path, podman, tools) as bench:
        yield bench


class Rush:
    """Several jobs of one backend; all are gone at the end."""

    def __init__(self, bench: Bench, podman: Podman) -> None:
        self.bench, self.podman, self.jobs = bench, podman, list[str]()

    async def begin(self, *command: str, isolated: bool = False) -> RunKey:
        job = f"{self.bench.job}{len(self.jobs)}"
        self.jobs.append(job)
        key = RunKey(ReplicaName(job, 1, 0, 0), 0)
        launch = of_gang(self.bench, command, 0, 1)
        await self.bench.backend.launch(replace(launch, key=key, isolated=isolated))
        return key

    async def stay(self, *, isolated: bool = False) -> RunKey:
        key = await self.begin(*python(LISTEN), isolated=isolated)
        await until(lambda: "ready" in self.out(key).read_text())
        return key

    async def run(self, *command: str, isolated: bool = False) -> tuple[Observation, str]:
        """Its end, and the network it had; nothing of it is left when this returns."""
        key = await self.begin(*command, isolated=isolated)
        seen = ()
        while not seen or seen[0].alive:
            seen = await self.bench.backend.observe(key.name.job)
            await asyncio.sleep(0.01)
        network = self.network(key)
        await self.end(key)
        return seen[0], network

    async def end(self, key: RunKey) -> None:
        await self.bench.backend.remove(key.name.job)
        name = world_of(self.bench).name(key)
        await until(lambda: name not in self.podman.containers())

    def out(self, key: RunKey) -> Path:
        return Path(self.bench.files.output(key.name).stdout)

    @property
    def home(self) -> str:
        return (world_of(self.bench).home / "id").read_text()

    def told(self, key: RunKey) -> dict[str, dict[str, str]]:
        name = world_of(self.bench).name(key)
        return json.loads(self.podman.run("inspect", name))[0]["NetworkSettings"]["Networks"]

    def network(self, key: RunKey) -> str:
        (name,) = self.told(key)
        return name

    def address(self, key: RunKey) -> str:
        return self.told(key)[self.network(key)]["IPAddress"]

    def anchors(self) -> dict[str, str]:
        return self.podman.containers(f"trainshed-{self.home}-anchor-")

    def held(self) -> set[str]:
        names = [name for name, state in self.anchors().items() if state == "running"]
        return {
            network
            for one in (json.loads(self.podman.run("inspect", *names)) if names else ())
            for network in one["NetworkSettings"]["Networks"]
        }

    def networks(self) -> set[str]:
        return {name for name in self.podman.networks() if self.bench.job in name}


@pytest.fixture
async def rush(bench: Bench, podman: Podman):
    rush = Rush(bench, podman)
    yield rush
    for job in rush.jobs:
        await bench.backend.remove(job)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch):
    """Every network is held from the first job on."""
    monkeypatch.setattr(network_pool, "_MANY", 1)


async def held(rush: Rush, count: int = 1) -> None:
    await until(lambda: len(rush.held()) == count)


async def test_a_job_alone_leaves_its_network_to_nobody(rush: Rush):
    await rush.run("true")
    await until(lambda: not rush.networks())
    assert rush.anchors() == {}


async def test_jobs_that_come_thick_and_fast_have_one_network_after_the_other(rush: Rush):
    had = [(await rush.run("true"))[1] for _ in range(8)]
    assert len(set(had)) < len(had)
    assert list(rush.anchors().values()) == ["running"]


@pytest.mark.usefixtures("at_once")
async def test_jobs_that_live_at_the_same_time_never_have_the_same_network_and_reach_no_other(rush: Rush):
    first, second = await rush.stay(), await rush.stay()
    await held(rush, 2)
    given_back = rush.network(first)
    await rush.end(first)
    third = await rush.stay()
    assert rush.network(third) == given_back != rush.network(second)
    for to in (rush.address(second), rush.address(third)):
        seen, network = await rush.run(*python(CALL, to, "2"))
        assert seen.exit == Exit(code=1)
        assert network not in (rush.network(second), rush.network(third))


@pytest.mark.usefixtures("at_once")
async def test_a_shut_in_job_has_no_network_that_leads_out_and_leaves_it_to_its_like_only(rush: Rush):
    first, second = await rush.stay(), await rush.stay(isolated=True)
    await held(rush, 2)
    open_one, shut = rush.network(first), rush.network(second)
    await rush.end(first)
    await rush.end(second)
    assert (await rush.run("true", isolated=True))[1] == shut
    assert (await rush.run("true"))[1] == open_one


@pytest.mark.usefixtures("at_once")
async def test_the_anchor_has_no_right_and_leads_from_no_network_to_another(rush: Rush):
    await rush.stay()
    await held(rush)
    (name,) = rush.anchors()
    told = json.loads(rush.podman.run("inspect", name))[0]
    status = Path(f"/proc/{told['State']['Pid']}/status").read_text()
    assert "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    forwards = ("nsenter", "-t", str(told["State"]["Pid"]), "-n", "cat", "/proc/sys/net/ipv4/ip_forward")
    asked = await asyncio.create_subprocess_exec(*forwards, stdout=asyncio.subprocess.PIPE)
    assert (await asked.communicate())[0] == b"0\n"


@pytest.mark.usefixtures("at_once")
async def test_where_no_job_comes_any_more_all_is_let_go(rush: Rush, monkeypatch: pytest.MonkeyPatch):
    hold, kept = NetworkAnchor.hold, list[JobNetwork]()

    async def hold_and_note(anchor: NetworkAnchor, net: JobNetwork) -> None:
        await hold(anchor, net)
        kept.append(net)  # on a busy machine it is let go before the engine could be asked

    monkeypatch.setattr(NetworkAnchor, "hold", hold_and_note)
    monkeypatch.setattr(network_pool, "_IDLE", 0.5)
    stays = await rush.stay()
    await until(lambda: bool(kept))
    await until(lambda: not rush.anchors())
    await until(lambda: rush.networks() == {rush.network(stays)})
    assert (await rush.bench.backend.observe(stays.name.job))[0].alive


@pytest.mark.usefixtures("at_once")
async def test_an_anchor_that_was_taken_away_is_replaced_and_no_job_hears_of_it(rush: Rush):
    first = await rush.stay()
    await held(rush)
    await rush.end(first)
    (gone,) = rush.anchors()
    rush.podman.remove(gone)
    stays = await rush.stay()  # in the network that is free
    assert (await rush.run("true"))[0].exit == Exit(code=0)
    await until(lambda: bool(rush.anchors()) and gone not in rush.anchors())
    assert (await rush.bench.backend.observe(stays.name.job))[0].alive


@pytest.mark.usefixtures("at_once")
async def test_an_anchor_that_an_engine_left_half_made_is_removed_when_the_engine_is_back(
    rush: Rush, monkeypatch: pytest.MonkeyPatch
):
    start, stopped = EngineContainers.start, list[str]()

    async def start_or_stop_the_engine(containers: EngineContainers, name: str) -> None:
        if "-anchor-" not in name or stopped:
            return await start(containers, name)
        stopped.append(name)
        await asyncio.to_thread(rush.podman.stop)
        raise Unavailable("The engine was killed.")

    monkeypatch.setattr(EngineContainers, "start", start_or_stop_the_engine)
    with contextlib.suppress(Unavailable):  # as the job comes to its own start a little later
        await rush.begin("true")
    await until(lambda: bool(stopped) and rush.podman.service is None)
    rush.podman.start()
    await until(lambda: not set(stopped) & set(rush.anchors()))


@pytest.mark.usefixtures("at_once")
async def test_networks_that_vanished_are_given_to_one_job_at_most(rush: Rush):
    first, second = await rush.stay(), await rush.stay()
    await held(rush, 2)
    await rush.end(first)
    await rush.end(second)
    for name in rush.networks():
        rush.podman.run("network", "rm", "--force", "--time", "0", name)
    with pytest.raises(Unavailable):
        await rush.run("true")
    assert (await rush.run("true"))[0].exit == Exit(code=0)


@pytest.mark.usefixtures("at_once")
async def test_a_job_in_the_network_of_an_earlier_one_is_found_there_by_the_next_server(rush: Rush):
    first = await rush.stay()
    await held(rush)
    network = rush.network(first)
    await rush.end(first)
    key = await rush.stay()
    assert rush.network(key) == network
    await rush.bench.renew()
    again = replace(key, name=replace(key.name, index=1))
    launch = replace(of_gang(rush.bench, python(CALL, rush.address(key), "30"), 1, 2), key=again)
    await rush.bench.backend.launch(launch)
    await until(lambda: rush.out(again).read_text() == "hello\n")
    assert rush.network(again) == network


@pytest.mark.usefixtures("at_once")
async def test_a_server_that_goes_takes_its_anchor_along_and_the_next_one_all_networks(rush: Rush):
    key = await rush.stay()
    await held(rush)
    await rush.end(key)
    await rush.bench.backend.close()
    assert not rush.anchors()
    rush.bench.backend = await rush.bench.world.backend()
    await until(lambda: not rush.networks())


def test_a_killed_server_leaves_no_anchor_and_the_next_one_no_network(podman: Podman):
    before = podman.networks()  # one of an earlier server may still go away
    pool = {"machineSpec": {"machineType": "n1-standard-1"}, "replicaCount": 1}
    pool |= {"containerSpec": {"imageUri": BASE, "command": ["true"]}}
    with LiveServer("--engine", str(podman.socket), "--subnets", podman.subnets) as server:

        def names() -> list[str]:
            return [name for name in podman.containers() if "-anchor-" in name]

        while not names():
            server.wait(server.submit(pools=[pool]))
        (name,) = names()
        server.kill()
        live.until(lambda: podman.containers()[name] == "exited")
        server.start()
        live.until(lambda: podman.networks() <= before and not names())

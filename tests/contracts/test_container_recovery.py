"""Containers when something goes away: the server between two calls, the engine, a container, the machine."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.contracts.backend_bench import Bench, until
from tests.contracts.container_backend import a_bench, world_of
from trainshed.backends.container.containers import EngineContainers
from trainshed.backends.container.engine import Engine
from trainshed.backends.container.mount_preparer import EngineVolumes
from trainshed.backends.container.run import reload
from trainshed.backends.machine.run_folders import run_folder
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.replica import Exit, Sight


class Killed(BaseException):
    """The server, at this line."""


@pytest.fixture
async def bench(tmp_path: Path, podman: Podman, tools: Path):
    async with a_bench(tmp_path, podman, tools) as bench:
        yield bench


@pytest.fixture
def engine(podman: Podman):
    """The engine, which a test may end: it is there again for the next one."""
    yield podman
    if podman.service is None:
        podman.start()


def containers(bench: Bench, podman: Podman) -> list[str]:
    return sorted(name for name in podman.containers() if bench.job in name)


# The server


async def test_a_server_killed_before_the_container_was_started_leaves_it_to_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    async def start(self: EngineContainers, name: str) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(EngineContainers, "start", start)
        with pytest.raises(Killed):
            await bench.backend.launch(bench.launch(bench.programs.prints("once\n")))
    await bench.renew()
    assert await bench.backend.observe(bench.job) == ()
    assert bench.job in await bench.backend.jobs()
    await bench.backend.launch(bench.launch(bench.programs.prints("once\n")))
    assert (await bench.ended(bench.key())).exit == Exit(code=0)
    assert bench.out() == "once\n"


async def test_a_run_that_ends_before_the_engine_says_that_it_was_started_has_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """Left unstarted by a killed server, and started by the next."""
    start = EngineContainers.start

    async def die(self: EngineContainers, name: str) -> None:
        raise Killed

    async def start_slowly(self: EngineContainers, name: str) -> None:
        await start(self, name)
        await bench.ended(bench.key())

    launch = bench.launch(bench.programs.prints("once\n"))
    with monkeypatch.context() as patch:
        patch.setattr(EngineContainers, "start", die)
        with pytest.raises(Killed):
            await bench.backend.launch(launch)
    await bench.renew()
    monkeypatch.setattr(EngineContainers, "start", start_slowly)
    await bench.backend.launch(launch)
    seen = await bench.see(bench.key())
    assert seen is not None and seen.exit == Exit(code=0)


async def test_a_server_killed_right_after_the_container_was_started_does_not_start_it_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    start = EngineContainers.start

    async def start_and_die(self: EngineContainers, name: str) -> None:
        await start(self, name)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(EngineContainers, "start", start_and_die)
        with pytest.raises(Killed):
            await bench.backend.launch(bench.launch(bench.programs.sleeps()))
    await bench.renew()
    await bench.backend.launch(bench.launch(bench.programs.sleeps()))
    await bench.renew()
    seen = await bench.see(bench.key())
    assert seen is not None and seen.alive
    await until(lambda: bench.out() == "ready\n")


async def test_what_was_begun_is_not_begun_again_even_by_hand(bench: Bench, podman: Podman):
    seen = await bench.run(bench.programs.prints("once\n"))
    podman.run("start", world_of(bench).name(bench.key()))
    podman.run("wait", world_of(bench).name(bench.key()))
    assert bench.out() == "once\n"
    await bench.renew()
    again = await bench.see(bench.key())
    assert again is not None and (again.exit, again.ended_at) == (seen.exit, seen.ended_at)


async def test_containers_and_networks_that_no_folder_knows_are_taken_away_and_others_are_not(
    bench: Bench, podman: Podman
):
    home = (world_of(bench).home / "id").read_text()
    left, other = f"trainshed-{home}-gone.1.0.0.0", f"other-{bench.job}"
    podman.run("create", "--name", left, "--label", f"trainshed.home={home}", BASE, "true")
    podman.run("create", "--name", other, "--label", "trainshed.home=other", BASE, "true")
    labels = ("--label", f"trainshed.home={home}", "--label", "trainshed.job=gone")
    podman.run("network", "create", *labels, f"trainshed-{home}-gone")
    try:
        await bench.begin(bench.programs.sleeps())
        await bench.renew()
        await until(lambda: left not in podman.containers())
        await until(lambda: f"trainshed-{home}-gone" not in podman.networks())
        assert other in podman.containers()
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive
    finally:
        podman.run("rm", other)


async def test_removing_leaves_nothing_in_the_engine(bench: Bench, podman: Podman):
    await bench.begin(bench.programs.sleeps())
    assert containers(bench, podman) and any(bench.job in name for name in podman.networks())
    await bench.backend.remove(bench.job)
    await until(lambda: not containers(bench, podman))
    await until(lambda: not any(bench.job in name for name in podman.networks()))


async def test_the_end_of_a_job_leaves_volumes_of_others_alone_though_no_container_has_them_yet(
    podman: Podman,
):
    engine = Engine(str(podman.socket))
    volumes = EngineVolumes(engine, "home")
    for job in ("one", "other"):
        await volumes.make({"Name": volumes.name(job, "x"), "Labels": volumes.labels(job)})
    await volumes.remove("one")
    assert [job for job in ("one", "other") if volumes.name(job, "x") in podman.run("volume", "ls")] == [
        "other"
    ]
    await volumes.remove("other")
    assert "trainshed-home-" not in podman.run("volume", "ls")
    await engine.close()


async def test_removing_a_volume_leaves_alone_what_a_killed_engine_had_mounted_there(
    podman: Podman, tmp_path: Path
):
    """An engine that is killed right after a mount knows nothing of it, and would delete what is there."""
    engine = Engine(str(podman.socket))
    volumes = EngineVolumes(engine, "home")
    (data := tmp_path / "share").mkdir()
    (data / "results").write_text("a week of work")
    options = {"type": "none", "device": str(data), "o": "bind"}
    name = volumes.name("one", "nfs")
    await volumes.make({"Name": name, "DriverOpts": options, "Labels": volumes.labels("one")})
    place = podman.run("volume", "inspect", "--format", "{{.Mountpoint}}", name).strip()
    subprocess.run(["mount", "--bind", str(data), place], check=True)
    await volumes.remove("one")
    assert (data / "results").read_text() == "a week of work"
    assert place not in Path("/proc/mounts").read_text()
    assert not Path(place).exists()
    await engine.close()


# The engine


async def test_an_engine_is_asked_how_it_is_set_up_once_and_again_when_it_was_restarted(engine: Podman):
    """Podman takes a quarter of a second of CPU to answer, and half a second to tell its version."""
    client = Engine(str(engine.socket))
    before = await client.about()
    assert await client.is_podman() and await client.about() is before
    engine.restart()
    after = await client.about()
    assert after is not before and after["DockerRootDir"] == before["DockerRootDir"]
    await client.close()


async def test_containers_go_on_are_asked_and_seen_to_end_while_the_engine_is_away(
    bench: Bench, engine: Podman
):
    key = await bench.begin(bench.programs.counts())
    engine.stop()
    await bench.backend.stop(key, force=False)
    await until(lambda: "term" in bench.out())
    await bench.backend.stop(key, force=True)
    assert (await bench.ended(key)).exit == Exit(signal=9)
    with pytest.raises(Unavailable):
        await bench.backend.launch(bench.launch(bench.programs.prints("next\n"), run=1))
    engine.start()
    await bench.backend.launch(bench.launch(bench.programs.prints("next\n"), run=1))
    assert (await bench.ended(bench.key(1))).exit == Exit(code=0)
    assert bench.out() == "ready\nterm\nnext\n"


async def test_a_run_that_ends_by_itself_while_the_engine_is_away_has_its_true_end(
    bench: Bench, engine: Podman
):
    await bench.backend.launch(bench.launch(("sh", "-c", "echo ready; sleep 1; exit 7")))
    engine.restart()
    engine.stop()
    assert (await bench.ended(bench.key())).exit == Exit(code=7)


async def test_after_a_reboot_a_run_is_lost_and_its_replica_can_be_started_again(
    bench: Bench, engine: Podman
):
    key = await bench.begin(bench.programs.sleeps())
    await bench.backend.close()
    engine.reboot()
    bench.backend = await bench.world.backend()
    assert (await bench.ended(key)).sight is Sight.LOST
    await bench.begin(bench.programs.sleeps(), run=1)


# A container, a network


async def test_an_init_killed_from_outside_leaves_a_lost_run(bench: Bench, podman: Podman):
    key = await bench.begin(bench.programs.stubborn())
    pid = json.loads(podman.run("inspect", world_of(bench).name(key)))[0]["State"]["Pid"]
    os.kill(pid, signal.SIGKILL)
    assert (await bench.ended(key)).sight is Sight.LOST
    assert bench.world.leftovers(bench.job) == []


async def test_a_network_that_was_taken_away_is_made_again(bench: Bench, podman: Podman):
    await bench.run(bench.programs.exits(1))
    for name in podman.networks():
        if bench.job in name:
            podman.run("network", "rm", "--force", name)
    again = bench.launch(bench.programs.exits(0), run=1)
    with pytest.raises(Unavailable):
        await bench.backend.launch(again)
    await bench.backend.launch(again)
    assert (await bench.ended(bench.key(1))).exit == Exit(code=0)
    (network,) = (name for name in podman.networks() if bench.job in name)
    folder = run_folder(world_of(bench).home / "jobs", bench.key(1))
    assert reload(bench.key(1), folder).network == network


async def test_a_program_that_writes_into_its_record_decides_nothing_while_it_lives(bench: Bench):
    forge = "printf 'exit 0 1\\nsignal 3 x\\nexit 999 1\\n' >> /.trainshed/record; echo ready; sleep 1000"
    key = await bench.begin(("sh", "-c", forge))
    await bench.renew()
    seen = await bench.see(key)
    assert seen is not None and seen.alive
    await bench.backend.stop(key, force=False)
    assert (await bench.ended(key)).exit == Exit(signal=15)


async def test_a_container_the_engine_has_lost_half_of_goes_and_keeps_nobody_from_starting(
    bench: Bench, podman: Podman
):
    home = (world_of(bench).home / "id").read_text()
    name = f"trainshed-{home}-half"
    podman.run("run", "--detach", "--name", name, "--label", f"trainshed.home={home}", BASE, "true")
    identity = podman.run("inspect", name, "--format", "{{.Id}}").strip()
    await bench.backend.close()
    podman.stop()
    listed = podman.folder / "graph" / "overlay-containers" / "containers.json"
    kept = [one for one in json.loads(listed.read_text()) if one["id"] != identity]
    listed.write_text(json.dumps(kept))
    podman.start()
    bench.backend = await bench.world.backend()
    assert (await bench.run(bench.programs.exits(0))).exit == Exit(code=0)
    await until(lambda: name not in podman.containers())

"""What holds around a program in a container, on a real Podman; and what only that engine has."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.engine import Podman, an_engine
from tests.contracts.backend_bench import Bench, until
from tests.contracts.container_backend import MIB, ContainerContract, a_bench, of_gang, run
from tests.contracts.limits import LimitsContract, sharing
from trainshed.backends.container.network import NetworkIsolation
from trainshed.core.jobs.replica import Exit


class TestContainers(ContainerContract): ...


def groups_of(job: str) -> list[Path]:
    top = Path("/sys/fs/cgroup")
    return [group for place in ("", "*/") for group in top.glob(f"{place}trainshed-*/{job}")]


class TestMemory(LimitsContract):
    @pytest.fixture
    async def bench(self, tmp_path: Path, podman: Podman, tools: Path):
        async with a_bench(tmp_path, podman, tools) as bench:
            yield bench

    async def test_no_cgroup_stays_behind(self, bench: Bench):
        await run(bench, sharing(bench.launch(("true",)), own=32 * MIB, room=64 * MIB, replicas=2))
        assert groups_of(bench.job)
        await bench.backend.remove(bench.job)
        await until(lambda: not groups_of(bench.job))


class TestMemoryByAWatch(TestMemory):
    """As where the engine leaves cgroups to systemd."""

    @pytest.fixture(autouse=True)
    def no_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("trainshed.backends.container.limits.DRIVER", "other")

    async def test_no_cgroup_stays_behind(self, bench: Bench):
        await run(bench, sharing(bench.launch(("true",)), own=32 * MIB, room=64 * MIB, replicas=2))
        assert not groups_of(bench.job)


@pytest.fixture
async def bench(tmp_path: Path, podman: Podman, tools: Path):
    async with a_bench(tmp_path, podman, tools) as bench:
        yield bench


async def test_without_a_rule_of_ours_the_engine_keeps_networks_apart(
    bench: Bench, podman: Podman, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(NetworkIsolation, "_add_rule", lambda _: False)
    await run(bench, of_gang(bench, ("true",), 0, 1))
    (name,) = (name for name in podman.networks() if bench.job in name)
    assert json.loads(podman.run("network", "inspect", name))[0]["options"] == {"isolate": "true"}


@pytest.fixture
def engine_with_gpus():
    """One that finds three devices, as a driver's tools describe them: an engine looks at its start."""
    described = Path("/var/run/cdi/trainshed-tests.json")
    if {*Path("/etc/cdi").glob("*"), *described.parent.glob("*")} - {described}:
        pytest.skip("this machine has CDI devices of its own")
    described.parent.mkdir(exist_ok=True)
    devices = [{"name": n, "containerEdits": {"env": [f"SEES_{n}=1"]}} for n in ("0", "1", "2")]
    described.write_text(json.dumps({"cdiVersion": "0.3.0", "kind": "nvidia.com/gpu", "devices": devices}))
    with an_engine() as engine:
        yield engine
    described.unlink()


async def test_a_replica_sees_the_gpus_it_was_given_and_no_other(
    tmp_path: Path, engine_with_gpus: Podman, tools: Path
):
    async with a_bench(tmp_path, engine_with_gpus, tools) as bench:
        launch = of_gang(bench, ("sh", "-c", "env; pwd; hostname"), 0, 1)
        launch = replace(launch, placement=replace(launch.placement, gpus=("0", "2")))
        seen = await run(bench, launch)
        assert seen.exit == Exit(code=0), bench.err()
        lines = bench.out().splitlines()
        assert "SEES_0=1" in lines and "SEES_2=1" in lines and "SEES_1=1" not in lines
        assert "NVIDIA_VISIBLE_DEVICES=0,2" in lines and lines[-2:] == ["/", "workerpool0-0"]


async def test_a_gpu_that_the_engine_does_not_know_ends_the_run_and_says_so(bench: Bench):
    launch = of_gang(bench, ("true",), 0, 1)
    seen = await run(bench, replace(launch, placement=replace(launch.placement, gpus=("7",))))
    assert seen.exit == Exit(code=126)
    assert "nvidia.com/gpu=7" in bench.err()

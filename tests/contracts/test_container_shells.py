"""The container backend keeps the promises of shells, on a real Podman."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.contracts.backend_bench import Bench, World, benched, until
from tests.contracts.shells import MARKED, ShellsContract, all_of, sees
from tests.contracts.test_container_backend import ContainerWorld
from trainshed.core.shell_port import Screen, Shells

pytestmark = pytest.mark.containers


class TestContainerShells(ShellsContract):
    @pytest.fixture
    async def world(self, tmp_path: Path, podman: Podman, tools: Path):
        yield ContainerWorld(tmp_path / "home", podman, tools)

    @pytest.fixture
    async def bench(self, world: World, tmp_path: Path):
        async with benched(world, tmp_path) as bench:
            yield bench

    async def test_a_shell_has_no_more_rights_than_the_program(self, opened):  # pyright: ignore
        terminal = await opened(("sh", "-c", "grep -E 'CapEff|NoNewPrivs' /proc/1/status /proc/self/status"))
        lines = [line.split(":", 1)[1].split() for line in (await all_of(terminal)).splitlines()]
        caps = [value for name, value in lines if name == "CapEff:"]
        assert len(caps) == 2 and int(caps[1], 16) & ~int(caps[0], 16) == 0
        assert [value for name, value in lines if name == "NoNewPrivs:"] == ["1", "1"]

    async def test_shells_of_a_killed_server_are_ended_by_the_next(
        self,
        opened,  # pyright: ignore
        bench: Bench,
        world: ContainerWorld,
    ):
        terminal = await opened(
            ("sh", "-c", f"trap '' HUP TERM; : {MARKED}; echo began; sleep 500; sleep 500")
        )
        await sees(terminal, "began")
        successor = await world.backend()
        await until(lambda: not [one for one in world.leftovers(bench.job) if MARKED in one])
        seen = await bench.see(bench.key())
        assert seen is not None and seen.alive
        await successor.close()

    async def test_an_image_without_a_shell_is_told_so(
        self, bench: Bench, shells: Shells, world: ContainerWorld, tmp_path: Path
    ):
        (tmp_path / "rootfs").mkdir()
        program = tmp_path / "rootfs" / "stay"
        source = tmp_path / "stay.c"
        source.write_text('#include <unistd.h>\nint main(){write(1,"ready\\n",6);for(;;)pause();}\n')
        archive = str(tmp_path / "image.tar")
        subprocess.run(["cc", "-static", "-o", str(program), str(source)], check=True)
        subprocess.run(["tar", "-C", str(tmp_path / "rootfs"), "-cf", archive, "."], check=True)
        world.podman.run("import", archive, "localhost/bare:1")
        await bench.backend.launch(replace(bench.launch(("/stay",)), image="localhost/bare:1"))
        await until(lambda: "ready" in bench.out())
        terminal = await shells.open_shell(bench.key(), (), Screen())
        assert "has no shell" in await all_of(terminal)
        assert await terminal.wait() in (126, 127)
        await terminal.close()

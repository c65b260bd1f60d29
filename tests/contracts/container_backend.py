"""What holds around a program in a container, on any engine: limits, walls, names, its image's word."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.contracts.backend_bench import Bench, benched, until
from tests.contracts.test_container_backend import ContainerWorld
from trainshed.backends.machine.process_group import ProcessCeiling
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.replica import Exit, Observation, Sight

MIB = 1 << 20


HOG = "x = []\nwhile True: x.append(bytearray(1 << 20))"


LISTEN = """
import socket
server = socket.create_server(("", 2222))
print("ready", flush=True)
while True:
    server.accept()[0].sendall(b"hello")
"""


CALL = """
import socket, sys
with socket.create_connection((sys.argv[1], 2222), timeout=float(sys.argv[2])) as talk:
    print(talk.recv(9).decode())
"""


TRY = """
import ipaddress, socket, sys
own = ipaddress.ip_interface(socket.gethostbyname(socket.gethostname()) + "/27")
for place in ((str(own.network[1]), int(sys.argv[1])), ("192.0.2.1", 53)):
    try:
        socket.create_connection(place, timeout=2).close()
        print("open", place)
    except ConnectionRefusedError:
        print("refused", place)
    except OSError:
        pass
"""


@asynccontextmanager
async def a_bench(folder: Path, podman: Podman, tools: Path) -> AsyncIterator[Bench]:
    folder.mkdir(exist_ok=True)
    async with benched(ContainerWorld(folder / "home", podman, tools), folder) as bench:
        yield bench


def world_of(bench: Bench) -> ContainerWorld:
    assert isinstance(bench.world, ContainerWorld)
    return bench.world


def sized(launch: Launch, *, cpus: float = 1, memory: int = 64 * MIB) -> Launch:
    return replace(launch, placement=replace(launch.placement, cpus=cpus, memory=memory))


def python(code: str, *words: str) -> tuple[str, ...]:
    return ("python3", "-c", code, *words)


def of_gang(bench: Bench, command: tuple[str, ...], index: int, count: int) -> Launch:
    launch = sized(bench.launch(command, index=index))
    hosts = tuple(f"workerpool0-{n}" for n in range(count))
    return replace(launch, peers=hosts, placement=replace(launch.placement, host=hosts[index]))


async def run(bench: Bench, launch: Launch) -> Observation:
    await bench.backend.launch(launch)
    return await bench.ended(launch.key)


class ContainerContract:
    @pytest.fixture
    async def bench(self, tmp_path: Path, podman: Podman, tools: Path):
        async with a_bench(tmp_path, podman, tools) as bench:
            yield bench

    async def test_a_memory_hog_is_killed_alone_and_its_end_says_so(self, bench: Bench):
        await bench.backend.launch(bench.launch(bench.programs.sleeps(), index=1))
        seen = await run(bench, sized(bench.launch(python(HOG))))
        assert seen.exit == Exit(signal=9)
        assert "want of memory" in seen.out_of_memory and seen.over_limit
        other = await bench.see(bench.key(index=1))
        assert other is not None and other.alive

    async def test_a_program_whose_child_was_killed_for_memory_is_told_so_with_its_own_code(
        self, bench: Bench
    ):
        parent = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {HOG!r}]) and 3)"
        seen = await run(bench, sized(bench.launch(python(parent))))
        assert seen.exit == Exit(code=3)
        assert "want of memory" in seen.out_of_memory and not seen.over_limit

    async def test_a_program_that_succeeds_is_not_told_of_memory(self, bench: Bench):
        parent = f"import subprocess, sys; subprocess.call([sys.executable, '-c', {HOG!r}])"
        seen = await run(bench, sized(bench.launch(python(parent))))
        assert seen.exit == Exit(code=0) and seen.out_of_memory == ""

    async def test_a_fork_bomb_stays_in_its_box(self, bench: Bench, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(ProcessCeiling, "of", lambda *_: 64)
        bomb = """
import os, time
count = 1
try:
    while True:
        if os.fork() == 0: time.sleep(1000)
        count += 1
except OSError:
    print("ready", count, flush=True)
    time.sleep(1000)
"""
        await bench.backend.launch(sized(bench.launch(python(bomb)), memory=512 * MIB))
        await until(lambda: bench.out().endswith("\n"))
        assert 32 < int(bench.out().split()[1]) < 64
        await bench.backend.launch(bench.launch(bench.programs.prints("here\n"), index=1))
        await bench.ended(bench.key(index=1))
        assert bench.out(1) == "here\n"
        await bench.backend.stop(bench.key(), force=True)
        assert (await bench.ended(bench.key())).exit == Exit(signal=9)

    async def test_a_program_that_fails_because_it_may_have_no_more_processes_is_told_its_limit(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(ProcessCeiling, "of", lambda *_: 64)
        bomb = "import os, time\nfor _ in range(200):\n    if os.fork() == 0: time.sleep(1000)"
        seen = await run(bench, sized(bench.launch(python(bomb)), memory=512 * MIB))
        assert seen.exit == Exit(code=1)
        assert "its limit is 64 processes and threads" in seen.process_limit

    async def test_a_program_has_the_processors_it_was_given_and_no_more(self, bench: Bench):
        burn = """
import time
began = time.monotonic()
while time.monotonic() - began < 2: pass
print(time.process_time() / (time.monotonic() - began))
"""
        await run(bench, sized(bench.launch(python(burn)), cpus=0.25))
        assert float(bench.out()) < 0.4

    async def test_shared_memory_is_half_of_what_it_has(self, bench: Bench):
        await run(bench, sized(bench.launch(("df", "--output=size", "-B1", "/dev/shm"))))
        assert int(bench.out().split()[1]) == 32 * MIB

    async def test_a_program_has_few_rights_and_no_namespace_of_the_machine(self, bench: Bench):
        look = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
spaces = {name: os.readlink("/proc/self/ns/" + name) for name in ("net", "pid", "ipc", "uts", "mnt")}
print(json.dumps({"status": {k: v.strip() for k, v in status.items()}, "spaces": spaces}))
"""
        await run(bench, bench.launch(python(look)))
        told = json.loads(bench.out())
        assert told["status"]["NoNewPrivs"] == "1"
        assert told["status"]["Seccomp"] == "2"
        rights = int(told["status"]["CapBnd"], 16)
        for number in (
            12,
            13,
            19,
            21,
            27,
            29,
            31,
        ):  # net_admin net_raw ptrace sys_admin mknod audit_write setfcap
            assert not rights >> number & 1
        for name, space in told["spaces"].items():
            assert space != os.readlink(f"/proc/self/ns/{name}")

    async def test_replicas_find_each_other_by_name_and_others_do_not_reach_them(
        self, bench: Bench, tmp_path: Path, podman: Podman, tools: Path
    ):
        await bench.backend.launch(of_gang(bench, python(LISTEN), 0, 2))
        await until(lambda: "ready" in bench.out())
        peer = await run(bench, of_gang(bench, python(CALL, "workerpool0-0", "30"), 1, 2))
        assert peer.exit == Exit(code=0), bench.err(1)
        assert bench.out(1) == "hello\n"
        name = world_of(bench).name(bench.key())
        nets = json.loads(podman.run("inspect", name))[0]["NetworkSettings"]["Networks"]
        address = next(iter(nets.values()))["IPAddress"]
        async with a_bench(
            tmp_path / "third", podman, tools
        ) as third:  # whose end changes nothing for others
            await run(third, of_gang(third, ("true",), 0, 1))
        async with a_bench(tmp_path / "other", podman, tools) as other:
            stranger = await run(other, of_gang(other, python(CALL, address, "3"), 0, 1))
            assert stranger.exit == Exit(code=1) and "imeout" in other.err()
            assert bench.out() == "ready\n"

    async def test_two_jobs_can_listen_on_the_same_port(
        self, bench: Bench, tmp_path: Path, podman: Podman, tools: Path
    ):
        await bench.backend.launch(of_gang(bench, python(LISTEN), 0, 1))
        async with a_bench(tmp_path / "other", podman, tools) as other:
            await other.backend.launch(of_gang(other, python(LISTEN), 0, 1))
            await until(lambda: "ready" in bench.out() and "ready" in other.out())

    async def test_an_isolated_job_reaches_its_own_replicas_and_nothing_of_this_machine_or_beyond(
        self, bench: Bench
    ):
        await bench.backend.launch(replace(of_gang(bench, python(LISTEN), 0, 3), isolated=True))
        await until(lambda: "ready" in bench.out())
        peer = replace(of_gang(bench, python(CALL, "workerpool0-0", "30"), 1, 3), isolated=True)
        assert (await run(bench, peer)).exit == Exit(code=0), bench.err(1)
        with socket.socket() as listener:
            listener.bind(("0.0.0.0", 0))
            listener.listen()
            port = str(listener.getsockname()[1])
            seen = await run(bench, replace(of_gang(bench, python(TRY, port), 2, 3), isolated=True))
        assert seen.exit == Exit(code=0), bench.err(2)
        assert bench.out(2) == "", "an isolated job reached something"

    async def test_a_restarted_replica_has_its_address_again(self, bench: Bench):
        show = python("import socket; print(socket.gethostbyname(socket.gethostname()))")
        for number in range(2):
            launch = of_gang(bench, show, 1, 2)
            await run(bench, replace(launch, key=bench.key(number, index=1)))
        first, second = bench.out(1).split()
        assert first == second and first.startswith("10.")

    async def test_a_large_gang_has_a_network_with_room_for_all_of_it(self, bench: Bench):
        seen = await run(bench, of_gang(bench, ("sh", "-c", "grep -c workerpool0- /etc/hosts"), 299, 300))
        assert seen.exit == Exit(code=0), bench.err(299)
        assert int(bench.out(299)) >= 300

    @pytest.fixture
    def image(self, podman: Podman) -> str:
        """One with an entry point, arguments, variables, a folder and a user of its own."""
        text = f"""FROM {BASE}
ENV WHO=image WHAT=kept
WORKDIR /srv/here
USER 65534:65534
ENTRYPOINT ["sh", "-c", "echo $0 $@; pwd; id -u; echo $WHO $WHAT"]
CMD ["own", "words"]
"""
        podman.run("build", "--tag", "localhost/box-says:1", "-", feed=text.encode())
        return "localhost/box-says:1"

    async def test_an_image_is_run_as_it_says(self, bench: Bench, image: str):
        seen = await run(bench, replace(bench.launch(()), image=image))
        assert seen.exit == Exit(code=0), bench.err()
        assert bench.out().splitlines() == ["own words", "/srv/here", "65534", "image kept"]

    async def test_arguments_replace_those_of_the_image_and_variables_of_the_job_win(
        self, bench: Bench, image: str
    ):
        launch = replace(bench.launch(()), image=image, args=("given", "here"), env={"WHO": "job"})
        await run(bench, launch)
        assert bench.out().splitlines() == ["given here", "/srv/here", "65534", "job kept"]

    async def test_a_command_replaces_the_entry_point(self, bench: Bench, image: str):
        await run(bench, replace(bench.launch(("echo", "command")), image=image, args=("and", "arguments")))
        assert bench.out() == "command and arguments\n"

    async def test_an_image_whose_user_is_not_there_ends_at_once_and_says_why(
        self, bench: Bench, podman: Podman
    ):
        podman.run(
            "build", "--tag", "localhost/box-nobody:1", "-", feed=f"FROM {BASE}\nUSER ghost\n".encode()
        )
        seen = await run(bench, replace(bench.launch(("true",)), image="localhost/box-nobody:1"))
        assert seen.sight is Sight.ENDED and seen.exit == Exit(code=126)
        assert "ghost" in bench.err()

    async def test_two_hundred_thousand_lines_come_whole(self, bench: Bench):
        await run(bench, sized(bench.launch(("seq", "200000"))))
        lines = await asyncio.to_thread(bench.out)
        assert lines == "".join(f"{n}\n" for n in range(1, 200_001))

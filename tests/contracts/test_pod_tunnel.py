"""The tunnel of a pod, without a cluster: a real init, real programs, and a server of echoes behind it."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.backend_bench import until
from tests.contracts.test_pod_channel import Pod, pod
from tests.network import quiet_port
from trainshed.backends.cluster.pod_connection import PodDoor
from trainshed.backends.cluster.tunnel import PodTunnel
from trainshed.backends.machine.loopback import Streams

__all__ = ["pod"]

MIB = 1 << 20
ECHOES = """
import socket, sys, threading
port, count = int(sys.argv[1]), int(sys.argv[2])
def call(number):
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"%d" % number)
        line.shutdown(socket.SHUT_WR)
        heard = b"".join(iter(lambda: line.recv(100), b""))
    assert heard == b"%d" % number, heard
calls = [threading.Thread(target=call, args=(number,)) for number in range(count)]
[call.start() for call in calls]
[call.join() for call in calls]
print("all", count, flush=True)
"""
MUCH = """
import socket, sys, threading
port, size = int(sys.argv[1]), int(sys.argv[2])
line = socket.create_connection(("127.0.0.1", port))
def send():
    for _ in range(size): line.sendall(bytes(1 << 20))
    line.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
print(sum(len(piece) for piece in iter(lambda: line.recv(1 << 20), b"")) >> 20, flush=True)
"""


class Echoes:
    """A server that answers with what it hears; `dial` leads there. It counts who came, and for which job."""

    def __init__(self) -> None:
        self.came: list[tuple[int, str]] = []
        self.server: asyncio.Server | None = None

    async def dial(self, port: int, job: str) -> Streams | None:
        self.came.append((port, job))
        assert self.server is not None
        return await asyncio.open_connection(*self.server.sockets[0].getsockname())

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(MIB):
                writer.write(piece)
                await writer.drain()
        finally:  # also where the test ends meanwhile
            writer.close()


@pytest.fixture
async def echoes() -> AsyncIterator[Echoes]:
    echoes = Echoes()
    echoes.server = await asyncio.start_server(echoes.answer, "127.0.0.1", 0)
    yield echoes
    echoes.server.close()


def started(pod: Pod, port: int, program: str, *words: str) -> "asyncio.Task[None]":
    pod.start("--begin", "--tunnel", str(port), sys.executable, "-c", program, str(port), *words)
    return asyncio.create_task(pod.follow(pod.channel()))


@contextlib.asynccontextmanager
async def tunnelled(pod: Pod, echoes: Echoes) -> AsyncIterator[PodTunnel]:
    door = PodDoor(api=None, pod="pod", token="secret", port=pod.port)  # pyright: ignore[reportArgumentType]
    tunnel = PodTunnel(door, echoes.dial, "7")
    keeping = asyncio.create_task(tunnel.keep("127.0.0.1"))
    yield tunnel
    keeping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keeping


async def test_many_programs_reach_the_server_at_once_and_it_knows_whose_they_are(pod: Pod, echoes: Echoes):
    port = quiet_port()
    async with tunnelled(pod, echoes):
        following = started(pod, port, ECHOES, "64")
        await until(lambda: "all 64" in pod.out)
    assert echoes.came == [(port, "7")] * 64
    following.cancel()


async def test_connections_wait_while_no_server_is_there_and_come_to_the_next(pod: Pod, echoes: Echoes):
    following = started(pod, quiet_port(), ECHOES, "20")
    await until(lambda: pod.record.begun)
    await asyncio.sleep(0.5)
    assert echoes.came == []
    async with tunnelled(pod, echoes):
        await until(lambda: "all 20" in pod.out)
    following.cancel()


async def test_who_is_taken_by_a_server_that_does_not_answer_goes_to_the_next(pod: Pod, echoes: Echoes):
    """It is there, and silent: the init gives it up and asks another one."""
    following = started(pod, quiet_port(), "import time; time.sleep(1)\n" + ECHOES, "3")
    await until(lambda: pod.record.begun)
    _, silent = await asyncio.open_connection("127.0.0.1", pod.port)
    silent.write(b"secret tunnel\n")
    await asyncio.sleep(2)
    async with tunnelled(pod, echoes):
        await until(lambda: "all 3" in pod.out)
    silent.close()
    following.cancel()


@pytest.mark.slow
async def test_a_gigabyte_each_way_needs_little_memory(pod: Pod, echoes: Echoes):
    before = resident()
    most = 0
    async with tunnelled(pod, echoes):
        following = started(pod, quiet_port(), MUCH, "1024")
        while "1024" not in pod.out:
            most = max(most, resident())
            await asyncio.sleep(0.05)
    assert most - before < 30 * MIB
    following.cancel()


async def test_a_pod_whose_programs_connect_to_nothing_costs_one_connection(pod: Pod, echoes: Echoes):
    async with tunnelled(pod, echoes) as tunnel:
        following = started(pod, quiet_port(), "import time; print('up', flush=True); time.sleep(60)")
        await until(lambda: "up" in pod.out)
        await until(lambda: connections(pod.port) == 2)  # the one for output, and the one that waits
        assert tunnel._idle == 1
    following.cancel()


async def test_a_port_at_which_the_init_may_not_listen_is_told(pod: Pod):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        following = started(pod, taken.getsockname()[1], "print('begun')")
        await until(lambda: pod.record.exit is not None)
        assert pod.record.unheard == taken.getsockname()[1] and pod.out == "begun\n"
    following.cancel()


async def test_weak_variables_give_way_to_those_of_the_image(pod: Pod, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"A": "image", "TRAINSHED_DEFAULT_A": "weak", "TRAINSHED_DEFAULT_B": "weak"}.items():
        monkeypatch.setenv(name, value)
    pod.start("--begin", "sh", "-c", "echo $A $B $(env | grep -c TRAINSHED_DEFAULT)")
    following = asyncio.create_task(pod.follow(pod.channel()))
    await until(lambda: pod.out == "image weak 0\n")
    following.cancel()


async def test_a_program_has_the_variables_of_the_common_text_and_not_the_texts_themselves(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
):
    texts = {"COMMON": "A=one\x1eB=two = $A\x1eTRAINSHED_DEFAULT_C=three\x1e\x1eno", "TEXT_0": "x"}
    for name, value in texts.items():
        monkeypatch.setenv(f"TRAINSHED_POD_{name}", value)
    pod.start("--begin", "sh", "-c", "echo $A, $B, $C, $(env | grep -c TRAINSHED_POD)")
    await pod.follow(pod.channel())
    assert pod.out == "one, two = $A, three, 0\n"


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def connections(port: int) -> int:
    tables = [
        path.read_text() for path in Path("/proc/net").glob("tcp*")
    ]  # its own: tcp6, where there is IPv6
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)

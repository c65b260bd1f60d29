"""The channel and the init of pods, without a cluster: a real init, in a process namespace of its own."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from tests.contracts.backend_bench import until
from tests.network import needs_ipv6, quiet_port
from trainshed.backends.cluster import backend
from trainshed.backends.cluster.api import ClusterApi
from trainshed.backends.cluster.channel import PodChannel
from trainshed.backends.cluster.pod_connection import ChannelBroken, PodDoor
from trainshed.backends.machine.init_record import InitRecord, parse_record
from trainshed.core.jobs.replica import Exit
from trainshed.core.ports import Sink

SOURCE = Path(backend.__file__).with_name("pod_init.c")
TOKEN = "secret"
ADDRESSES = ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)]
NAME_PORT = 39053  # where tests answer what names mean
LINES = "".join(f"{number}\n" for number in range(300))
COUNTS = "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); [ $((i % 30)) = 0 ] && sleep 0.1; done; exit 3"

NOTHING: Mapping[str, str] = {}


@cache
def init(folder: Path) -> bytes:
    """The program, compiled for a folder with its files: most tests have the same, one after the other."""
    places = {"FOLDER": "run/", "RECORD": "record", "FILES": "files/", "CGROUP": "cgroup", "HOSTS": "hosts"}
    places["RESOLVER"] = "resolv.conf"
    defined = [f'-D{name}="{folder}/{place}"' for name, place in places.items()]
    defined += ["-DEXPOSED_FOR=1000000000LL", f"-DNAME_PORT={NAME_PORT}", "-DGIVE_UP=3600000000000LL"]
    with tempfile.NamedTemporaryFile() as program:
        subprocess.run(["cc", "-O1", *defined, "-o", program.name, SOURCE], check=True)
        return Path(program.name).read_bytes()


class NoForwarding:
    """In the place of the API server, through which a connection would go that cannot be made."""

    def websocket(self, *_: object) -> object:
        raise OSError("it does not listen, and nothing is forwarded here")


class Pod:
    """An init that runs as PID 1, and the files of the server for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sink = folder, Sink(stdout=str(folder / "o"), stderr=str(folder / "e"))
        for name in ("run", "files"):
            (folder / name).mkdir()
        (folder / "record").touch()
        (folder / "init").write_bytes(init(folder))
        (folder / "init").chmod(0o755)
        self.port = quiet_port()
        self.record = InitRecord()
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self, *words: str, wait: str = "30", start: str = "", user: int = 0, more: Mapping[str, str] = NOTHING
    ) -> None:
        mine = ["unshare", *([] if os.getuid() == 0 else ["-r"]), "--pid", "--mount-proc"]
        mine += ["--fork", "--kill-child"]
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        command = [*mine, *as_user, str(self.folder / "init"), str(self.port), wait, "30", *words]
        env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
        env |= {"TRAINSHED_POD_TOKEN": TOKEN, **({"TRAINSHED_POD_FOLDER": start} if start else {}), **more}
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=env, stdin=quiet, stdout=quiet, stderr=quiet)

    def door(self, token: str = TOKEN) -> PodDoor:
        return PodDoor(api=cast(ClusterApi, NoForwarding()), pod="pod", token=token, port=self.port)

    def channel(self, token: str = TOKEN) -> PodChannel:
        return PodChannel(self.door(token), self.sink, (0, 0))

    async def follow(
        self, channel: PodChannel, heard: Callable[[], object] = lambda: None, address: str = "127.0.0.1"
    ) -> None:
        """Until the connection ends."""

        def read(text: bytes) -> None:
            self.record = parse_record(text)
            heard()

        for _ in range(200):
            try:
                await channel.follow(address, read)
            except ChannelBroken as broken:
                if "does not listen" not in str(broken):
                    return
                await asyncio.sleep(0.05)

    @property
    def out(self) -> str:
        path = Path(self.sink.stdout)
        return path.read_text() if path.exists() else ""


@pytest.fixture
async def pod(tools: Path) -> AsyncIterator[Pod]:
    if (
        shutil.which("cc") is None
        or subprocess.run(["unshare", "--pid", "--mount-proc", "--fork", "true"], check=False).returncode
    ):
        pytest.skip("needs a C compiler, and the right to make process namespaces (root)")
    folder = tools / f"pod-{os.getpid()}"  # each worker has its own
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pod = Pod(folder)
    yield pod
    if pod.process is not None:
        pod.process.kill()
        pod.process.wait()


async def test_output_is_whole_and_each_byte_comes_once_however_often_the_connection_breaks(pod: Pod):
    pod.start("sh", "-c", COUNTS)
    first = pod.channel()
    following = asyncio.create_task(pod.follow(first, lambda: first.order("go")))
    for mark in ("40", "120", "200"):
        await until(lambda mark=mark: f"\n{mark}\n" in pod.out)
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        following = asyncio.create_task(pod.follow(pod.channel()))
    await until(lambda: pod.record.exit is not None)
    assert pod.record.exit == Exit(code=3)
    assert pod.out == LINES
    following.cancel()
    assert parse_record((pod.folder / "record").read_bytes()) == pod.record


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_server_reaches_an_init_by_addresses_of_both_kinds(pod: Pod, address: str):
    pod.start("sh", "-c", "echo here")
    channel = pod.channel()
    following = asyncio.create_task(pod.follow(channel, lambda: channel.order("go"), address))
    await until(lambda: pod.out == "here\n")
    following.cancel()


class Names(asyncio.DatagramProtocol):
    """A server of names that knows one kind of address, once it is asked for the second time."""

    def __init__(self, kind: int) -> None:
        self.kind, self.asked = kind, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked += 1
        count = int(self.asked > 2 and data[-3] == self.kind)
        self.transport.sendto(data[:2] + bytes((0x81, 0x80, 0, 1, 0, count)) + data[8:], addr)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("kind", [1, 28])
async def test_a_program_begins_once_names_have_addresses_of_either_kind(pod: Pod, address: str, kind: int):
    (pod.folder / "resolv.conf").write_text(f"search svc\nnameserver {address}\n")
    names = Names(kind)
    place = (address, NAME_PORT)
    server, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: names, place)
    try:
        pod.start("--begin", "echo", "begun", more={"TRAINSHED_POD_NAMES": "one.svc"})
        following = asyncio.create_task(pod.follow(pod.channel()))
        await until(lambda: pod.out == "begun\n")
        assert names.asked > 2
        following.cancel()
    finally:
        server.close()


async def test_a_pod_that_does_not_reach_the_api_at_an_address_of_ipv6_is_kept_apart(pod: Pod):
    nowhere = {"KUBERNETES_SERVICE_HOST": "2001:db8::1", "KUBERNETES_SERVICE_PORT": "443"}
    pod.start("--begin", "--apart", "echo", "begun", more=nowhere)
    following = asyncio.create_task(pod.follow(pod.channel()))
    await until(lambda: pod.out == "begun\n")
    following.cancel()


async def test_nothing_begins_without_the_token(pod: Pod):
    pod.start("sh", "-c", "echo no")
    await pod.follow(pod.channel("guess"))
    assert not pod.record.begun and pod.out == ""


async def test_an_init_that_was_told_that_all_is_here_ends_as_its_program_did(pod: Pod):
    pod.start("sh", "-c", "echo one; kill -9 $$")
    channel = pod.channel()
    await pod.follow(channel, lambda: channel.order("done" if pod.record.exit else "go"))
    assert pod.record.exit == Exit(signal=9) and pod.out == "one\n"
    assert pod.process is not None and pod.process.wait(10) == 137


async def test_a_program_is_asked_once_and_killed_with_all_that_it_left(pod: Pod):
    pod.start(
        "sh", "-c", "trap 'echo term' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.05; done"
    )
    channel = pod.channel()
    following = asyncio.create_task(pod.follow(channel, lambda: channel.order("go")))
    await until(lambda: "ready" in pod.out)
    for _ in range(3):
        channel.order("term")
    await until(lambda: "term" in pod.out)
    channel.order("kill")
    await until(lambda: pod.record.exit is not None)
    assert pod.record.exit == Exit(signal=9) and pod.out == "ready\nterm\n"
    following.cancel()


async def test_an_init_to_which_no_server_comes_ends_by_itself(pod: Pod):
    pod.start("sh", "-c", "exit 4", wait="1")
    channel = pod.channel()
    following = asyncio.create_task(pod.follow(channel, lambda: channel.order("go")))
    await until(lambda: pod.record.exit is not None)
    following.cancel()
    process = pod.process
    assert process is not None
    await until(lambda: process.poll() is not None)
    assert process.returncode == 4

"""The names that a pod's init is told: in its file before the program's first line, and as they are now."""

import asyncio
import subprocess
from pathlib import Path

from tests.contracts.backend_bench import until
from tests.contracts.test_pod_channel import Pod, pod
from trainshed.backends.cluster.pod_state import PodState
from trainshed.backends.cluster.run import PodRun, reload_run
from trainshed.core.names import ReplicaName, RunKey
from trainshed.core.ports import Sink

__all__ = ["pod"]

LOCAL = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


async def test_a_program_finds_the_names_from_its_first_line_and_those_that_moved_later(pod: Pod):
    hosts = pod.folder / "hosts"
    subprocess.run([pod.folder / "init", "--touch", hosts], check=True)
    assert hosts.read_text() == LOCAL
    pod.start("sh", "-c", f"cat {hosts}; exec sleep 60")
    channel = pod.channel()
    orders = "host 10.0.0.1 first\nhost 10.0.0.2 second\nhost 10.0.0.3 second.long.name\ngo"
    following = asyncio.create_task(pod.follow(channel, lambda: channel.order(orders)))
    names = "10.0.0.1\tfirst\n10.0.0.2\tsecond\n10.0.0.3\tsecond.long.name\n"
    await until(lambda: pod.out == LOCAL + names)
    channel.order("host 10.0.0.9 first\nhosts")
    moved = "10.0.0.2\tsecond\n10.0.0.3\tsecond.long.name\n10.0.0.9\tfirst\n"
    await until(lambda: hosts.read_text() == LOCAL + moved)
    following.cancel()


def a_run(index: int, address: str, **fields: object) -> PodRun:
    run = PodRun(RunKey(ReplicaName("7", 1, 0, index), 0), f"/none/{index}", f"pod-{index}")
    run.state = PodState(address=address, is_running=True)
    run.names, run.has_hosts = (f"tool-{index}",), True
    for name, value in fields.items():
        setattr(run, name, value)
    return run


def test_a_pod_is_told_all_names_that_have_an_address_and_its_own():
    first, second, third = a_run(0, "10.0.0.1"), a_run(1, "10.0.0.2"), a_run(2, "", state=None)
    first.aliases = (("127.0.0.1", "storage.googleapis.com"),)
    assert first.host_orders([first, second, third]).splitlines() == [
        "host 127.0.0.1 storage.googleapis.com",
        "host 10.0.0.1 tool-0",
        "host 10.0.0.1 workerpool0-0",
        "host 10.0.0.2 tool-1",
    ]


def test_a_later_server_knows_the_names(tmp_path: Path):
    folder = tmp_path / "run"
    run = a_run(0, "10.0.0.1", folder=str(folder), aliases=(("127.0.0.1", "x"),), reaches=True)
    run.prepare(Sink(stdout="/none", stderr="/none"))
    again = reload_run(run.key, folder)
    assert (again.names, again.has_hosts, again.aliases, again.reaches) == (
        ("tool-0",),
        True,
        (("127.0.0.1", "x"),),
        True,
    )

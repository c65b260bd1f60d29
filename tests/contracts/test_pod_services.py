"""What the init of a pod answers beside output, without a cluster: shells, what it uses, its stacks."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.contracts.backend_bench import until
from tests.contracts.shells import all_of, sees
from tests.contracts.test_container_stats import ASLEEP
from tests.contracts.test_pod_channel import Pod, pod  # noqa: F401 (a fixture)
from trainshed.backends.cluster import stacks
from trainshed.backends.cluster.pod_connection import ChannelBroken
from trainshed.backends.cluster.pod_doors import PodDoors
from trainshed.backends.cluster.shell import PodTerminal
from trainshed.backends.cluster.stacks import PodStacks
from trainshed.backends.cluster.stats import PodGauge
from trainshed.backends.machine import spy
from trainshed.core.metrics import GpuUse, Usage
from trainshed.core.shell_port import Screen

FAILS_WHEN_TOLD = "trap 'echo term' TERM; echo ready; while [ ! -e $0 ]; do sleep 0.05; done; exit 3"
AWAY = "(setsid sh -c 'trap \"\" HUP; sleep 1000 & wait' >/dev/null 2>&1 &) ; echo away; cat"


@pytest.fixture
async def running(pod: Pod) -> AsyncIterator[Pod]:  # noqa: F811
    pod.start("--begin", "--hold", "sh", "-c", FAILS_WHEN_TOLD, str(pod.folder / "fail"))
    following = asyncio.create_task(pod.follow(pod.channel()))
    await until(lambda: "ready" in pod.out)
    yield pod
    following.cancel()


def doors(pod: Pod, token: str = "secret") -> PodDoors:  # noqa: F811
    """The doors to one init on this machine."""
    door = pod.door(token)
    return cast(
        PodDoors,
        SimpleNamespace(
            connect=lambda run, purpose: door.connect("127.0.0.1", purpose), find=lambda key, *sights: key
        ),
    )


def run(gpus: int = 0) -> Any:
    """As much of a run as shells and stats look at."""
    return SimpleNamespace(gone=asyncio.Event(), gpus=gpus)


async def used(pod: Pod, gpus: int = 0) -> Usage:  # noqa: F811
    gauge = PodGauge(doors(pod), run(gpus))
    try:
        while True:
            usage = await gauge.ask()
            if usage is not None and len(usage.gpus) == gpus:
                return usage
    finally:
        await gauge.close()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


async def opened(pod: Pod, *words: str, screen: Screen | None = None) -> PodTerminal:  # noqa: F811
    terminal = PodTerminal(doors(pod), run(), words, screen)
    await terminal.opened()
    return terminal


def programs(pod: Pod) -> list[str]:  # noqa: F811
    """The command lines of all processes of the pod."""
    assert pod.process is not None
    todo, result = [pod.process.pid], list[str]()
    while todo:
        process = Path(f"/proc/{todo.pop()}")
        with contextlib.suppress(OSError):  # it may end meanwhile
            result.append((process / "cmdline").read_text().replace("\0", " "))
            todo += map(int, (process / "task" / process.name / "children").read_text().split())
    return result


async def test_a_shell_prints_and_tells_its_exit_code(running: Pod):
    terminal = await opened(running, "sh", "-c", "echo one; echo two >&2; exit 7")
    assert await all_of(terminal) == "one\ntwo\n"
    assert await terminal.wait() == 7


async def test_a_shell_begins_where_the_program_did(pod: Pod, tmp_path: Path):  # noqa: F811
    folder = tmp_path / "code"
    pod.start("--begin", "sh", "-c", "echo inside >note; echo ready; sleep 1000", start=str(folder))
    following = asyncio.create_task(pod.follow(pod.channel()))
    await until(lambda: "ready" in pod.out)
    terminal = await opened(pod, "cat", "note")
    assert await all_of(terminal) == "inside\n"
    following.cancel()


async def test_without_the_token_there_is_no_shell(running: Pod):
    terminal = PodTerminal(doors(running, "guess"), run(), ("echo", "no"), None)
    await terminal.opened()
    assert await all_of(terminal) == "" and await terminal.wait() == 137


async def test_a_long_command_arrives_whole(running: Pod):
    terminal = await opened(running, "sh", "-c", 'printf %s "$1"', "sh", "x" * 100_000)
    assert await all_of(terminal) == "x" * 100_000


async def test_what_left_its_session_ends_when_the_connection_does(running: Pod):
    terminal = await opened(running, "sh", "-c", AWAY, screen=Screen())
    await sees(terminal, "away")
    assert any("sleep 1000" in words for words in programs(running))
    terminal._task.cancel()
    await until(lambda: not any("sleep 1000" in words for words in programs(running)))
    await until(lambda: any("trap 'echo term'" in words for words in programs(running)))


async def test_what_left_its_session_ends_when_the_shell_does(running: Pod):
    terminal = await opened(running, "sh", "-c", AWAY, screen=Screen())
    await sees(terminal, "away")
    await terminal.finish()
    await all_of(terminal)
    assert await terminal.wait() == 0
    assert not any("sleep 1000" in words for words in programs(running))


async def test_a_shell_in_a_place_that_is_held_ends_with_it(running: Pod):
    channel = running.channel()
    following = asyncio.create_task(running.follow(channel))
    terminal = await opened(running, "sh", "-c", "echo in; cat", screen=Screen())
    await sees(terminal, "in")
    await until(lambda: channel.is_open)
    (running.folder / "fail").touch()
    await until(lambda: running.record.held is not None)
    assert await terminal.wait() == 137
    inside = await opened(running, "sh", "-c", "echo after; cat", screen=Screen())
    await sees(inside, "after")
    await until(lambda: channel.order("term"))
    assert await inside.wait() == 137
    await until(lambda: running.record.exit is not None)
    following.cancel()


async def test_an_init_that_is_gone_has_no_shells(running: Pod):
    assert running.process is not None
    running.process.kill()
    running.process.wait()

    async def is_refused() -> bool:
        try:
            terminal = await opened(running, "true")
        except ChannelBroken:
            return True
        await terminal.close()
        return False

    await until(is_refused)


# What it uses


async def test_without_control_groups_processes_are_summed_up(running: Pod):
    usage = await used(running)
    assert usage.memory and usage.memory > 100_000
    assert usage.cpu_seconds is not None and usage.written_bytes is not None
    assert usage.processes in (1, 2) and usage.threads >= usage.processes  # the program, and its sleep


async def test_control_groups_of_version_2_count(running: Pod):
    files = {
        "cgroup.events": "populated 1\n",
        "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
        "memory.current": "9000000\n",
        "memory.stat": "anon 1\nactive_file 5\ninactive_file 1000000\n",
    }
    write(running.folder / "cgroup", files)
    usage = await used(running)
    assert (usage.cpu_seconds, usage.memory) == (2.5, 8_000_000)


async def test_control_groups_of_version_1_count(running: Pod):
    files = {
        "cpuacct/cpuacct.usage": "2500000000\n",
        "memory/memory.usage_in_bytes": "9000000\n",
        "memory/memory.stat": "inactive_file 7\ntotal_inactive_file 1000000\n",
    }
    write(running.folder / "cgroup", files)
    usage = await used(running)
    assert (usage.cpu_seconds, usage.memory) == (2.5, 8_000_000)


async def test_counters_do_not_run_backwards_and_one_connection_serves_all_questions(running: Pod):
    gauge = PodGauge(doors(running), run())
    before = await gauge.ask()
    task = gauge._task
    for _ in range(20):
        now = await gauge.ask()
        assert before is not None and now is not None and now.taken > before.taken
        assert (now.cpu_seconds or 0) >= (before.cpu_seconds or 0)
        before = now
    assert gauge._task is task
    await gauge.close()


async def test_gpus_are_told_by_one_nvidia_smi_that_goes_with_the_connection(
    pod: Pod,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    lines = 'echo "0, 35, 1024, 81559"; echo "1, [N/A], 0, 81559"; echo "2, 100, 7, 81559"'
    program = tmp_path / "bin" / "nvidia-smi"
    write(program.parent, {program.name: f"#!/bin/sh\n: pretended\n{lines}; exec sleep 1234"})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    pod.start("--begin", "sleep", "1000")
    following = asyncio.create_task(pod.follow(pod.channel()))
    await until(lambda: pod.record.begun)
    usage = await used(pod, gpus=2)
    assert usage.gpus == (
        GpuUse(device="0", share=0.35, memory=1 << 30, memory_size=81559 << 20),
        GpuUse(device="2", share=1.0, memory=7 << 20, memory_size=81559 << 20),
    )
    assert usage.processes == 1
    await until(lambda: not any("sleep 1234" in words for words in programs(pod)))
    following.cancel()


# Its stacks


class OneRun:
    """A run that is its own key, for the stacks of one init."""

    def __init__(self) -> None:
        self.key, self.gone, self.has_spy, self.alive = self, asyncio.Event(), False, True


@pytest.fixture
def open_pod() -> Iterator[Pod]:
    """A pod whose files are not root's alone."""
    with tempfile.TemporaryDirectory() as folder:
        made = Pod(Path(folder))
        for path in (made.folder, made.folder / "run", made.folder / "record"):
            path.chmod(0o777)
        yield made
        if made.process is not None:
            made.process.kill()
            made.process.wait()


@pytest.mark.parametrize("user", [0, 12345])
async def test_a_pod_is_looked_into_whoever_its_user_is(
    open_pod: Pod, user: int, monkeypatch: pytest.MonkeyPatch
):
    if os.getuid() or shutil.which("setpriv") is None or spy.find_spy() is None:
        pytest.skip("needs root, setpriv and py-spy")
    monkeypatch.setattr(stacks, "RUN_FOLDER", str(open_pod.folder / "run"))
    open_pod.start("--begin", "python3", "-c", ASLEEP, user=user)
    following = asyncio.create_task(open_pod.follow(open_pod.channel()))
    await until(lambda: "ready" in open_pod.out)
    key = cast(Any, OneRun())
    dump = (await PodStacks(doors(open_pod)).stacks([key]))[key]
    assert dump.fault == ""
    (process,) = dump.processes
    assert [frame.name for frame in process.threads[0].frames] == ["inner", "<module>"]
    usage = await used(open_pod)
    assert usage.memory and usage.processes == 1
    terminal = await opened(open_pod, "sh", "-c", "id -u; cat /proc/self/oom_score_adj", screen=Screen())
    assert (await all_of(terminal)).split() == [str(user), "1000"]
    following.cancel()


async def test_a_program_that_came_in_half_is_not_kept(running: Pod):
    async with running.door().connect("127.0.0.1", "keep half 1000") as (_, writer):
        writer.write(b"x" * 500)
        await writer.drain()
    async with running.door().connect("127.0.0.1", "keep whole 4") as (reader, writer):
        writer.write(b"\x7fELF")
        assert await reader.readline() == b"kept\n"
    await until(lambda: {path.name for path in (running.folder / "run").iterdir()} == {"out", "err", "whole"})


async def test_no_program_is_kept_outside_the_folder(running: Pod):
    async with running.door().connect("127.0.0.1", "keep ../half 4") as (reader, writer):
        writer.write(b"\x7fELF")
        with contextlib.suppress(OSError):
            assert await reader.read() == b""
    assert not (running.folder / "half").exists()

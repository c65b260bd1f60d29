"""`trainshed shell` in a container, on a real server and a real Podman: the same words as for a process."""

import os
from collections.abc import Iterator

import pytest

from tests.acceptance.test_shell import on_a_terminal, shell, typed
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.live import LiveServer, pool, until

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

STAYS = ["sh", "-c", "echo inside >/note; echo up; exec sleep 1000"]


@pytest.fixture(scope="module")
def server(podman: Podman) -> Iterator[LiveServer]:
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    with LiveServer("--cpus", "64", "--memory", "512GiB", *flags) as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> Iterator[str]:
    name = server.submit(pools=[{**pool(STAYS), "containerSpec": {"imageUri": BASE, "command": STAYS}}])
    until(lambda: server.lines(name))
    yield name
    server.cancel(name)
    server.wait(name)


def test_a_command_runs_in_the_box_and_its_exit_code_is_ours(server: LiveServer, job: str):
    done = shell(server, job, "--", "sh", "-c", "cat /note; hostname; exit 6")
    assert (done.returncode, done.stdout.decode().split()) == (6, ["inside", "workerpool0-0"])
    done = shell(server, job, "--", "no-such-program")
    assert done.returncode == 127 and b"no-such-program" in done.stdout


def test_what_is_piped_in_and_out_is_not_changed(server: LiveServer, job: str):
    sent = os.urandom(1_000_000)
    done = shell(server, job, "--", "cat", stdin=sent)
    assert (done.returncode, done.stdout == sent) == (0, True)


def test_a_terminal_in_a_box_has_sizes_ctrl_c_and_an_exit_code(server: LiveServer, job: str):
    size = "import os; print('size', *os.get_terminal_size()[::-1])"
    with on_a_terminal(server, job) as (process, ours):
        typed(ours, f'python3 -c "{size}"\n', "size 30 90")
        typed(ours, "python3 -c 'import time; print(1111 * 3, flush=True); time.sleep(1000)'\n", "3333")
        typed(ours, "\x03", "KeyboardInterrupt")
        typed(ours, "cat /note; exit 4\n", "inside")
        assert process.wait(60) == 4

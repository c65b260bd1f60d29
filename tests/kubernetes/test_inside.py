"""What people see of a running pod, through a real server: shells, graphs, stacks."""

from collections.abc import Iterator

import pytest

from tests.acceptance.test_shell import on_a_terminal, shell, typed
from tests.kubernetes.cluster import wait_for
from tests.kubernetes.test_jobs import lines, submit
from tests.live import LiveServer

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

STAYS = """
import time
def wait_for_data():
    open("note", "w").write("inside")
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
wait_for_data()
"""
FAILS = "open('note', 'w').write('left'); raise SystemExit(3)"


@pytest.fixture(scope="module")
def job(server: LiveServer) -> Iterator[str]:
    name = submit(server, STAYS)
    wait_for(lambda: "ready" in lines(server, name), "that its program runs")
    yield name
    server.cancel(name)
    server.wait(name)


def test_a_command_runs_in_the_pod_and_its_exit_code_is_ours(server: LiveServer, job: str):
    done = shell(server, job, "--", "sh", "-c", "cat note; echo; hostname; exit 6")
    assert (done.returncode, done.stdout.decode().split()) == (6, ["inside", "workerpool0-0"])


def test_a_terminal_in_a_pod_has_a_size_ctrl_c_and_an_exit_code(server: LiveServer, job: str):
    size = "import os; print('size', *os.get_terminal_size()[::-1])"
    with on_a_terminal(server, job) as (process, ours):
        typed(ours, f'python3 -c "{size}"\n', "size 30 90")
        typed(ours, "python3 -c 'import time; print(1111 * 3, flush=True); time.sleep(1000)'\n", "3333")
        typed(ours, "\x03", "KeyboardInterrupt")
        typed(ours, "exit 4\n", "exit")
        assert process.wait(60) == 4


def test_a_shell_opens_in_the_pod_of_a_program_that_failed_and_was_held(server: LiveServer):
    job = submit(server, FAILS, scheduling={"holdOnFailure": "600s", "disableRetries": True})
    wait_for(lambda: shell(server, job, "--", "cat", "note").stdout == b"left", "a shell in what failed")
    server.cancel(job)
    server.wait(job)


def test_graphs_of_a_pod_have_points(server: LiveServer, job: str):
    path = f"/v1/{job}:graphs"
    wait_for(lambda: len(server.get(path)["usage"]["times"]) >= 3, "three points of a graph")
    series = {row["name"]: row["values"] for row in server.get(path)["usage"]["series"]}
    assert {"cpu", "memory", "disk_write", "network_out"} <= series.keys(), series.keys()
    assert max(filter(None, series["memory"])) > 1_000_000


def test_stacks_show_the_line_at_which_a_pod_waits(server: LiveServer, job: str):
    told = server.cli("stacks", job)
    assert told.returncode == 0, told.stderr
    assert "wait_for_data" in told.stdout, told.stdout

"""MPIJobs in containers of an image with Open MPI whose user is not root: no sshd and no keys are needed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.containers.engine import Podman
from tests.live import PROJECT, LiveServer
from tests.mpi import NEEDS_MPI, image_folder, mpi_job, ranks
from tests.shell import Shell

pytestmark = [*NEEDS_MPI, pytest.mark.containers, pytest.mark.timeout(400)]
IMAGE = "localhost/mpi:1"


@pytest.fixture(scope="module")
def server(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = image_folder(tmp_path_factory.mktemp("image") / "mpi")
    podman.run("build", "--tag", IMAGE, str(folder))
    with LiveServer("--engine", str(podman.socket), "--subnets", podman.subnets) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT})


def run(bash: Shell, job: dict[str, Any]) -> tuple[int, str]:
    """The exit status of `wait`, and the log."""
    (bash.folder / "job.json").write_text(json.dumps(job))
    done = bash("trainshed apply -f job.json")
    assert done.returncode == 0, done.stderr
    name = job["metadata"]["name"]
    code = bash(f"trainshed wait mpijob/{name}", 200).returncode
    return code, bash(f"trainshed logs mpijob/{name}; trainshed events mpijob/{name}").stdout


def test_ranks_run_in_all_workers_and_the_hostfile_is_where_the_operator_puts_it(bash: Shell) -> None:
    script = "cat /etc/mpi/hostfile; exec mpirun --hostfile /etc/mpi/hostfile -n 4 /home/mpiuser/allreduce"
    sshd = ["/usr/sbin/sshd", "-De"]
    code, log = run(bash, mpi_job("adding", "sh", "-c", script, image=IMAGE, worker=sshd))
    assert code == 0, log
    assert [line.partition("| ")[2] for line in log.splitlines() if "slots" in line] == [
        "workerpool1-0 slots=2",
        "workerpool1-1 slots=2",
    ]
    tasks = [f"workerpool1-{rank // 2}" for rank in range(4)]
    assert ranks(log) == [f"{rank} of 4 on {task} in {task}: 6" for rank, task in enumerate(tasks)]


def test_a_program_that_a_worker_runs_beside_goes_on_until_the_launcher_has_ended(bash: Shell) -> None:
    command = (
        "mpirun",
        "-host",
        "beside-worker-0,beside-worker-1.beside.default.svc",
        "/home/mpiuser/allreduce",
    )
    worker = ["sh", "-c", "echo beside; exec sleep 1000"]
    code, log = run(bash, mpi_job("beside", *command, image=IMAGE, worker=worker))
    assert code == 0, log
    assert log.count("| beside") == 2
    assert [line.partition(" on ")[0] for line in ranks(log)] == ["0 of 2", "1 of 2"]

"""MPIJobs on a live server, as processes: the real mpirun starts ranks in all workers, and they meet."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import PROJECT, LiveServer, until
from tests.mpi import NEEDS_MPI, NEEDS_MPICH, compile_allreduce, mpi_job, ranks
from tests.shell import Shell

SSHD = ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]
AS_ROOT = os.geteuid() == 0
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "16", "--memory", "64GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path, {"TRAINSHED_PROJECT": PROJECT})


def apply(bash: Shell, job: dict[str, Any]) -> str:
    """Its name, once it is applied."""
    (bash.folder / "job.json").write_text(json.dumps(job))
    done = bash("trainshed apply -f job.json")
    assert done.returncode == 0, done.stderr
    return f"mpijob/{job['metadata']['name']}"


def run(bash: Shell, job: dict[str, Any]) -> tuple[int, str]:
    """The job's exit status for `wait`, and its log with its events."""
    name = apply(bash, job)
    done = bash(f"trainshed wait {name}")
    return done.returncode, bash(f"trainshed logs {name}; trainshed events {name}").stdout


def processes_with(word: str) -> list[int]:
    """Processes that have the word in their command lines."""
    pids: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def servers(task: str) -> list[int]:
    """What starts programs in that replica: one process, and one for each connection."""
    found = processes_with(f"--serve\0{task}")
    return [pid for pid in found if "/remote-" in os.readlink(f"/proc/{pid}/exe")]


class TestOpenMpi:
    pytestmark = NEEDS_MPI

    @pytest.mark.parametrize("worker", [[], SSHD], ids=["without a command", "with sshd"])
    def test_its_ranks_run_in_all_workers_and_add_up(self, bash: Shell, worker: list[str]) -> None:
        program = str(compile_allreduce(bash.folder))
        name = "adding-with" if worker else "adding"
        code, log = run(bash, mpi_job(name, "mpirun", program, worker=worker))
        assert code == 0, log
        hosts = [f"workerpool1-{rank // 2}" if AS_ROOT else os.uname().nodename for rank in range(4)]
        assert ranks(log) == [
            f"{rank} of 4 on {hosts[rank]} in workerpool1-{rank // 2}: 6" for rank in range(4)
        ]

    def test_the_hostfile_of_its_command_line_is_found_and_the_launcher_may_work_too(self, bash: Shell):
        program = str(compile_allreduce(bash.folder))
        command = ("mpirun", "--hostfile", "/etc/mpi/hostfile", "-n", "6", program)
        code, log = run(bash, mpi_job("all-three", *command, runLauncherAsWorker=True))
        assert code == 0, log
        tasks = [line.partition(" in ")[2] for line in ranks(log)]
        assert tasks == [
            f"{task}: 15" for task in ("workerpool0-0", "workerpool1-0", "workerpool1-1") for _ in "ab"
        ]

    def test_the_exit_code_of_its_launcher_fails_it(self, bash: Shell) -> None:
        program = str(compile_allreduce(bash.folder))
        code, log = run(bash, mpi_job("failing", "mpirun", program, "0", "3"))
        assert code != 0
        assert len(ranks(log)) == 4, log
        found = json.loads(bash("trainshed get mpijob failing --json").stdout)
        assert found["job"]["state"] == "JOB_STATE_FAILED"

    def test_it_is_started_again_after_a_worker_was_killed(self, bash: Shell) -> None:
        program = str(compile_allreduce(bash.folder))
        mark = bash.folder / "again"
        script = f"if [ -e {mark} ]; then exec mpirun {program}; fi; touch {mark}; exec mpirun {program} 60"
        job = mpi_job("again", "sh", "-c", script, runPolicy={"backoffLimit": 3})
        job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "OnFailure"
        name = apply(bash, job)
        until(lambda: len(ranks(bash(f"trainshed logs {name}").stdout)) == 4)
        os.kill(min(servers("workerpool1-1")), 9)
        done = bash(f"trainshed wait {name}")
        log = bash(f"trainshed logs {name}; trainshed events {name}").stdout
        assert done.returncode == 0, log
        assert len(ranks(log)) == 8, log

    def test_cancel_leaves_no_process(self, bash: Shell) -> None:
        program = str(compile_allreduce(bash.folder))
        name = apply(bash, mpi_job("endless", "mpirun", program, "600"))
        until(lambda: len(ranks(bash(f"trainshed logs {name}").stdout)) == 4)
        assert bash(f"trainshed cancel {name} && trainshed wait {name}").returncode != 0
        until(lambda: not processes_with(program))
        until(lambda: not servers("workerpool1-"))


class TestMpich:
    pytestmark = NEEDS_MPICH

    def test_its_programs_run_in_all_workers(self, bash: Shell) -> None:
        command = ("mpirun.mpich", "-n", "4", "sh", "-c", "echo rank $PMI_RANK at $(hostname)")
        code, log = run(bash, mpi_job("mpich", *command, mpiImplementation="MPICH"))
        assert code == 0, log
        hosts = [f"workerpool1-{rank // 2}" if AS_ROOT else os.uname().nodename for rank in range(4)]
        assert ranks(log) == [f"{rank} at {hosts[rank]}" for rank in range(4)]

"""An MPIJob on a real cluster: the real mpirun starts ranks in the pods of all workers, without sshd."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster, wait_for
from tests.live import LiveServer
from tests.mpi import NEEDS_MPI, image_archive, mpi_job, ranks

pytestmark = [*NEEDS_MPI, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]
IMAGE = "localhost/mpi:1"


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    cluster.command("load", str(image_archive(tmp_path_factory.mktemp("image"), IMAGE)))
    with LiveServer("--kubernetes", "--kubeconfig", str(cluster.place.kubeconfig)) as server:
        yield server


def test_ranks_run_in_the_pods_of_all_workers(server: LiveServer, tmp_path: Path) -> None:
    script = "cat /etc/mpi/hostfile; exec mpirun /home/mpiuser/allreduce"
    job = mpi_job("adding", "sh", "-c", script, image=IMAGE, worker=["/usr/sbin/sshd", "-De"])
    (tmp_path / "job.json").write_text(json.dumps(job))
    applied = server.cli("apply", "-f", str(tmp_path / "job.json"))
    assert applied.returncode == 0, applied.stderr
    waited = server.cli("wait", "mpijob/adding")
    log = server.cli("logs", "mpijob/adding").stdout
    assert waited.returncode == 0, (log, server.cli("events", "mpijob/adding").stdout)
    assert "workerpool1-1 slots=2" in log
    tasks = [f"workerpool1-{rank // 2}" for rank in range(4)]
    assert ranks(log) == [f"{rank} of 4 on {task} in {task}: 6" for rank, task in enumerate(tasks)]


def test_a_worker_that_is_killed_is_started_again_with_the_launcher(
    server: LiveServer, cluster: Cluster, tmp_path: Path
) -> None:
    script = "if [ $TRAINSHED_RESTART = 0 ]; then set -- 600; fi; exec mpirun /home/mpiuser/allreduce $@"
    job = mpi_job("again", "sh", "-c", script, image=IMAGE, runPolicy={"backoffLimit": 3})
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "OnFailure"
    (tmp_path / "job.json").write_text(json.dumps(job))
    assert server.cli("apply", "-f", str(tmp_path / "job.json")).returncode == 0
    wait_for(lambda: len(ranks(server.cli("logs", "mpijob/again").stdout)) == 4, "all ranks have met")
    listed = cluster.ask("GET", "/api/v1/pods?labelSelector=trainshed.dev/task%3Dworkerpool1-1")["items"]
    pod = next(item for item in listed if item["status"]["phase"] == "Running")["metadata"]
    cluster.ask("DELETE", f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}")
    waited = server.cli("wait", "mpijob/again")
    log = server.cli("logs", "mpijob/again").stdout
    assert waited.returncode == 0, (log, server.cli("events", "mpijob/again").stdout)
    assert len(ranks(log)) == 8, log

"""MPI for tests: the real Open MPI and MPICH of this machine, and a program that adds its ranks up."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from scripts.base_image import libraries, placed
from scripts.cluster_parts.image import BASE_PATH, pack, pack_base
from tests.containers.engine_images import BASE
from tests.live import IMAGE

HOW = "Open MPI is not here (Debian: openmpi-bin and libopenmpi-dev; `scripts/containers-env` installs them)"
NEEDS_MPI = [
    pytest.mark.needs_mpi,
    pytest.mark.skipif(
        shutil.which("mpirun.openmpi") is None or not any(Path("/usr/lib").glob("*/openmpi/include/mpi.h")),
        reason=HOW,
    ),
]
NEEDS_MPICH = [
    pytest.mark.needs_mpi,
    pytest.mark.skipif(
        shutil.which("mpirun.mpich") is None,
        reason="MPICH is not here (Debian: mpich; `scripts/containers-env` installs it)",
    ),
]
HOME, USER = "/home/mpiuser", "1000"
ALLREDUCE = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    int rank, size, sum = 0;
    char host[256], line[512];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    gethostname(host, sizeof host);
    const char *task = getenv("TRAINSHED_TASK");
    snprintf(line, sizeof line, "rank %d of %d on %s in %s: %d\n", rank, size, host, task, sum);
    fputs(line, stdout);
    fflush(stdout);
    if (count > 1) sleep(atoi(words[1]));
    MPI_Finalize();
    return count > 2 ? atoi(words[2]) : 0;
}
"""


def mpi_job(
    name: str, *command: str, image: str = IMAGE, worker: list[str] | None = None, **spec: Any
) -> dict[str, Any]:
    def replica(count: int, command: list[str]) -> dict[str, Any]:
        limits = {"limits": {"cpu": "500m", "memory": "512Mi"}}
        container = {"name": "mpi", "image": image, "resources": limits}
        container |= {"command": command} if command else {}
        return {"replicas": count, "template": {"spec": {"containers": [container]}}}

    launcher = replica(1, list(command)) | {"restartPolicy": "Never"}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 2,
            "mpiReplicaSpecs": {"Launcher": launcher, "Worker": replica(2, worker or [])},
            **spec,
        },
    }


def compile_allreduce(folder: Path) -> Path:
    """`allreduce [SECONDS [CODE]]`, which prints each rank, its host and task, and the sum of all ranks."""
    program = folder / "allreduce"
    (folder / "allreduce.c").write_text(ALLREDUCE)
    subprocess.run(["mpicc.openmpi", "-o", program, folder / "allreduce.c"], check=True)
    return program


def ranks(log: str) -> list[str]:
    """What the ranks said, sorted."""
    return sorted(line.partition("rank ")[2] for line in log.splitlines() if "rank " in line)


def image_folder(folder: Path) -> Path:
    """A folder to build an image from: the base image, Open MPI and the program. Its user is not root."""
    folder.mkdir()
    lines = [f"FROM {BASE}", "ADD mpi.tar /", f"ENV HOME={HOME}", f"USER {USER}", f"WORKDIR {HOME}", ""]
    (folder / "Dockerfile").write_text("\n".join(lines))
    with tarfile.open(folder / "mpi.tar", "w") as tar:
        add_mpi(tar, compile_allreduce(folder))
    return folder


def image_archive(folder: Path, name: str) -> Path:
    """An archive of the same image, made without an engine."""
    with tarfile.open(pack_base(folder)) as tar:
        tar.extract("layer.tar", folder, filter="data")
    with tarfile.open(folder / "layer.tar", "a") as layer:
        add_mpi(layer, compile_allreduce(folder))
    config = {"Env": [BASE_PATH, f"HOME={HOME}"], "User": USER, "WorkingDir": HOME}
    pack(folder / "layer.tar", folder / "mpi.tar", name, config)
    return folder / "mpi.tar"


def add_mpi(tar: tarfile.TarFile, program: Path) -> None:
    """This machine's Open MPI, and the program in a home that is everybody's."""
    packages = ["openmpi-bin", "openmpi-common", "libopenmpi3", "libpmix2"]
    listed = subprocess.run(["dpkg", "-L", *packages], check=True, capture_output=True, text=True).stdout
    files = [path for path in listed.splitlines() if os.path.isfile(path) and "/share/man/" not in path]
    linked = [path for path in files if ".so" in path or "/bin/" in path]
    for name, path in sorted({placed(path): path for path in (*files, *libraries(linked))}.items()):
        tar.add(path, arcname=name, recursive=False)
    home = tarfile.TarInfo(HOME[1:])
    home.type, home.mode = tarfile.DIRTYPE, 0o777
    tar.addfile(home)
    tar.add(program, arcname=f"{HOME[1:]}/{program.name}")
    for name in ("mpirun", "mpiexec"):
        link = tarfile.TarInfo(f"usr/local/bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, "/usr/bin/orterun"
        tar.addfile(link)

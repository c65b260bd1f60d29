"""How much later than bare `python -m` the first line of a package job comes, once it is installed."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.parse import quote

from tests import packages
from tests.benchmarks.row import Row, ms
from tests.live import PROJECT, LiveServer
from trainshed.client.api import Client

STAMP = "import time\nprint(time.time_ns(), flush=True)\n"
ROUNDS = 20
_NAME = "trainer-0.1.tar.gz"


def second_start() -> list[Row]:
    """Pairs of a bare run of the module and a job that runs it; the install is not counted."""
    content = packages.files(task=STAMP)
    spec = {
        "executorImageUri": "trainshed/python:3",
        "packageUris": [f"gs://staging/{_NAME}"],
        "pythonModule": "trainer.task",
    }
    pool = {"machineSpec": {"machineType": "n1-standard-1"}, "replicaCount": 1, "pythonPackageSpec": spec}
    bare: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as folder, LiveServer() as server:
        for path, text in content.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        server.post("/storage/v1/b", {"name": "staging"}, project=PROJECT)
        upload = f"/upload/storage/v1/b/staging/o?uploadType=media&name={quote(_NAME)}"
        assert server.request("POST", upload, packages.sdist(content)).status == 200
        with Client(server.url, server.token, PROJECT, "us-central1") as client:
            client.wait(str(client.submit("first", {"workerPoolSpecs": [pool]})["name"]))
            for _ in range(ROUNDS):
                began = time.time_ns()
                words = [sys.executable, "-m", "trainer.task"]
                printed = subprocess.run(words, stdout=subprocess.PIPE, check=True, cwd=folder).stdout
                bare.append((int(printed) - began) / 1e9)
                began = time.time_ns()
                name = str(client.submit("again", {"workerPoolSpecs": [pool]})["name"])
                client.wait(name)
                ours.append((int(next(iter(server.lines(name)))["text"]) - began) / 1e9)
    return [
        Row(
            what="second start of a package job",
            floor=ms(bare),
            ours=ms(ours),
            value=(median(ours) - median(bare)) * 1e3,
            goal=100,
            unit="ms more",
        )
    ]

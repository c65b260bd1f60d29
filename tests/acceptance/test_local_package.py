"""gcloud's autopackaging, typed with our name: a folder and the image below it, no image built."""

import os
import subprocess
import sys
from pathlib import Path

from tests.live import PATIENCE, PROJECT, LiveServer
from tests.packages import wheel

TASK = "import sys, first, helper\nprint(first.version, helper.word, *sys.argv[1:])\n"


def test_a_folder_is_sent_and_run_by_every_pool(tmp_path: Path) -> None:
    wheels, folder = tmp_path / "wheels", tmp_path / "work"
    for path in (wheels, folder / "trainer"):
        path.mkdir(parents=True)
    (wheels / "first-1.0-py3-none-any.whl").write_bytes(wheel("first", "1.0"))
    (folder / "trainer/__init__.py").write_text("")
    (folder / "trainer/task.py").write_text(TASK)
    (folder / "helper.py").write_text("word = 'sent'\n")
    (folder / "requirements.txt").write_text("first==1.0\n")
    flags = ("--cpus", "8", "--memory", "64GiB", "--wheels", str(wheels), "--offline")
    with LiveServer(*flags, env={"PIP_CONFIG_FILE": os.devnull}) as server:
        keys = "machine-type=n1-standard-4,replica-count=1,executor-image-uri=trainshed/python:3"
        first = f"{keys},local-package-path=work,python-module=trainer.task"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "trainshed.cli", "ai", "custom-jobs", "create"),
                *("--region=us-central1", "--display-name=packed", "--format=value(name)"),
                *(f"--worker-pool-spec={first}", "--args=--epochs=2"),
                "--worker-pool-spec=machine-type=n1-standard-4,replica-count=2",
            ],
            cwd=tmp_path,
            env=os.environ
            | {"TRAINSHED_HOME": str(server.home), "TRAINSHED_URL": server.url, "TRAINSHED_PROJECT": PROJECT},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        job = done.stdout.strip()
        assert server.wait(job, 2 * PATIENCE)["state"] == "JOB_STATE_SUCCEEDED", server.job(job)
        assert [line["text"] for line in server.lines(job)] == ["1.0 sent --epochs=2"] * 3

"""The commands a guide prints for gcloud, run by a shell as they are printed, only the name swapped.

`seed_004` holds them and the job files beside them, verbatim. The images they name are nobody's: where no
container engine is, they are refused by name; with the image swapped for a Python, all of it runs.
"""

import json
import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import IMAGE, PATIENCE, LiveServer
from tests.shell import Shell

SEED = Path(__file__).parent / "seed_004"
PRINTED_IMAGE = re.compile(r"gcr\.io/[\w./-]+:\w+")
CREATES = ["single_node.sh", "multi_node.sh", "debug.sh", "submit.sh"]
FILES = ["config.yaml", "scheduling.yaml", "reduction_server.yaml", "private_ip.yaml", "job.yaml"]
PROGRAM = "print('trained')"
TRACKS = ["ai", "beta ai", "alpha ai"]


class Bash(Shell):
    def created(self, script: str) -> Any:
        """The job that the script creates, once it has ended."""
        done = self(script)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        found = re.search(r"CustomJob \[(\S+)\] is submitted successfully\.", done.stderr)
        assert found, done.stderr
        assert f"describe {found[1]}" in done.stderr
        return self.server.wait(found[1])


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "8GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Bash:
    for file in FILES:
        shutil.copy(SEED / file, tmp_path)
    return Bash(server, tmp_path)


def printed(name: str) -> str:
    """A command as it is printed, the name swapped."""
    return (SEED / name).read_text().replace("gcloud ai", "trainshed ai").rstrip()


def runnable(command: str) -> str:
    """The image swapped, and the program it would have started by itself."""
    return f'{PRINTED_IMAGE.sub(IMAGE, command)} \\\n  --command=python,-c --args="{PROGRAM}"'


def swap_images(file: Path) -> None:
    """As `runnable`, for a job file."""
    line = re.compile(rf"^( *)imageUri: {PRINTED_IMAGE.pattern}$", re.MULTILINE)
    text = line.sub(
        rf"\1imageUri: {IMAGE}\n\1command: {json.dumps(['python', '-c', PROGRAM])}", file.read_text()
    )
    assert IMAGE in text
    file.write_text(text)


@pytest.mark.parametrize("name", CREATES)
def test_a_printed_create_is_understood_and_only_its_image_is_refused_by_name(bash: Bash, name: str) -> None:
    done = bash(printed(name))
    text = printed(name) + (SEED / "job.yaml").read_text() if name == "submit.sh" else printed(name)
    images = PRINTED_IMAGE.findall(text)
    assert done.returncode == 1
    assert done.stdout == ""
    first, *details = done.stderr.splitlines()
    assert first.startswith("ERROR: (trainshed.ai.custom-jobs.create) INVALID_ARGUMENT: ")
    fields = [line.strip().removeprefix("field: ") for line in details if "field: " in line]
    assert fields == [
        f"job_spec.worker_pool_specs[{number}].container_spec.image_uri" for number in range(len(images))
    ]
    assert all(image in done.stderr for image in images)


@pytest.mark.parametrize("track", TRACKS)
@pytest.mark.parametrize("name", CREATES)
def test_a_printed_create_runs_once_its_image_is_one_that_is_here(bash: Bash, name: str, track: str) -> None:
    if name == "submit.sh":
        swap_images(bash.folder / "job.yaml")
        command = printed(name)
    else:
        command = runnable(printed(name))
    job = bash.created(command.replace("trainshed ai", f"trainshed {track}"))
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    texts = {line["text"] for line in bash.server.lines(job["name"], task="workerpool0-0")}
    assert texts == {"trained"}
    expected = {
        "single_node.sh": ("pytorch-training", ["1"], "NVIDIA_TESLA_V100"),
        "multi_node.sh": ("multi-node-training", ["1", "3"], "NVIDIA_TESLA_T4"),
        "debug.sh": ("debug-job", ["1"], None),
        "submit.sh": (
            "multi-node-pytorch",
            ["1", "3"],
            "NVIDIA_TESLA_T4",
        ),  # the file's name, as none is given
    }[name]
    pools = job["jobSpec"]["workerPoolSpecs"]
    kind = pools[0]["machineSpec"].get("acceleratorType")
    assert (job["displayName"], [pool["replicaCount"] for pool in pools], kind) == expected
    assert job["jobSpec"].get("enableWebAccess", False) is (name == "debug.sh")


def test_the_printed_structure_says_what_is_missing_in_it(bash: Bash) -> None:
    done = bash(printed("structure.sh"))
    assert done.returncode == 2
    assert "ERROR: (trainshed.ai.custom-jobs.create) " in done.stderr
    assert "[--config=CONFIG_FILE]" in done.stderr
    without = bash(printed("structure.sh").replace("[--config=CONFIG_FILE]", ""))
    assert without.returncode == 2
    assert "argument --worker-pool-spec: Bad syntax for dict arg: [WORKER_POOL_SPEC]" in without.stderr


def test_the_printed_structure_and_pool_run_once_they_are_filled_in(bash: Bash) -> None:
    pool = (SEED / "pool.sh").read_text().rstrip()
    filled = {
        "MACHINE_TYPE": "n1-standard-4",
        "REPLICA_COUNT": "2",
        "ACCELERATOR_TYPE": "TPU_V4",  # in the guide's own list; the real gcloud refuses it
        "ACCELERATOR_COUNT": "1",
        "IMAGE_URI": IMAGE,
    }
    for word, value in filled.items():
        pool = pool.replace(f"={word}", f"={value}")
    swap_images(bash.folder / "config.yaml")
    command = printed("structure.sh").replace("--worker-pool-spec=WORKER_POOL_SPEC", pool)
    command = command.replace("[--config=CONFIG_FILE]", "--config=config.yaml")
    command += f' --command=python,-c --args="{PROGRAM}"'
    job = bash.created(command)
    # REGION is a placeholder: the default is used. The flags' pools take the place of the file's.
    assert job["name"].startswith("projects/local/locations/us-central1/")
    assert job["displayName"] == "JOB_NAME"
    [made] = job["jobSpec"]["workerPoolSpecs"]
    assert made["machineSpec"] == {
        "machineType": "n1-standard-4",
        "acceleratorType": "TPU_V4_POD",  # the API's own word for it
        "acceleratorCount": 1,
    }
    assert (job["state"], made["replicaCount"]) == ("JOB_STATE_SUCCEEDED", "2")


@pytest.mark.parametrize("file", FILES)
def test_every_printed_job_file_is_refused_for_its_image_alone_and_runs_without_it(
    bash: Bash, file: str
) -> None:
    command = f"trainshed ai custom-jobs create --region=us-central1 --project=PROJECT_ID --config={file}"
    refused = bash(command)
    assert refused.returncode == 1
    assert "note: --project=PROJECT_ID is a placeholder; the project is local." in refused.stderr
    fields = [line for line in refused.stderr.splitlines() if "field: " in line]
    assert fields
    assert all(field.endswith(".image_uri") for field in fields)
    line = 1 + next(n for n, text in enumerate((SEED / file).read_text().splitlines()) if "imageUri" in text)
    assert f"({file}:{line})" in refused.stderr
    swap_images(bash.folder / file)
    job = bash.created(command)
    named = re.search(r'^displayName: "(.*)"', (SEED / file).read_text())
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert re.fullmatch(named[1] if named else r"custom-job-\d{8}-\d{6}", job["displayName"])


@pytest.mark.parametrize("track", TRACKS)
def test_the_printed_ways_to_look_at_a_job_show_it(bash: Bash, track: str) -> None:
    job = bash.created(runnable(printed("single_node.sh")))
    identity = job["name"].rsplit("/", 1)[-1]
    script = printed("monitor.sh").replace("trainshed ai", f"trainshed {track}")
    listed, described, streamed = [line for line in script.splitlines() if line.startswith("trainshed")]
    every = bash(listed)
    assert every.returncode == 0
    assert f"name: {job['name']}" in every.stdout.splitlines()
    assert every.stdout.startswith("---\n")
    shown = bash(described.replace("JOB_ID", identity))
    assert shown.returncode == 0
    assert {f"name: {job['name']}", "state: JOB_STATE_SUCCEEDED"} <= set(shown.stdout.splitlines())
    logs = bash(streamed.replace("JOB_ID", identity))
    assert logs.returncode == 0
    rows = [line.split("\t") for line in logs.stdout.splitlines()]
    assert [row[0::2] for row in rows if row[2] == "workerpool0-0"] == [["INFO", "workerpool0-0"]]
    assert [row[3] for row in rows if row[2] == "workerpool0-0"] == ["trained"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", rows[0][1])
    assert rows[-1][2:] == ["service", "The job succeeded."]
    # As printed, with the placeholder: there is no such job, and that is what is said.
    command = track.replace(" ", ".")
    for verb, text in (("describe", described), ("stream-logs", streamed)):
        missing = bash(text)
        assert missing.returncode == 1
        assert missing.stderr.startswith(f"ERROR: (trainshed.{command}.custom-jobs.{verb}) NOT_FOUND: ")


def test_the_command_named_in_the_text_alone_says_what_it_needs(bash: Bash) -> None:
    done = bash("trainshed ai custom-jobs create")
    assert done.returncode == 2
    assert "at least one of --config | --worker-pool-spec must be specified." in done.stderr


def test_a_running_job_is_cancelled_by_the_name_that_create_printed(bash: Bash) -> None:
    name = bash.server.submit(["sleep", "600"])
    done = bash(f"trainshed ai custom-jobs cancel {name}")
    assert done.returncode == 0
    assert f"Request to cancel CustomJob [{name}] has been sent" in done.stderr
    assert bash.server.wait(name)["state"] == "JOB_STATE_CANCELLED"


def test_on_a_terminal_there_is_colour_and_in_a_pipe_there_is_none(bash: Bash) -> None:
    bash.created(runnable(printed("debug.sh")))
    command = "trainshed ai custom-jobs list --format='table(displayName,state)'; trainshed ls"
    piped = bash(command)
    assert "\x1b" not in piped.stdout
    assert "debug-job  JOB_STATE_SUCCEEDED" in re.sub(" +", "  ", piped.stdout)
    shown = on_terminal(bash, command)
    assert "\x1b[32mSUCCEEDED\x1b[0m" in shown
    assert "debug-job" in shown


def on_terminal(bash: Bash, script: str) -> str:
    """What the script writes where its output is a terminal."""
    outer, inner = pty.openpty()
    environ = bash.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        ["bash", "-c", script], cwd=bash.folder, env=environ, stdin=inner, stdout=inner, stderr=inner
    ) as process:
        os.close(inner)
        written = b""
        try:
            while piece := os.read(outer, 1 << 16):
                written += piece
        except OSError:
            pass  # how Linux says that nobody holds the other end any more
        finally:
            os.close(outer)
        assert process.wait(PATIENCE) == 0
    return written.decode()

"""The older commands two documents print for gcloud, run by a shell as printed, only the name swapped.

`seed_000` and `seed_001` hold them. The second one's page lost a backslash behind `--`, without which no
shell would hand the program its arguments: it is put back. The runtime it names is stood in for by a small
one, and the images of the first by a Python: no TensorFlow is needed to see what is started, and with what.
"""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import IMAGE, LiveServer
from tests.shell import Shell

HERE = Path(__file__).parent
PLACE = Path("/my_project/src/trainer")  # as the page says
ROWS = """
[[runtimes]]
name = "trainshed/tensorflow"
version = "2.21.0"
"""
PROGRAM = """import json, os, sys, time
config = json.loads(os.environ["TF_CONFIG"])
print(json.dumps({"args": sys.argv[1:], "task": config["task"], "cluster": {
    role: len(hosts) for role, hosts in config["cluster"].items()}}), flush=True)
"""
GRACE = 240.0  # thirty-one interpreters start on a small machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    rows = tmp_path_factory.mktemp("rows") / "rows.toml"
    rows.write_text(ROWS)
    with LiveServer("--cpus", "512", "--memory", "2TiB", "--runtimes", str(rows)) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    variables = {
        "JOB_NAME": "containers_1",
        "REGION": "us-central1",
        **dict.fromkeys(("MASTER_IMAGE_URI", "WORKER_IMAGE_URI", "PS_IMAGE_URI"), IMAGE),
        "BUCKET_NAME": "models",
        "MODEL_DIR": "run-1",
    }
    return Shell(server, tmp_path, variables)


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Path]:
    """The package where the page has it, if that can be; else where tests keep things."""
    package = tmp_path / "my_project" / "src" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "task.py").write_text(PROGRAM)
    root = PLACE.parents[1]
    if root.exists() or not os.access("/", os.W_OK):
        yield package
        return
    root.symlink_to(tmp_path / "my_project")
    try:
        yield PLACE
    finally:
        root.unlink()


def printed(seed: str) -> str:
    text = (HERE / seed / "submit.sh").read_text()
    return text.replace("gcloud ai-platform", "trainshed ai-platform").replace("--\n", "-- \\\n")


def behind(server: LiveServer, name: str) -> Any:
    """The customJob that a training job is."""
    found = server.get("/v1/projects/local/locations/-/customJobs", filter=f'display_name="{name}"')
    [job] = found["customJobs"]
    return job


def said(server: LiveServer, job: str) -> list[Any]:
    return [json.loads(line["text"]) for line in server.lines(job) if line["text"].startswith("{")]


def test_the_printed_premium_job_starts_its_twenty_workers_and_eleven_parameter_servers(
    bash: Shell, trainer: Path
) -> None:
    command = printed("seed_001").replace(str(PLACE), str(trainer))
    missing = bash(command)
    assert missing.returncode == 1
    assert "[my-staging-bucket] bucket does not exist." in missing.stderr
    [making] = re.findall(r"trainshed storage buckets create \S+", missing.stderr)
    assert bash(f"{making} && trainshed storage buckets create gs://my-mnist-model-bucket").returncode == 0
    done = bash(command)
    assert done.returncode == 0, done.stderr
    name = "my_job_20190531_164700"
    assert done.stdout.startswith(f"jobId: {name}\nstate: ")
    assert f"Job [{name}] submitted successfully." in done.stderr
    job = bash.server.wait(behind(bash.server, name)["name"], GRACE)
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    told = said(bash.server, job["name"])
    arguments = ["--my-extra-argument1", "foo", "--my-extra-argument2", "bar"]
    assert all(one["args"][:4] == arguments for one in told)
    assert all("gs://my-mnist-model-bucket/trained_model" in one["args"] for one in told)
    kinds = Counter(one["task"]["type"] for one in told)
    assert kinds["chief"] + kinds["master"] == 1
    cluster = told[0]["cluster"]
    assert (cluster["worker"], cluster["ps"]) == (19, 11)
    again = bash(command)
    assert again.returncode == 1
    assert "is the subject of a conflict: " in again.stderr
    assert sorted(path.name for path in trainer.parent.rglob("*")) == ["__init__.py", "task.py", "trainer"]


def test_the_printed_command_of_three_images_is_accepted(bash: Shell) -> None:
    done = bash(printed("seed_000"))
    assert done.returncode == 0, done.stderr
    shown = bash("trainshed ai-platform jobs describe $JOB_NAME --format=json")
    asked = json.loads(shown.stdout)["trainingInput"]
    assert (asked["masterType"], asked["workerType"], asked["parameterServerType"]) == (
        "complex_model_m",
        "complex_model_m",
        "large_model",
    )
    assert (int(asked["workerCount"]), int(asked["parameterServerCount"])) == (9, 3)
    assert asked["args"] == ["--model-dir=gs://models/run-1", "--epochs=10"]
    pools = behind(bash.server, "containers_1")["jobSpec"]["workerPoolSpecs"]
    assert [int(pool["replicaCount"]) for pool in pools] == [1, 9, 3]
    bash("trainshed ai-platform jobs cancel $JOB_NAME")


def test_a_job_is_submitted_followed_looked_at_labelled_and_listed(bash: Shell, trainer: Path) -> None:
    assert bash("trainshed storage buckets create gs://bin").returncode == 0
    submit = (
        f"trainshed beta ai-platform jobs submit training small_1 --package-path {trainer} "
        "--module-name trainer.task --staging-bucket gs://bin --region us-central1 --stream-logs -- a"
    )
    done = bash(submit, GRACE)
    assert done.returncode == 0, done.stderr
    assert "state: SUCCEEDED" in done.stdout
    assert re.search(r"^INFO\t.*\tmaster-replica-0\t\t\{\"args\": \[\"a\"\]", done.stderr, re.MULTILINE)
    listed = bash("trainshed ai-platform jobs list --filter=jobId=small_1")
    assert listed.stdout.splitlines()[1].split()[:2] == ["small_1", "SUCCEEDED"]
    assert bash("trainshed ai-platform jobs update small_1 --update-labels=team=a,b=c").returncode == 0
    assert bash("trainshed ai-platform jobs update small_1 --remove-labels=b").returncode == 0
    labels = bash("trainshed ai-platform jobs describe small_1 --format='value(labels)'")
    assert labels.stdout == "team=a\n"
    logs = bash("trainshed ai-platform jobs stream-logs small_1 --task-name=master-replica-0")
    assert [row.split("\t")[2:4] for row in logs.stdout.splitlines()] == [["master-replica-0", ""]]
    ended = bash("trainshed ai-platform jobs cancel small_1")
    assert ended.returncode == 1
    assert "FAILED_PRECONDITION" in ended.stderr or "no longer be cancelled" in ended.stderr


def test_a_failing_program_is_exit_code_1_when_streamed(bash: Shell, trainer: Path) -> None:
    (trainer / "task.py").write_text("import sys; print('no'); sys.exit(7)\n")
    assert bash("trainshed storage buckets create gs://failing").returncode == 0
    done = bash(
        f"trainshed ai-platform jobs submit training failing_1 --package-path {trainer} "
        "--module-name trainer.task --staging-bucket gs://failing --region us-central1 --stream-logs",
        GRACE,
    )
    assert done.returncode == 1, done.stderr
    assert "state: FAILED" in done.stdout


def test_ctrl_c_leaves_a_streamed_job_running_and_its_name_comes_back_to_it(
    bash: Shell, trainer: Path
) -> None:
    (trainer / "task.py").write_text("import time; print('begun', flush=True); time.sleep(600)\n")
    assert bash("trainshed storage buckets create gs://held").returncode == 0
    command = (
        f"exec trainshed ai-platform jobs submit training held_1 --package-path {trainer} "
        "--module-name trainer.task --staging-bucket gs://held --region us-central1 --stream-logs"
    )
    with subprocess.Popen(
        ["bash", "-c", command], cwd=bash.folder, env=bash.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        seen = next(line for line in process.stderr if line.rstrip().endswith("begun"))
        assert "master-replica-0" in seen
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(GRACE) == 130
    assert "trainshed ai-platform jobs stream-logs held_1" in rest
    assert "Traceback" not in rest
    assert bash("trainshed ai-platform jobs describe held_1 --format='value(state)'").stdout == "RUNNING\n"
    assert bash("trainshed ai-platform jobs cancel held_1").returncode == 0


def test_a_stream_outlasts_a_killed_server_and_loses_no_line(bash: Shell, trainer: Path) -> None:
    flag = bash.folder / "go"
    (trainer / "task.py").write_text(
        "import os, time\n"
        "print('begun', flush=True)\n"
        f"while not os.path.exists({str(flag)!r}): time.sleep(0.05)\n"
        "print('ended', flush=True)\n"
    )
    assert bash("trainshed storage buckets create gs://lasting").returncode == 0
    command = (
        f"exec trainshed ai-platform jobs submit training lasting_1 --package-path {trainer} "
        "--module-name trainer.task --staging-bucket gs://lasting --region us-central1 --stream-logs"
    )
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=bash.folder,
        env=bash.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert any(line.rstrip().endswith("begun") for line in process.stderr)
        bash.server.kill()
        flag.touch()
        bash.server.start()
        rest, out = process.stderr.read(), process.stdout.read()
        assert process.wait(GRACE) == 0, rest
    assert [line.split("\t")[4] for line in rest.splitlines() if "master-replica-0" in line] == ["ended"]
    assert "state: SUCCEEDED" in out


def test_of_many_who_want_one_name_at_once_one_gets_it(bash: Shell) -> None:
    submit = f"trainshed ai-platform jobs submit training wanted_1 --master-image-uri {IMAGE} --region r1"
    script = f"for n in 1 2 3 4 5; do ({submit} >/dev/null 2>&1; echo $?) & done; wait"
    assert sorted(bash(script).stdout.split()) == ["0", "1", "1", "1", "1"]


def test_a_running_job_is_cancelled_by_its_own_name(bash: Shell, trainer: Path) -> None:
    (trainer / "task.py").write_text("import time; time.sleep(600)\n")
    assert bash("trainshed storage buckets create gs://long").returncode == 0
    done = bash(
        f"trainshed ai-platform jobs submit training long_1 --package-path {trainer} "
        "--module-name trainer.task --job-dir gs://long/out --region us-central1"
    )
    assert done.returncode == 0, done.stderr
    assert bash("trainshed ai-platform jobs cancel long_1").returncode == 0
    job = bash.server.wait(behind(bash.server, "long_1")["name"])
    assert job["state"] == "JOB_STATE_CANCELLED"

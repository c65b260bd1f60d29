"""`submit --output, --job-dir, --data`, and what `submit`, `wait` and `show` say of the results."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_submit import Person
from tests.live import LiveServer

# With what every Python has: what is tested is where things are, and not a client.
TRAIN = """
import os, sys, urllib.parse, urllib.request
def put(place, content):
    bucket, _, name = place.removeprefix('gs://').partition('/')
    query = urllib.parse.urlencode({'uploadType': 'media', 'name': name})
    address = f"{os.environ['STORAGE_EMULATOR_HOST']}/upload/storage/v1/b/{bucket}/o?{query}"
    urllib.request.urlopen(urllib.request.Request(address, content, method='POST')).read()
print(*sys.argv[1:], *(f'{k}={v}' for k, v in sorted(os.environ.items()) if k.startswith('TRAINSHED_DATA')))
put(os.environ['AIP_MODEL_DIR'] + 'model.bin', b'x' * 2048)
put(os.environ['AIP_CHECKPOINT_DIR'] + 'größe: 1', b'y')
sys.exit(int(os.environ.get('CODE', 0)))
"""
FILE = """
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  replicaCount: 1
  containerSpec: {imageUri: "trainshed/python:3", command: [sh, -c, 'echo "$0 $@ $AIP_MODEL_DIR"'], args: [a]}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8", "--memory", "8GiB") as live:
        live.post("/storage/v1/b", {"name": "shelf"}, project="local")
        path = "/upload/storage/v1/b/shelf/o?uploadType=media&name=data/train.csv"
        assert live.request("POST", path, b"1,2").status == 200
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def person(server: LiveServer, tmp_path: Path) -> Person:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "job.yaml").write_text(FILE)
    return Person(server, tmp_path)


def test_results_go_where_they_are_told_to_and_are_told_of_at_the_end(person: Person) -> None:
    done = person(
        "submit", "train.py", "--output", "gs://shelf/run-1", "--data", "gs://shelf/data", "--", "-v"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["-v", "TRAINSHED_DATA=gs://shelf/data"]
    assert "  results: gs://shelf/run-1 (2 objects, 2 KiB)" in done.stderr.splitlines()
    listed = person("storage", "ls", "-r", "gs://shelf/run-1").stdout.split("\n")
    assert listed[:2] == ["gs://shelf/run-1/checkpoints/größe: 1", "gs://shelf/run-1/model/model.bin"]


def test_the_job_dir_is_given_to_the_program_and_is_its_output_too(person: Person) -> None:
    done = person(
        *("submit", "train.py", "--job-dir", "gs://shelf/run-2", "--data", "t=gs://shelf/data/train.csv"),
        *("--detach", "--replicas", "1", "--env", "CODE=3"),
    )
    identity = done.stdout.strip()
    waited = person("wait", identity)
    assert waited.returncode == 3
    assert "  results: gs://shelf/run-2 (2 objects, 2 KiB)" in waited.stderr.splitlines()
    said = "--job-dir gs://shelf/run-2 TRAINSHED_DATA_T=gs://shelf/data/train.csv\n"
    assert person("logs", identity).stdout == said
    shown = person("show", identity).stdout
    assert "Output    gs://shelf/run-2 (2 objects, 2 KiB)" in shown


def test_a_job_file_takes_places_too(person: Person) -> None:
    done = person("submit", "job.yaml", "-f", "--job-dir", "gs://shelf/x", "--output", "gs://shelf/run-3")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a --job-dir gs://shelf/x gs://shelf/run-3/model/\n"
    assert "  results: gs://shelf/run-3 (nothing is there)" in done.stderr.splitlines()


@pytest.mark.parametrize("target", ["train.py", "job.yaml"])
def test_what_is_not_there_keeps_a_job_from_being_submitted(person: Person, target: str) -> None:
    before = person("ls", "--json").stdout
    done = person("submit", target, "--output", "gs://shelv/run", "--data", "gs://shelf/data/tain.csv")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-3:] == [
        "error: nothing was submitted",
        "  there is no bucket gs://shelv; did you mean gs://shelf?",
        "  there is nothing at gs://shelf/data/tain.csv; did you mean gs://shelf/data/train.csv?",
    ]
    assert person("ls", "--json").stdout == before


@pytest.mark.parametrize("target", ["train.py", "job.yaml"])
def test_what_is_no_place_is_a_wrong_command_line(person: Person, target: str) -> None:
    done = person("submit", target, "--data", "./data")
    assert done.returncode == 2
    assert "trainshed storage cp -r FOLDER gs://BUCKET/PATH" in done.stderr


def test_a_job_without_places_says_nothing_of_results(person: Person) -> None:
    (person.here / "plain.py").write_text("print('done')")
    done = person("submit", "plain.py")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "results" not in done.stderr


def test_a_server_may_have_a_place_for_results_nobody_chose(tmp_path: Path) -> None:
    with LiveServer("--default-output", "gs://shelf/jobs/") as server:
        server.post("/storage/v1/b", {"name": "shelf"}, project="local")
        (tmp_path / "train.py").write_text(TRAIN)
        done = Person(server, tmp_path)("submit", "train.py")
        assert done.returncode == 0, done.stderr
        told = done.stderr.splitlines()[-1]
        identity = server.get("/v1/projects/local/locations/-/customJobs")["customJobs"][0]["name"].split(
            "/"
        )[-1]
        assert told == f"  results: gs://shelf/jobs/{identity} (2 objects, 2 KiB)"

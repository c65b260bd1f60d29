"""Packages and requirements on top of an image, in pods of a real cluster: installed once, found by all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.containers.test_derived import QUIET, SDIST, WHEEL, bring, ended, trainshed
from tests.kubernetes.cluster import Cluster, wait_for
from tests.live import LiveServer, python
from tests.packages import files, sdist, wheel

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

MACHINE = {"machineType": "custom-1-256"}
IMAGE = "localhost/python:3"


@pytest.fixture(scope="module")
def server(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    wheels = tmp_path_factory.mktemp("wheels")
    for name in ("first", "second"):
        (wheels / f"{name}-1.0-py3-none-any.whl").write_bytes(wheel(name, "1.0"))
    where = ("--kubernetes", "--kubeconfig", str(cluster.place.kubeconfig))
    with LiveServer(*where, "--wheels", str(wheels), "--offline", env=QUIET) as server:
        bring(server, SDIST, sdist(files(needs=("first",))))
        bring(server, WHEEL, wheel(version="0.2", commands="say = trainer.task:main"))
        yield server
        assert "Traceback" not in server.said(), server.said()


def module(*packages: str, args: tuple[str, ...] = ()) -> Any:
    spec = {"executorImageUri": IMAGE, "packageUris": packages, "pythonModule": "trainer.task", "args": args}
    return {"machineSpec": MACHINE, "replicaCount": 1, "pythonPackageSpec": spec}


def program(source: str) -> Any:
    spec = {"imageUri": IMAGE, "command": ["python3", *python(source)[1:]]}
    return {"machineSpec": MACHINE, "replicaCount": 1, "containerSpec": spec}


def layers(server: LiveServer) -> list[str]:
    return sorted(path.name for path in Path(server.home, "kubernetes/layers").iterdir())


def installers(cluster: Cluster) -> list[str]:
    pods = cluster.ask("GET", "/api/v1/namespaces/default/pods")["items"]
    return [name for pod in pods if (name := str(pod["metadata"]["name"])).startswith("layer-")]


def test_a_source_distribution_and_what_it_needs_are_installed_in_an_image_without_pip(
    server: LiveServer, cluster: Cluster
):
    job = server.submit(pools=[module(SDIST, args=("--epochs", "3"))])
    assert ended(server, job) == ["0.1 --epochs 3"]
    events = server.get(f"/v1/{job}:events")["events"]
    told = [event["message"] for event in events if event["reason"] == "INSTALLED"]
    assert any(SDIST in message for message in told), events
    wait_for(lambda: not installers(cluster), "that the pod which installed is gone")


def test_many_jobs_have_it_installed_once_and_later_ones_not_at_all_also_after_a_restart(server: LiveServer):
    before = layers(server)
    jobs = [server.submit(pools=[module(WHEEL, args=(str(number),))]) for number in range(3)]
    assert [ended(server, job) for job in jobs] == [[f"0.2 {number}"] for number in range(3)]
    made = layers(server)
    assert len(set(made) - set(before)) == 1
    server.kill()
    server.start()
    assert ended(server, server.submit(pools=[module(WHEEL, args=("again",))])) == ["0.2 again"]
    assert layers(server) == made


def test_requirements_are_found_by_a_command_of_the_image(server: LiveServer):
    source = "import first, second, sys; print(first.version, second.version)"
    job = server.submit(pools=[program(source)], spec={"requirements": ["first", "second==1.0"]})
    assert ended(server, job) == ["1.0 1.0"]


def test_what_cannot_be_installed_ends_the_job_with_pips_own_words(server: LiveServer, cluster: Cluster):
    job = server.submit(pools=[program("pass")], spec={"requirements": ["no-such-thing==9"]})
    ended(server, job, "JOB_STATE_FAILED")
    failure = server.get(f"/v1/{job}:status")["failure"]["verdict"]
    assert failure["cause"] == "NO_SUCH_PACKAGE" and "no-such-thing==9" in failure["summary"], failure
    wait_for(lambda: not installers(cluster), "that the pod which installed is gone")


def test_a_script_with_its_folder_and_requirements_runs_in_any_image(server: LiveServer, tmp_path: Path):
    (tmp_path / "lib.py").write_text("word = 'from the folder'\n")
    (tmp_path / "train.py").write_text(
        "import first, lib, os, sys\nprint(lib.word, first.version, *sys.argv[1:])\n"
        "folder = os.environ['TRAINSHED_MODEL_DIR']\nos.makedirs(folder)\n"
        "open(folder + 'model.bin', 'w').write('weights')\n"
    )
    (tmp_path / "needs.txt").write_text("first\n")
    how = ("--image", IMAGE, "--machine", "custom-1-256", "--requirements", "needs.txt")
    done = trainshed(server, tmp_path, "submit", "train.py", *how, "--output", "gs://staging/run", "--", "x")
    assert done.returncode == 0, done.stderr
    assert "from the folder 1.0 x" in done.stdout
    answer = server.request("GET", "/storage/v1/b/staging/o/run%2Fmodel%2Fmodel.bin?alt=media")
    assert answer.body == b"weights"

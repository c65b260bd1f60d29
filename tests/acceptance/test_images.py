"""Images as people meet them: built, saved, loaded, pushed, run, seen on their way, and private ones."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_guides import blocks
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.registry import Registry, a_registry
from tests.containers.slow_registry import slow_way
from tests.faults import Sentence
from tests.live import PARENT, PATIENCE, LiveServer, pool, until
from tests.shell import Shell

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]

SECRET = "s3cret-word-of-ann"
TRAIN = """import os, sys
print("trained", os.environ["VERSION"], sys.argv[1:], sorted(os.listdir(".")), flush=True)
"""
DOCKERFILE = f"""FROM {BASE}
ARG VERSION=1
ENV VERSION=$VERSION
WORKDIR /app
COPY . /app
ENTRYPOINT ["python3", "train.py"]
"""


def flags(podman: Podman, *more: str) -> tuple[str, ...]:
    engine = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    return ("--cpus", "8", "--memory", "8GiB", *engine, *more)


@pytest.fixture(scope="module")
def server(podman: Podman) -> Iterator[LiveServer]:
    with LiveServer(*flags(podman)) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def shell(server: LiveServer, tmp_path: Path) -> Shell:
    app = tmp_path / "app"
    app.mkdir()
    (app / "Dockerfile").write_text(DOCKERFILE)
    (app / "train.py").write_text(TRAIN)
    (app / "data.bin").write_bytes(os.urandom(1000))
    (app / ".dockerignore").write_text("data.bin\n.dockerignore\nDockerfile\n")
    return Shell(server, tmp_path)


def good(shell: Shell, script: str) -> str:
    done = shell(script, PATIENCE * 2)
    assert done.returncode == 0, f"{script}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def job_file(shell: Shell, name: str, image: str, **container: object) -> None:
    text = json.dumps({"displayName": name, "jobSpec": {"workerPoolSpecs": [boxed(image, **container)]}})
    (shell.folder / f"{name}.yaml").write_text(text)


def submitted(server: LiveServer, image: str, **container: object) -> str:
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [boxed(image, **container)]}}
    return str(server.post(f"{PARENT}/customJobs", body)["name"])


def boxed(image: str, **container: object) -> dict[str, Any]:
    made = pool((), machine="n1-standard-1")
    return {**made, "containerSpec": {"imageUri": image, **container}}


def test_an_image_is_saved_to_a_file_loaded_elsewhere_pushed_to_a_registry_and_run(
    shell: Shell, registry: Registry
) -> None:
    full = registry.image("team/mnist:1")
    good(shell, "trainshed images build -t mnist:1 app")
    good(shell, "trainshed images save mnist:1 -o mnist.tar && trainshed images rm mnist:1")
    assert "mnist:1" not in good(shell, "trainshed images ls")
    assert good(shell, "trainshed images load -i mnist.tar") == "Loaded image mnist:1\n"
    told = good(shell, f"trainshed images tag mnist:1 {full} && trainshed images push {full}")
    assert re.search(rf"Pushed image {re.escape(full)} \(sha256:[0-9a-f]{{64}}\)", told)
    assert json.loads(registry.get("/v2/team/mnist/tags/list")[1])["tags"] == ["1"]
    good(shell, f"trainshed images rm mnist:1 {full}")
    job_file(shell, "mnist", full, args=["--epochs=1"])
    done = shell("trainshed submit mnist.yaml --follow", PATIENCE * 2)
    assert "trained 1 ['--epochs=1'] ['train.py']" in done.stdout, done.stderr
    assert done.returncode == 0
    assert f"Pulled image {full} (sha256:" in good(shell, "trainshed events mnist")


def test_the_page_of_the_guide_can_be_pasted(shell: Shell, registry: Registry) -> None:
    said = ""
    for block in blocks("images.md"):
        done = shell(f"set -euo pipefail\n{block.replace('127.0.0.1:5000', registry.host)}", PATIENCE * 2)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        said += done.stdout
    assert said.count("training with ['--epochs=3']") == 2
    assert f"Pulled image {registry.image('team/digits:1')}" in said


def test_images_are_listed_with_their_names_and_told_to_scripts(shell: Shell) -> None:
    built = json.loads(good(shell, "trainshed images build -t listed:1 -t localhost/also:2 app --json"))
    assert built["image"].startswith("sha256:")
    found = json.loads(good(shell, "trainshed images ls --json"))
    (one,) = [image for image in found if image["id"] == built["image"]]
    assert {"listed:1", "localhost/also:2"} <= set(one["names"]) and int(one["sizeBytes"]) > 0
    rows = good(shell, "trainshed images ls").splitlines()
    assert [row.split()[0] for row in rows if built["image"][7:19] in row] == one["names"]
    removed = json.loads(good(shell, "trainshed images rm --json listed:1 localhost/also:2"))
    assert "listed:1" in removed


def test_a_build_says_its_steps_takes_arguments_and_tells_what_failed(shell: Shell) -> None:
    for version in ("7", "8"):
        done = shell(f"trainshed images build -t argued --build-arg VERSION={version} app", PATIENCE * 2)
        assert (
            done.returncode == 0 and "STEP" in done.stderr and done.stdout.startswith("Built argued:latest (")
        )
        job_file(shell, f"argued{version}", "argued")
        said = good(shell, f"trainshed submit argued{version}.yaml --follow")
        assert f"trained {version} " in said
    (shell.folder / "bad").write_text(f'FROM {BASE}\nRUN ["sh", "-c", "echo its last words; exit 3"]\n')
    done = shell("trainshed images build -t bad -f bad app", PATIENCE)
    assert done.returncode == 1
    assert "its last words" in done.stderr and "exit status 3" in done.stderr.splitlines()[-1]


def test_a_bad_name_is_a_400_that_names_it(server: LiveServer, shell: Shell) -> None:
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [boxed("Team/No Name")]}}
    answer = server.request("POST", f"{PARENT}/customJobs", body)
    assert answer.status == 400
    (field,) = answer.violations
    assert field.endswith("image_uri") and "Team/No Name" in answer.violations[field]
    for call, given in (("pull", {"name": "No Name"}), ("push", {"name": "No Name"}), ("pull", {})):
        answer = server.request("POST", f"{PARENT}/images:{call}", given)
        assert (answer.status, list(answer.violations)) == (400, ["name"]), answer
    answer = server.request("POST", f"{PARENT}/images:build?tag=No%20Name&dockerfile=../x&buildArgs=1")
    assert (answer.status, list(answer.violations)) == (400, ["tag", "dockerfile", "buildArgs"])
    done = shell("trainshed images build -t Bad app")
    assert done.returncode == 1 and "'Bad'" in done.stderr


@pytest.mark.fault(
    "Containers",
    "The image does not exist",
    "The job fails at once with the verdict NO_SUCH_IMAGE and the registry's own words.",
    sentence="manifest unknown",
)
def test_a_job_whose_image_does_not_exist_fails_at_once_with_the_registrys_words(
    sentence: Sentence, server: LiveServer, registry: Registry
) -> None:
    image = registry.image("team/none:1")
    job = submitted(server, image)
    server.wait_for(job, ["JOB_STATE_FAILED"])
    failure = server.get(f"/v1/{job}:status")["failure"]
    verdict = failure["verdict"]
    assert verdict["cause"] == "NO_SUCH_IMAGE" and sentence.is_in(verdict["summary"])
    assert image in failure["message"] and verdict["advice"] and not verdict.get("retryMayHelp")


def test_how_far_a_pull_is_can_be_read_in_why_in_events_and_while_one_waits(
    podman: Podman, registry: Registry, server: LiveServer, shell: Shell
) -> None:
    (shell.folder / "app" / ".dockerignore").unlink()
    (shell.folder / "app" / "data.bin").write_bytes(os.urandom(12 << 20))
    full = registry.image("team/large:1")
    good(shell, f"trainshed images build -t {full} app && trainshed images push {full}")
    good(shell, f"trainshed images rm {full}")
    podman.run("image", "prune", "--force")
    with slow_way(podman.registry_ports[1], registry.port, 2e6) as slow:
        job_file(shell, "large", slow.image("team/large:1"))
        job = json.loads(good(shell, "trainshed submit large.yaml --json"))["name"]
        why = until(lambda: " %, " in (told := json.dumps(server.get(f"/v1/{job}:why"))) and told)
        assert re.search(r"Pulling image \S+: \d+ %, \d+ of \d+ MiB", why), why
        waiting = shell("trainshed submit large.yaml --follow", PATIENCE * 2)
        server.wait(job)
    assert re.search(r"waiting: Pulling image \S+: \d+ %", waiting.stderr), waiting.stderr
    events = [one["message"] for one in server.get(f"/v1/{job}:events")["events"]]
    percents = [int(found[1]) for one in events if (found := re.search(r"Pulling .*: (\d+) %", one))]
    assert len(percents) >= 2 and percents == sorted(percents), events
    assert set(slow.fetched.values()) == {1}


def test_a_server_that_is_killed_while_an_image_is_pulled_pulls_it_at_its_next_start(
    podman: Podman, registry: Registry, server: LiveServer, shell: Shell
) -> None:
    (shell.folder / "app" / ".dockerignore").unlink()
    (shell.folder / "app" / "data.bin").write_bytes(os.urandom(8 << 20))
    full = registry.image("team/killed:1")
    good(shell, f"trainshed images build -t {full} app && trainshed images push {full}")
    good(shell, f"trainshed images rm {full}")
    podman.run("image", "prune", "--force")
    with slow_way(podman.registry_ports[1], registry.port, 2e6) as slow, LiveServer(*flags(podman)) as live:
        job = submitted(live, slow.image("team/killed:1"))
        until(lambda: " %, " in json.dumps(live.get(f"/v1/{job}:why")))
        live.kill()
        slow.rate = 1e9
        live.start()
        assert live.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        assert [line["text"] for line in live.lines(job)] == [
            "trained 1 [] ['Dockerfile', 'data.bin', 'train.py']"
        ]


def test_a_private_image_runs_by_credentials_that_are_seen_nowhere(
    podman: Podman, shell: Shell, tmp_path: Path
) -> None:
    with a_registry(podman, user="ann", password=SECRET) as private:
        auth = tmp_path / "registries.json"
        full = private.image("team/private:1")
        with LiveServer(*flags(podman, "--registry-auth", str(auth))) as live:
            own = Shell(live, tmp_path)
            good(own, f"trainshed images build -t {full} app")
            refused = own(f"trainshed images push {full}", PATIENCE)
            assert refused.returncode == 1 and "authentication required" in refused.stderr
            auth.write_text(json.dumps({"auths": {private.host: {"username": "ann", "password": SECRET}}}))
            good(own, f"trainshed images push {full} && trainshed images rm {full}")
            environ = "import os; print(dict(os.environ))"
            job = submitted(live, full, command=["python3", "-c", environ])
            assert live.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
            shown: list[Any] = [live.get(f"/v1/{job}:{what}") for what in ("events", "status", "environment")]
            shown += [live.get(f"{PARENT}/images"), live.lines(job), live.said()]
            assert SECRET not in str(shown)
            kept = [
                path
                for path in live.home.rglob("*")
                if path.is_file() and SECRET.encode() in path.read_bytes()
            ]
            assert kept == []
            assert SECRET not in podman.run("image", "inspect", full)


def test_an_image_that_a_job_wants_is_not_removed(server: LiveServer, shell: Shell) -> None:
    good(shell, "trainshed images build -t wanted:1 app")
    job = submitted(server, "wanted:1", command=["sleep", "1000"])
    server.wait_for(job, ["JOB_STATE_RUNNING"])
    refused = shell("trainshed images rm wanted:1")
    assert refused.returncode == 1 and f"wanted by job {job.rpartition('/')[2]}" in refused.stderr
    (row,) = [row for row in good(shell, "trainshed images ls").splitlines() if row.startswith("wanted:1")]
    assert row.split()[-1] == "1"
    server.cancel(job)
    server.wait(job)
    good(shell, "trainshed images rm wanted:1 --force")


def test_without_an_engine_that_is_said(tmp_path: Path) -> None:
    with LiveServer() as live:
        done = Shell(live, tmp_path)("trainshed images ls")
        assert done.returncode == 1 and "engine" in done.stderr

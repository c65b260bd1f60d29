"""Secrets among the variables of jobs: the program has them; no answer and no file of the server has."""

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.live import IMAGE, JOBS, PARENT, LiveServer, by_id, until
from trainshed.core.jobs.secret import MASK

VALUE = "hf-4uKZsWmQ0tXy"  # in no other text
LENGTH = "import os; print('length', len(os.environ['HF_TOKEN']))"
CUSTOM_TASK = "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "64GiB", "--fit", "strict") as live:
        yield live
        assert VALUE not in live.said()
        assert "Traceback" not in live.said(), live.said()


def pool(source: str, *env: Mapping[str, object]) -> dict[str, Any]:
    program = {"imageUri": IMAGE, "command": ["python", "-c", source], "env": list(env)}
    return {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": program}


def secret(name: str = "HF_TOKEN", **more: object) -> dict[str, object]:
    return {"name": name, "value": VALUE, **more}


def texts(server: LiveServer, name: str) -> list[str]:
    return [line["text"] for line in server.lines(name) if line["text"].startswith("length")]


def files_with_value(folder: Path, value: str = VALUE) -> list[str]:
    """What is removed meanwhile does not have it any more."""
    result: list[str] = []
    for path in [Path(place) / name for place, _, names in os.walk(folder) for name in names]:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISREG(path.lstat().st_mode) and value.encode() in path.read_bytes():
                result.append(str(path.relative_to(folder)))
    return result


def test_the_program_has_the_value_and_no_answer_and_no_other_file_has(server: LiveServer):
    name = server.submit(
        pools=[pool(LENGTH + "; import time; time.sleep(600)", secret(), secret("MINE", secret=True))]
    )
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    answers = [
        server.job(name),
        server.get(JOBS),
        server.get(JOBS, view="trainshed"),
        *(server.get(f"/v1/{name}:{verb}") for verb in ("environment", "status", "events", "why")),
    ]
    assert VALUE not in json.dumps(answers)
    env = {item["name"]: item for item in answers[0]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"]}
    assert env == {item: {"name": item, "value": MASK} for item in ("HF_TOKEN", "MINE")}
    identity = name.rpartition("/")[2]
    for words in (("show", identity), ("show", identity, "--env"), ("show", identity, "--json")):
        shown = server.cli(*words)
        assert shown.returncode == 0, shown.stderr
        assert VALUE not in shown.stdout
    kept = server.home / "secrets" / f"{identity}.json"
    assert files_with_value(server.home) == []
    assert (server.home / "secrets" / f"{identity}.json").exists()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    server.cancel(name)
    server.wait(name)
    assert texts(server, name) == [f"length {len(VALUE)}"]
    assert server.request("DELETE", f"/v1/{name}").status == 200
    until(lambda: not kept.exists())


def test_a_shell_beside_the_program_has_the_value(server: LiveServer):
    name = server.submit(pools=[pool("import time; time.sleep(600)", secret())])
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    shell = server.cli("shell", name.rpartition("/")[2], "--", "printenv", "HF_TOKEN")
    assert shell.stdout.strip() == VALUE, shell.stderr
    server.cancel(name)
    server.wait(name)


def test_an_answer_that_is_sent_back_is_refused_and_names_the_field(server: LiveServer):
    name = server.submit(pools=[pool("pass", secret())])
    copy = {key: value for key, value in server.job(name).items() if key in ("displayName", "jobSpec")}
    answer = server.request("POST", JOBS, copy)
    assert answer.status == 400
    field = "job_spec.worker_pool_specs[0].container_spec.env[0].value"
    assert "give the value itself" in answer.violations[field]
    wrong = {
        "displayName": "x",
        "jobSpec": {"workerPoolSpecs": [pool("pass", {"name": "=", "value": VALUE})]},
    }
    assert VALUE not in server.request("POST", JOBS, wrong).body.decode()


def test_retry_uses_the_value_of_the_job_before(server: LiveServer):
    name = server.submit(pools=[pool(LENGTH, secret())])
    server.wait(name)
    again = server.cli("retry", name.rpartition("/")[2])
    assert again.returncode == 0, again.stderr
    new = f"{name.rpartition('/')[0]}/{again.stdout.strip()}"
    assert server.wait(new)["state"] == "JOB_STATE_SUCCEEDED"
    assert texts(server, new) == [f"length {len(VALUE)}"]


def test_submit_takes_a_secret_from_the_callers_environment(server: LiveServer, tmp_path: Path):
    (tmp_path / "train.py").write_text(LENGTH.replace("HF_TOKEN", "MINE"))
    words = ("submit", str(tmp_path / "train.py"), "--secret", "MINE", "--follow", "--folder", str(tmp_path))
    done = server.cli(*words, MINE=VALUE)
    assert done.returncode == 0, done.stderr
    assert f"length {len(VALUE)}" in done.stdout
    assert VALUE not in json.dumps(server.get(JOBS)) + done.stdout + done.stderr
    lacking = server.cli(*words)
    assert (lacking.returncode, "trainshed secrets set MINE" in lacking.stderr) == (1, True)


def test_a_pipeline_and_its_model_show_masks(server: LiveServer):
    body = {
        "displayName": "p",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {
            "workerPoolSpecs": [pool(LENGTH, secret(), secret("MINE", secret=True))],
            "baseOutputDirectory": {"outputUriPrefix": str(server.base / "out")},
        },
        "modelToUpload": {"displayName": "m", "containerSpec": {"imageUri": "serve", "env": [secret()]}},
    }
    made = server.post(f"{PARENT}/trainingPipelines", body)
    done = server.wait(made["trainingTaskMetadata"]["backingCustomJob"])
    assert done["state"] == "JOB_STATE_SUCCEEDED"
    answers = [made, done, server.get(f"{PARENT}/trainingPipelines"), server.get(f"{PARENT}/models")]
    assert VALUE not in json.dumps(answers)
    assert json.dumps(answers[2]).count(MASK) == 3
    assert files_with_value(server.home) == []


def test_a_kubernetes_manifest_shows_masks_also_where_a_variable_names_another(server: LiveServer):
    env = [secret(), {"name": "URL", "value": "https://me:$(HF_TOKEN)@host"}, {"name": "LR", "value": "1"}]
    container = {"name": "c", "image": IMAGE, "command": ["python", "-c", LENGTH], "env": env}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    dry = server.post(f"{PARENT}/manifests:apply", manifest, dryRun="true")
    made = server.post(f"{PARENT}/manifests:apply", manifest)
    name = made["customJob"]["name"]
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert VALUE not in json.dumps([dry, made, server.job(name), server.get(f"{PARENT}/manifests")])
    assert server.post(f"{PARENT}/manifests:apply", manifest)["outcome"] == "UNCHANGED"


def test_a_restart_after_kill_9_and_a_retry_have_the_value(server: LiveServer):
    dies = "if os.environ['TRAINSHED_RESTART'] == '0': os.kill(os.getpid(), 9)"
    source = f"{LENGTH}; import time; time.sleep(3)\n{dies}"
    name = server.submit(pools=[pool(source, secret())])
    server.wait_for(name, ["JOB_STATE_RUNNING"])
    server.kill()
    server.start()
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert texts(server, name) == [f"length {len(VALUE)}"] * 2


def test_a_backup_brings_the_secrets_and_a_lost_one_fails_only_its_job(server: LiveServer, tmp_path: Path):
    blocked = {**pool(LENGTH, secret()), "machineSpec": {"machineType": "n1-standard-96"}}
    kept, lost = (server.submit(pools=[blocked]) for _ in range(2))
    backup = server.cli("backup", str(tmp_path / "b.tar"))
    assert backup.returncode == 0, backup.stderr
    home = server.base / "r"
    assert server.cli("restore", str(tmp_path / "b.tar"), "--home", str(home)).returncode == 0
    (home / "secrets" / f"{lost.rpartition('/')[2]}.json").unlink()
    with LiveServer("--cpus", "8", "--memory", "32GiB", home=home) as restored:
        assert restored.wait(kept)["state"] == "JOB_STATE_SUCCEEDED"
        failed = restored.wait(lost)
        assert failed["state"] == "JOB_STATE_FAILED"
        assert "the values of its secrets are no longer" in failed["error"]["message"]


def test_the_same_idempotency_key_with_another_secret_is_another_request(server: LiveServer):
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool("pass", secret())]}}
    key = {"Idempotency-Key": "k1"}
    before = set(server.home.glob("secrets/*"))
    first, again = (server.request("POST", JOBS, body, headers=key) for _ in range(2))
    assert first.json["name"] == again.json["name"]
    text = json.dumps(body).replace(VALUE, "another")
    other = server.request("POST", JOBS, text.encode(), headers={**key, "Content-Type": "application/json"})
    assert (other.status, VALUE in other.body.decode()) == (409, False)
    kept = server.home / "secrets" / f"{by_id(first.json['name'])}.json"
    assert set(server.home.glob("secrets/*")) - before == {kept}

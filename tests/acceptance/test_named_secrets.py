"""Secrets of a project by name, over a live server: jobs have the values; no answer and no file has."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_secrets import LENGTH, VALUE, files_with_value, pool
from tests.live import JOBS, LiveServer, until

SECRETS = "/v1/projects/p1/secrets"
REFERENCE = {"name": "HF_TOKEN", "value": "secret://hf"}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "64GiB") as live:
        assert "cryptography" not in Path(f"/proc/{live.pid}/maps").read_text()  # nobody has asked for it
        yield live
        assert VALUE not in live.said()
        assert "Traceback" not in live.said(), live.said()
        assert files_with_value(live.home) == []


def command(server: LiveServer, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "trainshed.cli", *words],
        env={"TRAINSHED_HOME": str(server.home), "TRAINSHED_PROJECT": "p1", "LOGNAME": "ann", "PATH": "/bin"},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def keep(server: LiveServer, name: str, value: str = VALUE) -> None:
    done = command(server, "secrets", "set", name, stdin=f"{value}\n")
    assert done.returncode == 0, done.stderr


def printed(server: LiveServer, job: str) -> list[str]:
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_SUCCEEDED", done
    return [line["text"] for line in server.lines(job)]


def test_a_job_has_the_value_of_the_secret_that_its_variable_names(server: LiveServer) -> None:
    keep(server, "hf")
    job = server.submit(pools=[pool(LENGTH, REFERENCE)])
    assert printed(server, job) == [f"length {len(VALUE)}"]
    answers = [
        server.job(job),
        *(server.get(f"/v1/{job}:{verb}") for verb in ("environment", "status", "events", "why")),
        server.get(SECRETS),
        server.get(f"{SECRETS}/hf"),
    ]
    assert VALUE not in json.dumps(answers)
    assert answers[0]["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["env"] == [REFERENCE]
    again = server.post(f"/v1/{job}:retry")["name"]
    assert printed(server, again) == [f"length {len(VALUE)}"]
    copied = server.post(JOBS, {"displayName": "copy", "jobSpec": answers[0]["jobSpec"]})["name"]
    assert printed(server, copied) == [f"length {len(VALUE)}"]


def test_commands_set_list_and_delete_and_never_show(server: LiveServer, tmp_path: Path) -> None:
    keep(server, "listed", "one")
    (tmp_path / "value").write_text(VALUE)
    done = command(server, "secrets", "set", "listed", "--from-file", str(tmp_path / "value"), "--json")
    assert json.loads(done.stdout)["name"] == "projects/p1/secrets/listed/versions/2"
    [row] = [
        item
        for item in json.loads(command(server, "secrets", "ls", "--json").stdout)
        if item["name"].endswith("/listed")
    ]
    assert (row["versionCount"], row["createdBy"], row["updatedBy"]) == (2, "ann", "ann")
    assert "lastUsedTime" not in row
    table = command(server, "secrets", "ls").stdout
    assert "listed" in table and "never" in table and VALUE not in table
    assert command(server, "secrets", "rm", "listed").stdout == "deleted secret listed\n"
    missing = command(server, "secrets", "rm", "listed")
    assert (missing.returncode, "there is no secret 'listed'" in missing.stderr) == (1, True)
    for words, sentence in (
        (("set", "bad/name"), "must be 1 to 200 letters"),
        (("set", "x", "--from-file", str(tmp_path / "gone")), "cannot read"),
        (("set", "x"), "payload.data"),
    ):
        failed = command(server, "secrets", *words)
        assert failed.returncode == 1 and sentence in failed.stderr, failed.stderr


def test_what_is_wrong_is_named_and_no_refusal_repeats_a_value(server: LiveServer) -> None:
    job = {
        "displayName": "j",
        "jobSpec": {"workerPoolSpecs": [pool(LENGTH, {"name": "A", "value": "secret://no"})]},
    }
    refused = server.request("POST", JOBS, job)
    field = "job_spec.worker_pool_specs[0].container_spec.env[0].value"
    assert refused.status == 400
    assert "names the secret 'no', which has no value in project 'p1'" in refused.violations[field]
    assert "trainshed secrets set no" in refused.violations[field]
    assert server.request("POST", f"{JOBS}:explain", job).violations == refused.violations
    job["jobSpec"]["workerPoolSpecs"] = [pool(LENGTH, {"name": "A", "value": "secret://no/such"})]
    assert "names no secret" in server.request("POST", JOBS, job).violations[field]
    keep(server, "typed")
    for data in (VALUE, 7, base64.b64encode(VALUE.encode() + b"\0").decode(), "", "A" * 100_000):
        answer = server.request("POST", f"{SECRETS}/typed:addVersion", {"payload": {"data": data}})
        assert answer.status == 400 and VALUE.encode() not in answer.body
    assert server.request("GET", f"{SECRETS}/typed/versions/latest:access").status == 404


def test_a_job_waits_for_a_secret_that_was_deleted_and_starts_when_it_is_set_again(
    server: LiveServer, tmp_path: Path
) -> None:
    keep(server, "late")
    gate = tmp_path / "go"
    first = (
        "import os, pathlib, time\n"
        f"ran, gate = pathlib.Path({str(tmp_path / 'ran')!r}), pathlib.Path({str(gate)!r})\n"
        "if ran.exists():\n"
        "    print(len(os.environ['T']))\n"
        "else:\n"
        "    ran.touch()\n"
        "    while not gate.exists(): time.sleep(0.05)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    job = server.submit(pools=[pool(first, {"name": "T", "value": "secret://late"})])
    until((tmp_path / "ran").exists)
    assert command(server, "secrets", "rm", "late").returncode == 0
    gate.touch()  # it is killed now, and restarted
    why = until(lambda: "secrets set late" in json.dumps(server.job(job) | server.get(f"/v1/{job}:status")))
    assert why
    keep(server, "late", "another")
    assert printed(server, job)[-1] == str(len("another"))


def test_submit_takes_a_secret_that_is_not_set_here_from_the_project(
    server: LiveServer, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(LENGTH)
    words = ("submit", str(tmp_path / "train.py"), "--secret", "HF_TOKEN", "--folder", str(tmp_path))
    refused = command(server, *words)
    assert refused.returncode == 1 and "trainshed secrets set HF_TOKEN" in refused.stderr, refused.stderr
    keep(server, "HF_TOKEN")
    done = command(server, *words)
    assert done.returncode == 0 and f"length {len(VALUE)}" in done.stdout, done.stderr


READ = """
import os, pathlib, time
path = pathlib.Path(os.environ['KEY'])
assert path == pathlib.Path(os.environ['TRAINSHED_SECRETS']) / 'key.json'
print('length', len(path.read_text()), oct(path.stat().st_mode & 0o777), path.stat().st_uid == os.getuid())
print('at', path, flush=True)
"""


def place_of(server: LiveServer, job: str) -> Path:
    """Where the program found the file; it waits until that is told."""
    lines = until(lambda: [line["text"] for line in server.lines(job) if line["text"].startswith("at ")])
    return Path(lines[0].removeprefix("at "))


def test_a_program_reads_a_secret_from_a_file_that_is_gone_with_its_run(
    server: LiveServer, tmp_path: Path
) -> None:
    keep(server, "key.json")
    stay = tmp_path / "stay"
    stay.touch()
    source = f"{READ}while os.path.exists({str(stay)!r}): time.sleep(0.05)\n"
    job = server.submit(pools=[pool(source, {"name": "KEY", "value": "secret-file://key.json"})])
    place = place_of(server, job)
    assert place.read_text() == VALUE
    server.kill()
    server.start()
    assert files_with_value(server.home) == [str(place.relative_to(server.home))]  # nowhere else, and kept
    answers = [
        server.job(job),
        *(server.get(f"/v1/{job}:{verb}") for verb in ("environment", "status", "why")),
    ]
    assert VALUE not in json.dumps(answers)
    stay.unlink()
    assert printed(server, job)[0] == f"length {len(VALUE)} 0o400 True"
    assert not place.exists()


def test_the_file_of_a_secret_is_gone_after_kill_9_of_program_and_server(server: LiveServer) -> None:
    keep(server, "key.json")
    source = f"{READ}print('pid', os.getpid(), flush=True)\ntime.sleep(600)\n"
    job = server.submit(pools=[pool(source, {"name": "KEY", "value": "secret-file://key.json"})])
    place = place_of(server, job)
    [line] = until(lambda: [line["text"] for line in server.lines(job) if line["text"].startswith("pid ")])
    server.post(f"/v1/{job}:cancel")
    server.kill()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(line.removeprefix("pid ")), signal.SIGKILL)
    server.start()
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
    assert not place.exists()


def test_submit_gives_a_secret_as_a_file(server: LiveServer, tmp_path: Path) -> None:
    keep(server, "key.json")
    (tmp_path / "train.py").write_text(READ)
    words = ("submit", str(tmp_path / "train.py"), "--folder", str(tmp_path), "--secret-file")
    done = command(server, *words, "KEY=key.json")
    assert done.returncode == 0 and f"length {len(VALUE)} 0o400 True" in done.stdout, done.stderr
    for wrong, sentence in (("KEY", "is not KEY=NAME"), ("KEY=gone", "trainshed secrets set gone")):
        refused = command(server, *words, wrong)
        assert refused.returncode in (1, 2) and sentence in refused.stderr, refused.stderr


def test_a_manifest_of_kubernetes_names_a_secret_by_name_and_key(server: LiveServer, tmp_path: Path) -> None:
    keep(server, "hub.token")
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "keyed"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "c",
                    "image": "trainshed/python:3",
                    "command": ["python", "-c", LENGTH],
                    "env": [
                        {
                            "name": "HF_TOKEN",
                            "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}},
                        }
                    ],
                }
            ],
        },
    }
    (tmp_path / "pod.json").write_text(json.dumps(manifest))
    done = command(server, "apply", "-f", str(tmp_path / "pod.json"))
    assert done.returncode == 0, done.stderr
    assert command(server, "wait", "keyed").returncode == 0
    assert f"length {len(VALUE)}" in command(server, "logs", "keyed").stdout


def test_a_new_key_and_a_restart_keep_all_values(server: LiveServer) -> None:
    keep(server, "kept")
    before = (server.home / "secret-key.json").read_text()
    assert (server.home / "secret-key.json").stat().st_mode & 0o777 == 0o600
    assert "there is a new key" in command(server, "secrets", "rotate-key").stdout
    assert (server.home / "secret-key.json").read_text() != before
    server.kill()
    server.start()
    reference = {"name": "HF_TOKEN", "value": "secret://kept"}
    assert printed(server, server.submit(pools=[pool(LENGTH, reference)])) == [f"length {len(VALUE)}"]


def test_a_backup_has_values_and_key_together(server: LiveServer, tmp_path: Path) -> None:
    keep(server, "saved")
    done = server.cli("backup", str(tmp_path / "b.tar"), "--home", str(server.home))
    assert done.returncode == 0, done.stderr
    restored = server.base / "restored"
    done = server.cli("restore", str(tmp_path / "b.tar"), "--home", str(restored))
    assert done.returncode == 0, done.stderr
    with LiveServer(home=restored) as other:
        reference = {"name": "HF_TOKEN", "value": "secret://saved"}
        assert printed(other, other.submit(pools=[pool(LENGTH, reference)])) == [f"length {len(VALUE)}"]

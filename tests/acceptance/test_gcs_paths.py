"""Buckets as folders: programs read data below /gcs and leave models there, whatever is killed meanwhile."""

import json
import os
import signal
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import IMAGE, PROJECT, LiveServer, pool, python, until
from tests.shared_server import forget_bucket

pytestmark = pytest.mark.slow

BUCKET = "training-data"
OUT = f"gs://{BUCKET}/runs/one"
MANIFEST = ".trainshed-manifest.json"


@contextmanager
def a_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "32", "--memory", "120GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with a_server() as live:
        yield live


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """All tests have the same one, and each a bucket that is new."""
    with a_bucket(shared_server):
        yield shared_server


@contextmanager
def a_bucket(server: LiveServer) -> Iterator[None]:
    """A new one, which goes with all of its objects."""
    make_bucket(server)
    yield
    forget_bucket(server, BUCKET)


@pytest.fixture
def own_server() -> Iterator[LiveServer]:
    with a_server() as live:
        make_bucket(live)
        yield live


def make_bucket(server: LiveServer) -> None:
    server.post(f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})


def put(server: LiveServer, name: str, content: bytes) -> None:
    path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(name, safe='')}"
    answer = server.request("POST", path, content, headers={"Content-Type": "a/b"})
    assert answer.status == 200, answer.body


def media(server: LiveServer, name: str) -> bytes | None:
    answer = server.request("GET", f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}?alt=media")
    return answer.body if answer.status == 200 else None


def names(server: LiveServer, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    token = ""
    while True:
        page = server.get(f"/storage/v1/b/{BUCKET}/o", prefix=prefix, pageToken=token)
        found |= {one["name"]: one for one in page.get("items", [])}
        if not (token := page.get("nextPageToken", "")):
            return found


def manifest(server: LiveServer, folder: str) -> dict[str, Any]:
    content = media(server, folder + MANIFEST)
    return json.loads(content) if content else {}


def check_manifests(server: LiveServer, prefix: str = "") -> int:
    """Whoever sees a manifest sees all of its files."""
    listed = [name for name in names(server, prefix) if name.endswith(MANIFEST)]
    for name in listed:
        content = media(server, name)
        there = names(server, name.removesuffix(MANIFEST))
        for one in json.loads(content or b'{"files": []}')["files"]:
            file = there[name.removesuffix(MANIFEST) + one["name"]]
            assert (int(file["size"]), file["crc32c"]) == (one["size"], one["crc32c"]), name
    return len(listed)


def submit(server: LiveServer, source: str, **more: object) -> str:
    return server.submit(spec=output(), pools=[pool(python(source))], **more)  # type: ignore[arg-type]


def output() -> dict[str, object]:
    return {"baseOutputDirectory": {"outputUriPrefix": OUT}}


def said(server: LiveServer, job: str) -> list[str]:
    return [line["text"] for line in server.lines(job)]


def ended(server: LiveServer, job: str, state: str = "JOB_STATE_SUCCEEDED") -> list[str]:
    done = server.wait(job)
    assert done["state"] == state, (done.get("error"), said(server, job))
    return said(server, job)


def events(server: LiveServer, job: str) -> list[str]:
    return [f"{one['reason']}: {one['message']}" for one in server.get(f"/v1/{job}:events")["events"]]


def test_a_program_reads_an_object_below_gcs(server: LiveServer):
    put(server, "in/ünïcode 100%.csv", b"1,2,3")
    job = server.submit(["cat", f"/gcs/{BUCKET}/in/ünïcode 100%.csv"])
    assert ended(server, job) == ["1,2,3"]


def test_a_model_written_below_gcs_is_in_the_bucket_with_its_manifest_when_the_job_has_succeeded(
    server: LiveServer,
):
    source = (
        "import os\n"
        "folder = os.environ['AIP_MODEL_DIR'].replace('gs://', '/gcs/')\n"
        "os.makedirs(folder + 'sub')\n"
        "open(folder + 'model.bin', 'wb').write(b'x' * 3_000_000)\n"
        "open(folder + 'sub/größe', 'w').write('y')\n"
    )
    ended(server, submit(server, source))
    found = names(server, "runs/one/model/")
    assert int(found["runs/one/model/model.bin"]["size"]) == 3_000_000
    told = manifest(server, "runs/one/model/")
    assert {one["name"] for one in told["files"]} == {"model.bin", "sub/größe"}
    assert check_manifests(server) == 1


def test_an_object_that_a_program_opens_to_write_is_replaced_and_never_changed_in_place(server: LiveServer):
    put(server, "notes.txt", b"old")
    file = server.home / "buckets" / BUCKET / "notes.txt"
    inode = file.stat().st_ino
    with file.open() as before:
        job = submit(server, f"open('/gcs/{BUCKET}/notes.txt', 'a').write(' and new')")
        ended(server, job)
        assert before.read() == "old"
    assert media(server, "notes.txt") == b"old and new"
    assert file.stat().st_ino != inode


def test_a_failed_job_leaves_no_manifest_of_a_model(server: LiveServer):
    source = "import os, sys\nd = os.environ['TRAINSHED_MODEL_DIR']\nos.makedirs(d)\n"
    job = submit(server, source + "open(d + 'half', 'w').write('x')\nsys.exit(3)")
    ended(server, job, "JOB_STATE_FAILED")
    assert "runs/one/model/half" in names(server)
    assert check_manifests(server) == 0


def test_nothing_of_gcs_is_seen_outside_of_the_job(server: LiveServer):
    job = submit(
        server, f"import time\nopen('/gcs/{BUCKET}/x', 'w')\nprint('there', flush=True)\ntime.sleep(60)"
    )
    until(lambda: said(server, job))
    assert not os.path.exists("/gcs") or not os.listdir("/gcs")
    with open("/proc/self/mounts") as mounts:
        assert " /gcs " not in mounts.read()
    server.cancel(job)
    server.wait(job)


def test_replicas_of_a_job_see_what_the_others_write(server: LiveServer):
    chief = f"open('/gcs/{BUCKET}/said', 'w').write('hello')"
    worker = (
        f"import time, os\np = '/gcs/{BUCKET}/said'\n"
        "while not (os.path.exists(p) and open(p).read()): time.sleep(0.02)\nprint(open(p).read())"
    )
    pools: Sequence[dict[str, Any]] = [pool(python(chief)), pool(python(worker), replicas=2)]
    job = server.submit(pools=pools, spec=output())
    assert ended(server, job) == ["hello", "hello"]
    assert media(server, "said") == b"hello"


def test_a_replica_that_is_restarted_beside_living_ones_comes_back_to_the_same_files(server: LiveServer):
    chief = f"""
import os, time
open('/gcs/{BUCKET}/c', 'w').write('from the chief')
while not os.path.exists('/gcs/{BUCKET}/w'): time.sleep(0.05)
"""
    worker = f"""
import os, signal, time
while not os.path.exists('/gcs/{BUCKET}/c'): time.sleep(0.02)
if os.environ['TRAINSHED_RESTART'] == '0': os.kill(os.getpid(), signal.SIGKILL)
print(open('/gcs/{BUCKET}/c').read())
open('/gcs/{BUCKET}/w', 'w')
"""
    job = server.submit(pools=[pool(python(chief)), pool(python(worker))], spec=output())
    assert ended(server, job) == ["from the chief"]
    assert any(line.startswith("OUTPUTS_STORED: 2 files") for line in events(server, job))


TRAINS = """
import os, signal, time
folder = os.environ["TRAINSHED_CHECKPOINT_DIR"]
resume = os.environ.get("TRAINSHED_RESUME_DIR")
print("from", os.environ.get("TRAINSHED_RESUME_FROM"), flush=True)
if resume:
    print("state", open(resume + "state").read(), sorted(os.listdir(folder)), flush=True)
else:
    for step in (1, 2):
        os.makedirs(f"{folder}step-{step}")
        open(f"{folder}step-{step}/state", "w").write(f"step {step}")
        time.sleep(0.05)
    os.makedirs(f"{folder}step-3")
    open(f"{folder}step-3/state", "w").write("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_restarted_replica_goes_on_from_the_last_complete_checkpoint_and_sees_no_half_one(
    server: LiveServer,
):
    lines = ended(server, submit(server, TRAINS))
    assert lines == [
        "from None",
        f"from {OUT}/checkpoints/step-2/",
        "state step 2 ['step-1', 'step-2']",
    ]
    assert check_manifests(server) == 2
    assert not any("step-3" in name for name in names(server))


def test_a_new_attempt_goes_on_from_the_last_complete_checkpoint(server: LiveServer):
    spec = {**output(), "scheduling": {"restartJobOnWorkerRestart": True}}
    job = server.submit(pools=[pool(python(TRAINS))], spec=spec)
    lines = ended(server, job)
    assert lines[1] == f"from {OUT}/checkpoints/step-2/"
    assert server.lines(job)[-1]["attempt"] == 1


def test_checkpoints_are_stored_while_the_program_runs_and_go_when_it_removes_them(server: LiveServer):
    source = """
import os, shutil, time
folder = os.environ["TRAINSHED_CHECKPOINT_DIR"]
for step in (1, 2):
    os.makedirs(f"{folder}step-{step}/deep")
    open(f"{folder}step-{step}/deep/weights", "w").write("w" * step)
time.sleep(12)
shutil.rmtree(f"{folder}step-1")
print(sorted(os.listdir(folder)), flush=True)
time.sleep(600)
"""
    job = submit(server, source)
    until(lambda: manifest(server, "runs/one/checkpoints/step-1/"))
    until(lambda: manifest(server, "runs/one/checkpoints/step-2/"))
    until(lambda: said(server, job) == ["['step-2']"])
    until(lambda: not names(server, "runs/one/checkpoints/step-1/"))
    assert check_manifests(server) == 1
    server.cancel(job)
    server.wait(job)


def test_local_paths_are_given_to_a_job_that_asks_for_them(server: LiveServer):
    source = "import os; print(os.environ['AIP_MODEL_DIR'], os.environ['AIP_CHECKPOINT_DIR'])"
    asking = pool(python(source), env={"TRAINSHED_LOCAL_PATHS": "1"})
    job = server.submit(pools=[asking], spec=output())
    assert ended(server, job) == [f"/gcs/{BUCKET}/runs/one/model/ /gcs/{BUCKET}/runs/one/checkpoints/"]


def test_a_program_that_writes_where_no_bucket_is_has_not_succeeded(server: LiveServer):
    job = submit(
        server, "import os\nos.makedirs('/gcs/no-such-bucket/x')\nopen('/gcs/no-such-bucket/x/y', 'w')"
    )
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "/gcs/no-such-bucket/x/y" in done["error"]["message"]


def test_a_file_beside_the_buckets_is_lost_and_its_job_has_not_succeeded(server: LiveServer):
    done = server.wait(submit(server, "open('/gcs/lost.bin', 'w').write('x')"))
    assert done["state"] == "JOB_STATE_FAILED"
    assert "/gcs/lost.bin: it is in no bucket" in done["error"]["message"]


def test_an_output_said_with_s3_is_the_same_place_in_a_bucket_of_this_server(server: LiveServer):
    source = (
        "import os\nfolder = os.environ['TRAINSHED_MODEL_DIR']\nos.makedirs(folder)\n"
        "open(folder + 'model.bin', 'w').write('x')"
    )
    place = {"baseOutputDirectory": {"outputUriPrefix": f"s3://{BUCKET}/runs/s3"}}
    ended(server, server.submit(spec=place, pools=[pool(python(source))]))
    assert {one["name"] for one in manifest(server, "runs/s3/model/")["files"]} == {"model.bin"}


def test_a_job_whose_s3_output_is_elsewhere_is_told_no_path_for_it(server: LiveServer):
    place = {"baseOutputDirectory": {"outputUriPrefix": "s3://of-another-store/x"}}
    source = "import os; print(os.environ.get('TRAINSHED_MODEL_DIR'), os.environ['AIP_MODEL_DIR'])"
    job = server.submit(spec=place, pools=[pool(python(source))])
    assert ended(server, job) == ["None s3://of-another-store/x/model/"]


def test_a_package_named_by_its_path_below_gcs_is_found(server: LiveServer):
    """What the SDK makes of an image that is not Google's."""
    put(server, "aiplatform-1-pkg.tar.gz", b"not really")
    line = f"ls -l /gcs/{BUCKET}/aiplatform-1-pkg.tar.gz && echo found"
    assert ended(server, server.submit(["sh", "-c", line]))[-1] == "found"


@pytest.mark.skipif(
    os.geteuid() != 0, reason="without root no job that sees /gcs starts warm: run it as root"
)
def test_replicas_that_see_gcs_are_started_warm_and_share_what_they_write():
    source = f"""
import os, time
me, other = ("a", "b") if os.environ["RANK"] == "0" else ("b", "a")
os.makedirs("/gcs/{BUCKET}/out", exist_ok=True)
open(f"/gcs/{BUCKET}/out/{{me}}", "w").write(me)
while not os.path.exists(f"/gcs/{BUCKET}/out/{{other}}"):
    time.sleep(0.01)
print(open("/s3/{BUCKET}/x").read())
"""
    with LiveServer("--warm", IMAGE, "--cpus", "8", "--memory", "32GiB") as server:
        make_bucket(server)
        put(server, "x", b"seen")
        until(lambda: "Forked" in running_event(server, server.submit(python("pass"))))
        job = server.submit(pools=[pool(python(source), replicas=2)])
        assert ended(server, job) == ["seen", "seen"]
        assert running_event(server, job) == "All 2 replicas run. Forked from a warm interpreter."
        assert set(names(server, "out/")) == {"out/a", "out/b"}


def running_event(server: LiveServer, job: str) -> str:
    server.wait(job)
    found = server.get(f"/v1/{job}:events")["events"]
    return next(one["message"] for one in found if one["reason"] == "RUNNING")


def test_a_server_killed_while_it_stores_goes_on_and_the_job_ends_with_all_of_its_files(
    own_server: LiveServer,
):
    server = own_server
    source = (
        "import os\nd = os.environ['TRAINSHED_MODEL_DIR']\nos.makedirs(d)\n"
        "for n in range(3000): open(f'{d}{n:04}', 'w').write(str(n))\n"
    )
    job = submit(server, source)
    kills = 0
    until(lambda: len(names(server, "runs/one/model/")) > 50)
    while server.state(job) == "JOB_STATE_RUNNING" and kills < 4:
        server.kill()
        server.start()
        check_manifests(server)
        kills += 1
        time.sleep(0.3)
    ended(server, job)
    assert kills
    assert len(manifest(server, "runs/one/model/")["files"]) == 3000
    check_manifests(server)
    until(lambda: not list((server.home / "run/jobs").iterdir()))


def test_files_that_are_renamed_replaced_and_removed_while_they_are_stored_end_as_they_are_at_the_end(
    server: LiveServer,
):
    source = f"""
import json, os, random, time, zlib
chance, top = random.Random(1), "/gcs/{BUCKET}/moving/"
os.makedirs(top)
end = time.time() + 9
while time.time() < end:
    name = top + str(chance.randrange(30))
    if chance.random() < 0.3 and os.path.exists(name):
        os.remove(name)
    else:
        with open(name + ".tmp", "w") as file:
            file.write(str(chance.random()) * chance.randrange(1, 2000))
        os.replace(name + ".tmp", name)
    time.sleep(chance.choice((0, 0.01, 0.4)))
print(json.dumps({{name: zlib.crc32(open(top + name, "rb").read()) for name in os.listdir(top)}}))
"""
    [line] = ended(server, submit(server, source))
    found = {name: zlib.crc32(media(server, name) or b"gone") for name in names(server, "moving/")}
    assert found == {f"moving/{name}": crc for name, crc in json.loads(line).items()}


def test_a_program_killed_while_it_writes_leaves_no_half_checkpoint(server: LiveServer):
    source = """
import os, time
folder = os.environ["TRAINSHED_CHECKPOINT_DIR"]
os.makedirs(folder + "a")
print(os.getpid(), flush=True)
with open(folder + "a/large", "wb", buffering=0) as file:
    while True:
        file.write(b"z" * 100_000)
        time.sleep(0.01)
"""
    spec = {**output(), "scheduling": {"disableRetries": True}}
    job = server.submit(pools=[pool(python(source))], spec=spec)
    [pid] = until(lambda: said(server, job))
    time.sleep(3)
    os.kill(int(pid), signal.SIGKILL)
    ended(server, job, "JOB_STATE_FAILED")
    assert not names(server, "runs/one/checkpoints/")
    [told] = [line for line in events(server, job) if line.startswith("OUTPUTS_STORED")]
    assert f"killed or have failed while it wrote it: /gcs/{BUCKET}/runs/one/checkpoints/a/." in told

"""Jobs and buckets, over a live server: what a job's programs reach with nothing said, and what not."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conformance.sdk_session import PYTHON
from tests.live import JOBS, Answer, LiveServer, pool, python, until

needs_sdk = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-storage is not in .venv-sdk: make sdk"),
]
STAYS = (
    "import os, sys, time\nopen(sys.argv[1], 'w').write(os.environ['STORAGE_EMULATOR_HOST'])\ntime.sleep(600)"
)
OWN = "/t/JOB/storage/v1/b/mine/o"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "64GiB") as live:
        for name, project in (("mine", "p1"), ("theirs", "p2")):
            live.post("/storage/v1/b", {"name": name}, project=project)
        put(live, "theirs", "secret", b"nobody's business")
        yield live
        assert "Traceback" not in live.said(), live.said()


def put(server: LiveServer, bucket: str, name: str, content: bytes) -> None:
    path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
    assert server.request("POST", path, content).status == 200


def names(server: LiveServer, bucket: str) -> list[str]:
    return [one["name"] for one in server.get(f"/storage/v1/b/{bucket}/o").get("items", [])]


def printed(server: LiveServer, *command: str, env: dict[str, str] | None = None) -> list[str]:
    """What a job of these words prints, once it has succeeded."""
    job = server.submit(pools=[pool(command, env=env)])
    done = server.wait(job)
    lines = [line["text"] for line in server.lines(job)]
    assert done["state"] == "JOB_STATE_SUCCEEDED", lines
    return lines


@dataclass(frozen=True)
class Inside:
    """A running job, and its right in a stranger's hands."""

    server: LiveServer
    job: str
    token: str

    def ask(self, verb: str, path: str, body: object = None, **headers: str) -> Answer:
        """JOB in the path stands for the job's token; no Authorization is sent unless it is among headers."""
        sent = {name.replace("_", "-").title(): value for name, value in headers.items()}
        return self.server.request(verb, path.replace("JOB", self.token), body, token=None, headers=sent)


def inside(server: LiveServer, note: Path) -> Inside:
    job = server.submit([*python(STAYS), str(note)])
    address = until(lambda: note.exists() and note.read_text())
    assert address.startswith(f"http://127.0.0.1:{server.port}/t/")
    return Inside(server, job, urlsplit(address).path.removeprefix("/t/"))


@pytest.fixture(scope="module")
def running(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    found = inside(server, tmp_path_factory.mktemp("job") / "address")
    yield found
    server.cancel(found.job)


# ---- with the clients people use, as the job's own interpreter

SEED_004 = """
import sys
from google.cloud import storage

open('/tmp/' + sys.argv[1], 'w').write('weights')
client = storage.Client()
bucket = client.bucket('mine')
blob = bucket.blob('models/model.pth')
blob.upload_from_filename('/tmp/' + sys.argv[1])
seen = [one.name for one in client.list_buckets()]
print(bucket.blob('models/model.pth').download_as_text(), 'theirs' in seen)
try:
    client.bucket('theirs').blob('secret').download_as_bytes()
except Exception as error:
    print(type(error).__name__, 'belongs to another project' in str(error))
"""
FSSPEC = """
import fsspec, gcsfs
with fsspec.open('gs://mine/fs/notes.txt', 'w') as file:
    file.write('by fsspec')
fs = gcsfs.GCSFileSystem()
fs.pipe('mine/fs/big', b'x' * 1_000_000)
print(fs.cat('mine/fs/notes.txt').decode(), fs.ls('mine/fs'), fs.du('mine/fs'))
try:
    fs.ls('theirs')
except OSError as error:
    print('belongs to another project' in str(error))
"""
OBSTORE = """
import obstore
from obstore.store import GCSStore, from_url
store = from_url('gs://mine/ob')
obstore.put(store, 'a', b'by obstore')
obstore.put(store, 'big', b'x' * 12_000_000)
print(bytes(obstore.get(GCSStore('mine'), 'ob/a').bytes()).decode(), obstore.head(store, 'big')['size'])
try:
    obstore.get(GCSStore('theirs'), 'secret')
except obstore.exceptions.PermissionDeniedError as error:
    print('belongs to another project' in str(error))
"""


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        pytest.param(SEED_004, ["weights False", "Forbidden True"], marks=needs_sdk, id="storage"),
        pytest.param(
            FSSPEC,
            ["by fsspec ['mine/fs/big', 'mine/fs/notes.txt'] 1000009", "True"],
            marks=needs_sdk,
            id="fsspec",
        ),
        pytest.param(OBSTORE, ["by obstore 12000000", "True"], marks=needs_sdk, id="obstore"),
    ],
)
def test_a_client_with_no_credentials_works_in_a_job_as_printed(
    server: LiveServer, tmp_path: Path, program: str, lines: list[str]
) -> None:
    name = f"{tmp_path.name}-{os.getpid()}"
    try:
        assert printed(server, str(PYTHON), "-c", program, name) == lines
    finally:
        Path("/tmp", name).unlink(missing_ok=True)


GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "data.md"


@pytest.mark.needs_sdk
@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-storage is not in .venv-sdk: make sdk")
def test_what_the_guide_prints_for_programs_runs(server: LiveServer) -> None:
    programs = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(programs) == 3
    server.post("/storage/v1/b", {"name": "shelf"}, project="p1")
    put(server, "shelf", "data/train.csv", b"1,2\n")
    source = "open('model.pt', 'w').write('weights')\n" + "\n".join(programs)
    output = {"baseOutputDirectory": {"outputUriPrefix": "gs://shelf/run-1"}}
    job = server.submit([str(PYTHON), "-c", source], spec=output)
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.lines(job)
    assert names(server, "shelf") == ["data/train.csv", "run-1/model/model.pt", "run-1/notes.txt"]


UPLOADS = """
import sys, time
from google.cloud import storage
class Slow:
    def __init__(self): self.at = 0
    def read(self, size=-1):
        time.sleep(0.05)
        size = min(size, (12 << 20) - self.at)
        self.at += size
        return b'u' * size
    def tell(self): return self.at
    def seek(self, at, whence=0): self.at = at if whence == 0 else self.at + at; return self.at
blob = storage.Client().bucket('kept').blob('large', chunk_size=1 << 18)
print('begins', flush=True)
blob.upload_from_file(Slow(), size=12 << 20)  # above 8 MiB it goes in pieces
print(blob.size)
"""


@pytest.mark.needs_sdk
@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-storage is not in .venv-sdk: make sdk")
def test_an_upload_of_a_job_goes_on_after_the_server_was_killed() -> None:
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": "kept"}, project="p1")
        job = server.submit([str(PYTHON), "-c", UPLOADS])
        until(lambda: any((server.home / "buckets").rglob("*")) and server.lines(job))
        until(lambda: _some_bytes(server.home / "buckets"))
        server.kill()
        server.start()
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.lines(job)
        assert [line["text"] for line in server.lines(job)] == ["begins", str(12 << 20)]
        assert int(server.get("/storage/v1/b/kept/o/large")["size"]) == 12 << 20


def _some_bytes(folder: Path) -> bool:
    """Whether part of the upload has come, and not all."""
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return any(1 << 20 <= size < 10 << 20 for size in sizes)


# ---- the right itself


def test_a_job_reads_and_writes_its_projects_buckets(running: Inside) -> None:
    upload = "/t/JOB/upload/storage/v1/b/mine/o?uploadType=media&name=by-hand"
    assert running.ask("POST", upload, b"bytes").status == 200
    assert running.ask("GET", f"{OWN}/by-hand?alt=media").body == b"bytes"
    assert running.ask("PUT", "/t/JOB/mine/by-xml", b"bytes").status == 200
    assert {"by-hand", "by-xml"} <= {one["name"] for one in running.ask("GET", OWN).json["items"]}
    listed = [one["name"] for one in running.ask("GET", "/t/JOB/storage/v1/b").json["items"]]
    assert "mine" in listed
    assert "theirs" not in listed
    assert running.ask("DELETE", f"{OWN}/by-hand").status == 204
    by_header = {"authorization": f"Bearer {running.token}"}
    assert running.ask("GET", "/storage/v1/b/mine/o/by-xml", **by_header).status == 200


BATCH = (
    b"--x\r\nContent-Type: application/http\r\nContent-ID: <1>\r\n\r\n"
    b"DELETE /storage/v1/b/theirs/o/secret HTTP/1.1\r\n\r\n--x--\r\n"
)


@pytest.mark.parametrize(
    ("verb", "path", "body", "header"),
    [
        ("GET", "/t/JOB/storage/v1/b/theirs", None, {}),
        ("GET", "/t/JOB/storage/v1/b/theirs/o", None, {}),
        ("GET", "/t/JOB/storage/v1/b/theirs/o/secret", None, {}),
        ("GET", "/t/JOB/download/storage/v1/b/theirs/o/secret?alt=media", None, {}),
        ("PATCH", "/t/JOB/storage/v1/b/theirs/o/secret", {"contentType": "x"}, {}),
        ("DELETE", "/t/JOB/storage/v1/b/theirs/o/secret", None, {}),
        ("POST", "/t/JOB/upload/storage/v1/b/theirs/o?uploadType=media&name=new", b"x", {}),
        ("POST", "/t/JOB/upload/storage/v1/b/theirs/o?uploadType=resumable&name=new", {}, {}),
        ("POST", "/t/JOB/storage/v1/b/theirs/o/secret/rewriteTo/b/mine/o/stolen", {}, {}),
        ("POST", "/t/JOB/storage/v1/b/mine/o/by-xml/rewriteTo/b/theirs/o/new", {}, {}),
        ("POST", "/t/JOB/storage/v1/b/theirs/o/new/compose", {"sourceObjects": [{"name": "secret"}]}, {}),
        ("GET", "/t/JOB/theirs?list-type=2", None, {}),
        ("GET", "/t/JOB/theirs/secret", None, {}),
        ("PUT", "/t/JOB/theirs/new", b"x", {}),
        ("PUT", "/t/JOB/mine/stolen", b"", {"x_goog_copy_source": "theirs/secret"}),
        ("PUT", "/t/JOB/mine/stolen", b"", {"x_goog_copy_source": "/%74heirs/secret"}),
        ("GET", "/t/JOB/storage/v1/b?project=p2", None, {}),
    ],
)
def test_a_bucket_of_another_project_is_refused_with_a_sentence(
    running: Inside, verb: str, path: str, body: object, header: dict[str, str]
) -> None:
    answer = running.ask(verb, path, body, **header)
    assert answer.status == 403, answer.body
    assert re.search(r"belongs to another project|the buckets of its own project", answer.body.decode())
    assert names(running.server, "theirs") == ["secret"]
    assert "stolen" not in names(running.server, "mine")


def test_a_request_inside_of_a_batch_has_no_more_right_than_the_batch(running: Inside) -> None:
    kind = "multipart/mixed; boundary=x"
    answer = running.ask("POST", "/t/JOB/batch/storage/v1", BATCH, content_type=kind)
    assert b"HTTP/1.1 403" in answer.body
    assert b"belongs to another project" in answer.body
    assert names(running.server, "theirs") == ["secret"]


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("POST", "/t/JOB/storage/v1/b?project=p1", {"name": "new-one"}),
        ("PATCH", "/t/JOB/storage/v1/b/mine", {"labels": {"a": "b"}}),
        ("DELETE", "/t/JOB/storage/v1/b/mine", None),
    ],
)
def test_a_job_makes_changes_and_removes_no_bucket(
    running: Inside, verb: str, path: str, body: object
) -> None:
    answer = running.ask(verb, path, body)
    assert answer.status == 403
    assert "not make, change or remove buckets" in answer.error["message"]


def test_a_jobs_token_opens_nothing_but_buckets(running: Inside) -> None:
    bearer = {"authorization": f"Bearer {running.token}"}
    for path in (JOBS, f"/v1/{running.job}", f"/v1/{running.job}:environment", "/metrics"):
        assert running.ask("GET", path, **bearer).status == 401, path
        assert running.ask("GET", f"/t/JOB{path}").status in (400, 403, 404), path
    assert running.ask("POST", f"/v1/{running.job}:cancel", {}, **bearer).status == 401
    assert running.server.state(running.job) == "JOB_STATE_RUNNING"


def test_forged_and_cut_tokens_are_refused(running: Inside) -> None:
    head, _, signature = running.token.rpartition(".")
    other = signature[:-1] + ("A" if signature[-1] != "A" else "B")
    for token in (
        head,
        f"{head}.",
        running.token[:-1],
        f"{running.token}x",
        f"{head}.{other}",
        f"job.1.{signature}",
        "job.",
        "job..",
        f"job.%00.{signature}",
    ):
        answer = running.ask("GET", f"/t/{token}/storage/v1/b/mine/o")
        assert answer.status == 403, token
        assert "not issued by this server" in answer.error["message"]
        assert running.ask("GET", "/storage/v1/b", authorization=f"Bearer {token}").status == 403


def test_people_use_the_buckets_as_before(server: LiveServer) -> None:
    assert server.request("GET", "/storage/v1/b/theirs/o/secret").status == 200
    assert server.request("GET", f"/t/{server.token}/storage/v1/b/theirs/o", token=None).status == 200
    assert server.request("GET", "/storage/v1/b/theirs/o/secret", token=None).status == 403
    assert [one["name"] for one in server.get("/storage/v1/b", project="p2")["items"]] == ["theirs"]


def test_a_deleted_job_has_no_right(server: LiveServer, tmp_path: Path) -> None:
    found = inside(server, tmp_path / "address")
    server.cancel(found.job)
    server.wait(found.job)
    assert found.ask("GET", OWN).status == 200  # its grace
    assert server.request("DELETE", f"/v1/{found.job}").status == 200
    until(lambda: found.ask("GET", OWN).status == 403)
    assert "was deleted" in found.ask("GET", OWN).error["message"]


def test_a_killed_server_knows_the_tokens_it_gave_out(server: LiveServer, tmp_path: Path) -> None:
    found = inside(server, tmp_path / "address")
    server.kill()
    server.start()
    assert found.ask("GET", OWN).status == 200
    server.cancel(found.job)


@pytest.mark.parametrize("flags", [("--host", "0.0.0.0"), ("--no-auth",)])
def test_jobs_reach_a_server_that_listens_everywhere_or_asks_for_nothing(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    with LiveServer(*flags) as server:
        server.post("/storage/v1/b", {"name": "mine"}, project="p1")
        server.post("/storage/v1/b", {"name": "theirs"}, project="p2")
        found = inside(server, tmp_path / "address")
        assert found.ask("GET", OWN).status == 200
        assert found.ask("GET", "/t/JOB/storage/v1/b/theirs/o").status == 403
        server.cancel(found.job)


def test_a_jobs_own_variables_win(server: LiveServer) -> None:
    program = "import os; print(os.environ['STORAGE_EMULATOR_HOST'], os.environ['FSSPEC_GCS_TOKEN'])"
    env = {"STORAGE_EMULATOR_HOST": "https://storage.googleapis.com"}
    assert printed(server, *python(program), env=env) == ["https://storage.googleapis.com anon"]


# ---- where the token is not


def test_the_token_is_kept_nowhere_but_in_the_files_of_the_run(running: Inside) -> None:
    server, signature = running.server, running.token.rpartition(".")[2].encode()
    for path in (":status", ":events", ":environment", ":why", ""):
        answer = server.request("GET", f"/v1/{running.job}{path}")
        assert signature not in answer.body, path
    told = server.get(f"/v1/{running.job}:environment")["replicas"][0]["environment"]
    assert told["STORAGE_EMULATOR_HOST"] == "(hidden: for the job alone)"
    bearing = [file for file in server.home.rglob("*") if file.is_file() and signature in file.read_bytes()]
    assert {file.name for file in bearing} == {"launch.json"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in bearing)


def test_an_error_that_names_the_address_is_judged_without_the_token(server: LiveServer) -> None:
    program = "import os; raise OSError(403, 'POST ' + os.environ['STORAGE_EMULATOR_HOST'] + '/b/x: no')"
    job = server.submit(python(program))
    server.wait(job)
    status, events = server.get(f"/v1/{job}:status"), server.get(f"/v1/{job}:events")
    assert "/b/x: no" in status["failure"]["verdict"]["summary"]
    for told in (status, events, server.job(job)):
        assert not re.search(r"job\.\d+\.[\w-]{20}", json.dumps(told)), told

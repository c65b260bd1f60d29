"""Google's own hosts, as programs of jobs find them: this server, by names that are compiled in."""

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_access import printed, put
from tests.acceptance.test_ai_platform import TENSORFLOW
from tests.conformance.sdk_session import PYTHON
from tests.live import LiveServer, pool, python, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may listen at port 443 and mount")

ASK = """
import json, os, sys, urllib.error, urllib.parse, urllib.request
def ask(url, data=None, token=None, **headers):
    if token:
        headers['Authorization'] = 'Bearer ' + token
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=data, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
token = os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']
"""
# Without what points clients at this server by other means.
BARE = """
import os
for name in ('STORAGE_EMULATOR_HOST', 'FSSPEC_GCS_TOKEN', 'GOOGLE_SERVICE_ACCOUNT_KEY'):
    del os.environ[name]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "64GiB") as live:
        for name, project in (("mine", "p1"), ("theirs", "p2")):
            live.post("/storage/v1/b", {"name": name}, project=project)
        put(live, "mine", "my_data_001.csv", b"a,b\n1,2\n")
        put(live, "theirs", "secret", b"nobody's business")
        yield live
        assert "Traceback" not in live.said(), live.said()


def test_each_host_serves_its_part_of_the_storage_api_to_the_job(server: LiveServer) -> None:
    lines = printed(
        server,
        *python(
            ASK + "www, media = 'https://www.googleapis.com', 'https://storage.googleapis.com'\n"
            "upload = www + '/upload/storage/v1/b/mine/o?uploadType=media&name=made'\n"
            "print(ask(media + '/mine/my_data_001.csv', token=token)[1])\n"
            "print(ask(www + '/storage/v1/b/mine/o/my_data_001.csv?alt=media', token=token)[1])\n"
            "print(ask(upload, b'made', token=token)[0])\n"
            "print(ask(www + '/storage/v1/b/theirs/o', token=token)[0])\n"
            "print(ask(www + '/v1/projects/p1/locations/us-central1/customJobs', token=token)[0])\n"
            "print(ask(media + '/mine/my_data_001.csv', token=token, Origin=media)[0])\n"
        ),
    )
    assert [line for line in lines if line] == ["a,b", "1,2", "a,b", "1,2", "200", "403", "404", "403"]


def test_an_upload_is_taken_as_tensorflow_sends_it(server: LiveServer) -> None:
    """It says twice how much it sends, and looks for two headers in just one spelling."""
    source = r"""
import os, socket, ssl
token, name = os.environ["GOOGLE_AUTH_TOKEN_FOR_TESTING"], "www.googleapis.com"
line = ssl.create_default_context().wrap_socket(socket.create_connection((name, 443)), server_hostname=name)
def ask(first, *headers):
    head = (first, f"Host: {name}", f"Authorization: Bearer {token}", *headers, "", "")
    line.sendall("\r\n".join(head).encode())
    return line.recv(4096).decode().splitlines()
nothing = ("Content-Length: 0", "Transfer-Encoding: identity")
begun = ask("POST /upload/storage/v1/b/mine/o?uploadType=resumable&name=x HTTP/1.1", *nothing)
place = next(text for text in begun if text.startswith("Location: ")).partition(name)[2]
line.sendall(f"PUT {place} HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer {token}\r\n"
    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\nContent-Range: bytes 0-2/5\r\n\r\n"
    "3\r\nabc\r\n0\r\n\r\n".encode())
line.recv(4096)
status = ask(f"PUT {place} HTTP/1.1", "Content-Range: bytes */5", *nothing)
print(begun[0], "|", status[0], "|", *[text for text in status if text.startswith("Range: ")])
"""
    said = printed(server, *python(source))
    assert said == ["HTTP/1.1 200 OK | HTTP/1.1 308 Permanent Redirect | Range: bytes=0-2"]


def test_who_brings_no_token_is_known_by_its_connection(server: LiveServer) -> None:
    """As curl, or a client without credentials; also what a program starts."""
    source = (
        ASK + "print(ask('https://storage.googleapis.com/mine/my_data_001.csv')[0])\n"
        "print(ask('https://storage.googleapis.com/theirs/secret')[0])\n"
        "print(ask('https://oauth2.googleapis.com/token', b'grant_type=x&assertion=y')[1])\n"
        "print(token)\n"
    )
    reads, foreign, granted, token = printed(
        server, "sh", "-c", 'true; "$0" -c "$1"; true', python("")[0], source
    )
    assert (reads, foreign) == ("200", "403")
    assert json.loads(granted)["access_token"] == token


def test_a_stranger_of_this_machine_is_not_let_in(server: LiveServer) -> None:
    """The listener is on loopback, where others may come too."""
    address = printed(
        server, *python("import socket; print(socket.gethostbyname('storage.googleapis.com'))")
    )[0]
    assert address.startswith("127.77.")
    context = ssl.create_default_context(cafile=str(server.home / "tls" / "roots.pem"))
    for host, path, status in (
        ("storage.googleapis.com", "/mine/my_data_001.csv", 403),
        ("oauth2.googleapis.com", "/token", 400),
    ):
        connection = http.client.HTTPSConnection(address, 443, context=context)
        connection.sock = context.wrap_socket(
            socket.create_connection((address, 443), 20), server_hostname=host
        )
        connection.request("POST" if status == 400 else "GET", path, headers={"Host": host})
        answer = connection.getresponse()
        assert answer.status == status, answer.read()
        connection.close()


def test_the_metadata_server_gives_a_job_its_own_token(server: LiveServer) -> None:
    lines = printed(
        server,
        *python(
            ASK + "root = 'http://' + os.environ['GCE_METADATA_HOST']\n"
            "of = root + '/computeMetadata/v1/instance/service-accounts/default/token'\n"
            "print(json.loads(ask(of, **{'Metadata-Flavor': 'Google'})[1])['access_token'] == token)\n"
            "print(ask(of)[0])\n"
            "project = root + '/computeMetadata/v1/project/project-id'\n"
            "print(ask(project, **{'Metadata-Flavor': 'Google'})[1])\n"
        ),
    )
    assert lines == ["True", "403", "p1"]


def test_a_jobs_own_roots_are_left_alone(server: LiveServer) -> None:
    source = "import os; print(os.environ['REQUESTS_CA_BUNDLE'], os.environ['SSL_CERT_FILE'])"
    lines = printed(server, *python(source), env={"REQUESTS_CA_BUNDLE": "/my/own.pem"})
    assert lines == [f"/my/own.pem {server.home}/tls/roots.pem"]


def test_a_job_that_means_google_is_left_to_google(server: LiveServer) -> None:
    """It is not asked here: nothing of a test leaves the machine."""
    google = {"STORAGE_EMULATOR_HOST": "https://storage.googleapis.com"}
    source = "import os; print('googleapis' in open('/etc/hosts').read(), 'GCE_METADATA_HOST' in os.environ)"
    assert printed(server, *python(source), env=google) == ["False False"]
    assert printed(server, *python(source)) == ["True True"]


def test_a_job_with_a_view_finds_both(server: LiveServer) -> None:
    source = ASK + (
        "print(open('/gcs/mine/my_data_001.csv').readline().strip(),"
        " ask('https://storage.googleapis.com/mine/my_data_001.csv', token=token)[0])"
    )
    assert printed(server, *python(source)) == ["a,b 200"]


def test_a_job_sees_what_was_mounted_after_the_server_began(server: LiveServer, tmp_path: Path) -> None:
    server.wait(server.submit(python("pass")))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(tmp_path)], check=True)
    try:
        (tmp_path / "share").write_text("here")
        assert printed(server, "cat", str(tmp_path / "share")) == ["here"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_the_machine_itself_is_left_alone(server: LiveServer) -> None:
    printed(server, *python("print()"))
    assert "googleapis" not in Path("/etc/hosts").read_text()
    assert str(server.home) not in Path("/proc/self/mountinfo").read_text()


def test_a_running_job_reaches_the_server_that_was_killed_and_is_back() -> None:
    with LiveServer() as own:
        own.post("/storage/v1/b", {"name": "kept"}, project="p1")
        put(own, "kept", "x", b"kept")
        source = (
            ASK + "import time\nurl = 'https://storage.googleapis.com/kept/x'\n"
            "print(ask(url, token=token)[1], flush=True)\n"
            "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"
            "for _ in range(200):\n"
            "    try:\n        print('again', ask(url, token=token)[1]); break\n"
            "    except OSError: time.sleep(0.1)\n"
        )
        flag = own.base / "go"
        job = own.submit(pools=[pool([*python(source), str(flag)])])
        until(lambda: "kept" in [line["text"] for line in own.lines(job)])
        own.kill()
        own.start()
        flag.touch()
        assert own.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
        assert [line["text"] for line in own.lines(job)][-1] == "again kept"


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
def test_without_the_right_to_port_443_jobs_start_as_before_and_the_verdict_names_gcs() -> None:
    poor = LiveServer()
    poor.prefix = ("setpriv", "--bounding-set", "-net_bind_service", "--inh-caps", "-net_bind_service")
    with poor:
        source = (
            "import os; print('googleapis' in open('/etc/hosts').read(), 'GCE_METADATA_HOST' in os.environ)\n"
            "raise OSError('Failed to connect to storage.googleapis.com port 443')"
        )
        job = poor.submit(python(source))
        done = poor.wait(job)
        assert done["state"] == "JOB_STATE_FAILED"
        assert "/gcs/BUCKET" in done["error"]["message"]
        assert "False False" in [line["text"] for line in poor.lines(job)]
        assert "this server may not listen at port 443" in poor.said()


@pytest.mark.needs_sdk
@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-storage is not in .venv-sdk: make sdk")
class TestGooglesOwnClients:
    def test_google_cloud_storage_finds_its_credentials_and_the_buckets(self, server: LiveServer) -> None:
        source = BARE + (
            "from google.cloud import storage\nclient = storage.Client()\nprint(client.project)\n"
            "bucket = client.bucket('mine')\nprint(bucket.blob('my_data_001.csv').download_as_bytes())\n"
            "bucket.blob('by/sdk').upload_from_string('x' * 100)\nprint(bucket.blob('by/sdk').exists())\n"
        )
        assert printed(server, str(PYTHON), "-W", "ignore", "-c", source) == ["p1", "b'a,b\\n1,2\\n'", "True"]

    def test_gcsfs_finds_its_credentials_and_the_buckets(self, server: LiveServer) -> None:
        source = BARE + (
            "import gcsfs\nfiles = gcsfs.GCSFileSystem()\nprint(files.cat('mine/my_data_001.csv'))\n"
        )
        assert printed(server, str(PYTHON), "-W", "ignore", "-c", source) == ["b'a,b\\n1,2\\n'"]


@pytest.mark.needs_tensorflow
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not TENSORFLOW.exists(), reason="needs TensorFlow in .venv-tensorflow (make tensorflow)")
def test_tensorflow_reads_and_writes_gs_as_the_book_says(server: LiveServer) -> None:
    """Seed 001: `just use the GCS paths as the filenames`; what its datasets rely on is tf.io.gfile."""
    source = """
import tensorflow as tf
print([line.numpy() for line in tf.data.TextLineDataset("gs://mine/my_data_001.csv")])
with tf.io.gfile.GFile("gs://mine/tf/w.txt", "w") as file:
    file.write("hello " * 1000)
tf.io.gfile.copy("gs://mine/tf/w.txt", "gs://mine/tf/c.txt")
print(tf.io.gfile.glob("gs://mine/tf/*"), tf.io.gfile.stat("gs://mine/tf/c.txt").length)
with tf.io.TFRecordWriter("gs://mine/tf/r.tfrecord") as writer:
    writer.write(b"record")
print([one.numpy() for one in tf.data.TFRecordDataset("gs://mine/tf/r.tfrecord")])
point = tf.train.Checkpoint(v=tf.Variable(3.0))
saved = point.save("gs://mine/tf/ckpt/m")
point.v.assign(1.0)
point.restore(saved)
print(saved, float(point.v))
"""
    job = server.submit(pools=[pool([str(TENSORFLOW), "-c", source])])
    done = server.wait(job, 300)
    lines = [line["text"] for line in server.lines(job)]
    assert done["state"] == "JOB_STATE_SUCCEEDED", lines
    assert [line for line in lines if line[:1] in "[g"] == [
        "[b'a,b', b'1,2']",
        "['gs://mine/tf/c.txt', 'gs://mine/tf/w.txt'] 6000",
        "[b'record']",
        "gs://mine/tf/ckpt/m-1 3.0",
    ]

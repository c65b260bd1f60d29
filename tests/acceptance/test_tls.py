"""A server that speaks TLS: commands, jobs and browsers on it, who trusts it, and how it renews."""

import contextlib
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

from tests.conformance.sdk_session import PYTHON
from tests.live import PATIENCE, Answer, LiveServer, pool, python, until
from trainshed.certificates.home import Certificates

STORE = "from google.cloud import storage; b = storage.Client().bucket('box')"
NAMES = ("gpu-box.example", "127.0.0.1")


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "64", "--memory", "64GiB", "--tls") as live:
        live.post("/storage/v1/b", {"name": "box"}, project="p1")
        yield live
        assert "Traceback" not in live.said(), live.said()


def plainly(
    server: LiveServer, path: str, token: str = "", verb: str = "GET", body: str | None = None
) -> Answer:
    """The answer to a request without TLS."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(verb, path, body, headers | ({"Content-Type": "application/json"} if body else {}))
        reply = connection.getresponse()
        return Answer(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())


def test_commands_submit_follow_and_look_into_a_job(server: LiveServer, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('step 1'); print('step 2')")
    done = server.cli("submit", "--name", "secure", str(tmp_path / "train.py"))
    assert done.returncode == 0, done.stderr
    assert "step 1" in done.stdout
    assert server.cli("wait", "secure").returncode == 0
    assert "step 1" in server.cli("logs", "secure").stdout
    sent = server.cli("storage", "cp", str(tmp_path / "train.py"), "gs://box/train.py")
    assert sent.returncode == 0, sent.stderr
    assert server.cli("storage", "cat", "gs://box/train.py").stdout == (tmp_path / "train.py").read_text()


def test_a_shell_talks_over_the_same_tls(server: LiveServer) -> None:
    server.submit(python("print('up', flush=True); import time; time.sleep(600)"), name="open")
    until(lambda: "up" in server.cli("logs", "open").stdout)
    done = server.cli("shell", "open", "--", "sh", "-c", "echo inside; seq 1 20000 | tail -1; exit 7")
    assert (done.returncode, done.stdout.split()) == (7, ["inside", "20000"]), done.stderr
    server.cli("cancel", "open")


def test_who_does_not_trust_the_authority_is_told_what_to_trust(server: LiveServer, tmp_path: Path) -> None:
    away = {"TRAINSHED_HOME": str(tmp_path), "TRAINSHED_URL": server.url, "TRAINSHED_TOKEN": server.token}
    for words in (("ls",), ("storage", "ls", "gs://box")):
        done = server.cli(*words, **away)
        assert done.returncode == 1
        assert "is not trusted" in done.stderr and "TRAINSHED_CA" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    shutil.copy(server.home / "tls" / "own" / "ca.pem", tmp_path / "copy.pem")
    assert server.cli("ls", **away, TRAINSHED_CA=str(tmp_path / "copy.pem")).returncode == 0
    (tmp_path / "bad.pem").write_text("nothing")
    done = server.cli("ls", **away, TRAINSHED_CA=str(tmp_path / "bad.pem"))
    assert "bad.pem of the server's authority cannot be used: has no certificate" in done.stderr


def test_env_makes_other_clients_trust_the_server_beside_all_others(server: LiveServer) -> None:
    env = json.loads(server.cli("env", "--json").stdout)
    assert env["TRAINSHED_URL"] == server.url
    roots = Path(env["REQUESTS_CA_BUNDLE"])
    assert roots.read_text().count("BEGIN CERTIFICATE") > 10
    curl = ["curl", "-sS", "-m", "30", f"{server.url}/healthz"]
    asked = subprocess.run(curl, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert '"ok"' in asked.stdout, asked.stderr
    bare = subprocess.run(curl, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    assert bare.returncode == 60  # it trusts nobody who signed for this


def test_plain_http_is_answered_with_the_right_address(server: LiveServer) -> None:
    for path in ("/v1/projects/p1/locations/us-central1/customJobs", "/console/jobs"):
        refused = plainly(server, path, server.token)
        assert refused.status == 400
        assert f"Its address is {server.url}" in refused.error["message"]
    assert plainly(server, f"/t/{server.token}/storage/v1/b/box").status == 400
    signing_in = json.dumps({"token": server.token})
    refused = plainly(server, "/v1/console:signIn", "job.x", "POST", signing_in)
    assert refused.status == 400 and "set-cookie" not in refused.headers
    assert plainly(server, "/healthz").json["status"] == "ok"
    for noise in (b"\x16\x03\x01\x00\x05hello", b"\x16", b"\xff\xfe", b""):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1000):
                pass
    assert server.request("GET", "/healthz").status == 200


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_least_is_tls_1_2(server: LiveServer) -> None:
    older = ssl.create_default_context(cafile=str(server.home / "tls" / "own" / "ca.pem"))
    older.set_ciphers("ALL:@SECLEVEL=0")
    older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", server.port)) as plain, pytest.raises(OSError):
        older.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_session_of_a_browser_is_sent_over_tls_only(server: LiveServer) -> None:
    ticket = server.post("/v1/console:ticket")["ticket"]
    entered = server.request("POST", "/v1/console:signIn", {"ticket": ticket}, token=None)
    assert entered.headers["set-cookie"].endswith("; Secure")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: elsewhere Google's hosts are not this server")
def test_programs_of_jobs_reach_buckets_by_gcs_and_by_plain_http_on_this_machine(server: LiveServer) -> None:
    look = (
        "import os, urllib.request as u\n"
        "open('/gcs/box/by-path', 'w').write('p')\n"
        "a = os.environ['STORAGE_EMULATOR_HOST']; assert a.startswith('http://127.0.0.1:')\n"
        "u.urlopen(a + '/upload/storage/v1/b/box/o?uploadType=media&name=by-address', b'x').read()\n"
        "m = 'http://' + os.environ['GCE_METADATA_HOST'] + '/computeMetadata/v1/project/project-id'\n"
        "print(u.urlopen(u.Request(m, headers={'Metadata-Flavor': 'Google'})).read().decode())\n"
    )
    job = server.submit(python(look))
    done = server.wait(job)
    lines = [line["text"] for line in server.lines(job)]
    assert done["state"] == "JOB_STATE_SUCCEEDED", lines
    assert lines == ["p1"]
    until(lambda: {"by-path", "by-address"} <= set(objects(server)))


@pytest.mark.needs_sdk
@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-storage is not in .venv-sdk: make sdk")
def test_googles_storage_client_works_inside_a_job_and_in_a_shell_with_env(server: LiveServer) -> None:
    inside = f"{STORE}; b.blob('inside').upload_from_string('x'); print(b.blob('inside').download_as_text())"
    job = server.submit(pools=[pool([str(PYTHON), "-c", inside])])
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.lines(job)
    env = {**os.environ, **json.loads(server.cli("env", "--json").stdout)}
    outside = f"{STORE}; print(b.blob('inside').download_as_text())"
    done = subprocess.run([PYTHON, "-c", outside], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "x", done.stderr


def objects(server: LiveServer) -> list[str]:
    return [item["name"] for item in server.get("/storage/v1/b/box/o").get("items", [])]


class Issuer:
    """An authority of a firm, which issues pairs into a folder, as certbot does."""

    def __init__(self, folder: Path) -> None:
        self._maker = Certificates(folder / "issuer", NAMES, os.environ, has_roots=False)
        self._maker.renew()
        self.ca, self.live = self._maker.ca, folder / "live"
        self.certificate, self.key = self.live / "fullchain.pem", self.live / "privkey.pem"
        self.live.mkdir()
        self.issue()

    def issue(self) -> None:
        self._maker.server.unlink()
        self._maker.renew()
        for file in (self.certificate, self.key):
            draft = file.with_suffix(".new")
            shutil.copy(self._maker.server, draft)
            draft.replace(file)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--tls-cert", str(self.certificate), "--tls-key", str(self.key))


def shown(server: LiveServer, ca: Path) -> str:
    """The serial number of the certificate that a new connection gets."""
    trusting = ssl.create_default_context(cafile=str(ca))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain,
        trusting.wrap_socket(plain, server_hostname="gpu-box.example") as secure,
    ):
        return str((secure.getpeercert() or {})["serialNumber"])


def test_files_that_are_renewed_count_for_new_connections_without_a_restart(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    with LiveServer(*issuer.flags) as server:
        assert f"ready at https://127.0.0.1:{server.port}" in server.said()
        assert "trust it" not in server.said()
        first = shown(server, issuer.ca)
        whole = issuer.key.read_text()
        issuer.key.write_text(whole[:150])
        until(lambda: shown(server, issuer.ca) == first and "stays the one before" in server.said())
        issuer.issue()
        until(lambda: shown(server, issuer.ca) != first)
        ls = server.cli("ls", TRAINSHED_CA=str(issuer.ca))
        assert ls.returncode == 0, ls.stderr
        assert "Traceback" not in server.said()


def test_a_pair_that_cannot_be_used_stops_the_start_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    issuer, other = Issuer(tmp_path), Issuer(tmp_path / "other")
    missing = ("--tls-cert", str(tmp_path / "gone.pem"), "--tls-key", str(issuer.key))
    wrong = ("--tls-cert", str(issuer.certificate), "--tls-key", str(other.key))
    for flags, sentence in (
        (missing, "error: --tls-cert: "),
        (wrong, f"error: --tls-key: {other.key} is not the key of the certificate {issuer.certificate}"),
    ):
        live = LiveServer(*flags)
        try:
            live.start(wait=False)
            assert live.process is not None
            assert live.process.wait(PATIENCE) == 1
            assert sentence in live.said() and "Traceback" not in live.said(), live.said()
            doctor = live.cli("doctor", *flags, "--port", "0")
            assert doctor.returncode == 1 and sentence[len("error: ") :] in doctor.stdout, doctor.stdout
        finally:
            live.close()


def test_a_job_that_runs_when_the_server_turns_to_tls_keeps_its_buckets() -> None:
    program = (
        "import os, sys, time, urllib.request as u\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"
        "a = os.environ['STORAGE_EMULATOR_HOST'] + '/upload/storage/v1/b/box/o?uploadType=media&name=late'\n"
        "u.urlopen(a, b'x').read()\n"
    )
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": "box"}, project="p1")
        go = server.base / "go"
        job = server.submit([*python(program), str(go)])
        server.wait_for(job, ["JOB_STATE_RUNNING"])
        server.stop()
        server.flags = (*server.flags, "--tls")
        server.start()
        go.touch()
        assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.lines(job)
        assert objects(server) == ["late"]

"""The server is found inside containers where it is outside, whatever network they have, and its files."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance.test_gcs_paths import BUCKET, a_bucket, make_bucket
from tests.acceptance.test_secrets import files_with_value
from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.live import LiveServer, python, until

pytestmark = pytest.mark.containers

ORDINARY = "localhost/reach-ordinary:1"
ALONE = {"network": "none"}

ASK = """
import json, os, sys, time, urllib.request
place = os.environ['STORAGE_EMULATOR_HOST']
def ask(path, data=None):
    sent = urllib.request.Request(place + path, data=data, headers={'Content-Type': 'text/plain'})
    return urllib.request.urlopen(sent, timeout=60).read()
"""
PUT = (
    ASK
    + """
ask('/upload/storage/v1/b/training-data/o?uploadType=media&name=' + os.environ['TRAINSHED_TASK'], b'here')
print('put', flush=True)
"""
)


def boxed(source: str, *, image: str = BASE, replicas: int = 1, **pool: object) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": "n1-standard-1"},
        "replicaCount": replicas,
        "containerSpec": {"imageUri": image, "command": python(source)},
        **pool,
    }


@pytest.fixture(scope="session")
def ordinary(podman: Podman) -> str:
    podman.run("build", "--tag", ORDINARY, "-", feed=f"FROM {BASE}\nUSER 1234:1234\n".encode())
    return ORDINARY


@contextmanager
def a_server(podman: Podman, *more: str) -> Iterator[LiveServer]:
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets, *more)
    with LiveServer(*flags, "--cpus", "64", "--memory", "240GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(scope="module")
def shared_server(podman: Podman) -> Iterator[LiveServer]:
    with a_server(podman) as live:
        yield live


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """All tests have the same one, and each a bucket that is new."""
    with a_bucket(shared_server):
        yield shared_server


@pytest.fixture
def own_server(podman: Podman) -> Iterator[LiveServer]:
    with a_server(podman) as live:
        make_bucket(live)
        yield live


def said(server: LiveServer, job: str) -> list[str]:
    return [line["text"] for line in server.lines(job)]


def ended(server: LiveServer, job: str, state: str = "JOB_STATE_SUCCEEDED") -> list[str]:
    done = server.wait(job, 180)
    lines = said(server, job)
    assert done["state"] == state, (done.get("error"), lines)
    return lines


def objects(server: LiveServer) -> set[str]:
    return {one["name"] for one in server.get(f"/storage/v1/b/{BUCKET}/o").get("items", [])}


@pytest.mark.parametrize("spec", [{}, ALONE], ids=["open", "alone"])
def test_a_container_puts_an_object_by_the_address_it_is_told(server: LiveServer, spec: dict[str, str]):
    job = server.submit(pools=[boxed(PUT)], spec=spec)
    assert ended(server, job) == ["put"]
    assert objects(server) == {"workerpool0-0"}


def test_an_ordinary_user_puts_an_object_too(server: LiveServer, ordinary: str):
    job = server.submit(pools=[boxed(PUT + "print(os.getuid())", image=ordinary)], spec=ALONE)
    assert ended(server, job) == ["put", "1234"]


NAMED = """
import os, urllib.request
place = 'https://storage.googleapis.com/storage/v1/b/training-data/o'
def ask(**headers):
    return urllib.request.urlopen(urllib.request.Request(place, headers=headers), timeout=60).status
print(ask(Authorization='Bearer ' + os.environ['GOOGLE_AUTH_TOKEN_FOR_TESTING']), ask())
print(os.environ['SSL_CERT_FILE'], os.environ['GCE_METADATA_HOST'].partition('/')[0])
"""


@pytest.mark.parametrize("spec", [{}, ALONE], ids=["open", "alone"])
def test_googles_names_lead_out_of_a_container_to_the_server(server: LiveServer, spec: dict[str, str]):
    """With the job's token and, known by its container, without one."""
    job = server.submit(pools=[boxed(NAMED)], spec=spec)
    assert ended(server, job) == ["200 200", f"/.trainshed/roots.pem 127.0.0.1:{server.port}"]


def test_googles_names_lead_an_ordinary_user_to_the_server_too(server: LiveServer, ordinary: str):
    job = server.submit(pools=[boxed(NAMED, image=ordinary)], spec=ALONE)
    assert ended(server, job)[0] == "200 200"


def test_who_is_alone_reaches_its_peers_and_the_server_and_nothing_else(server: LiveServer):
    source = (
        ASK
        + """
import socket
first = os.environ['TRAINSHED_TASK'].startswith('workerpool0')
if first:
    door = socket.create_server(('', 2222))
    door.accept()[0].recv(1)
    print('met', flush=True)
else:
    while True:
        try:
            meeting = socket.create_connection(('workerpool0-0', 2222), timeout=5)
            break
        except OSError:
            time.sleep(0.1)
    meeting.send(b'x')
with open('/proc/net/route') as table:
    ways = [row.split()[1] for row in table][1:]
print('way out:', '00000000' in ways, flush=True)
ask('/storage/v1/b/training-data/o')
"""
    )
    job = server.submit(pools=[boxed(source), boxed(source)], spec=ALONE)
    lines = ended(server, job)
    assert sorted(lines) == ["met", "way out: False", "way out: False"]


def test_connections_wait_while_the_server_is_killed_and_started_again(own_server: LiveServer):
    server = own_server
    source = (
        ASK
        + """
print('ready', flush=True)
while not os.path.exists('/.trainshed/tmp/go'):
    time.sleep(0.02)
ask('/storage/v1/b/training-data/o')
print('answered', flush=True)
"""
    )
    jobs = [server.submit(pools=[boxed(source)], spec=ALONE) for _ in range(3)]
    for job in jobs:
        until(lambda job=job: said(server, job) == ["ready"])
    server.kill()
    for go in (server.home / "containers/jobs").glob("*/0/0-0/0/tmp"):
        (go / "go").touch()
    time.sleep(1)  # they ask meanwhile, and nobody is there
    server.start()
    for job in jobs:
        assert ended(server, job) == ["ready", "answered"]


def test_twenty_containers_at_once_reach_the_server(server: LiveServer):
    job = server.submit(pools=[boxed(PUT), boxed(PUT, replicas=19)], spec=ALONE)
    assert ended(server, job).count("put") == 20
    assert len(objects(server)) == 20


def test_what_a_program_reports_is_heard(server: LiveServer, ordinary: str):
    source = """
import json, os, time
at = time.time_ns()
text = f"{at} {json.dumps({'step': 3.0, 'total': 10.0, 'values': {'loss': 0.5}})} {at}"
with open(os.environ['TRAINSHED_REPORT'], 'w') as file:
    file.write(text + chr(10))
time.sleep(3)
"""
    job = server.submit(pools=[boxed(source, image=ordinary)])
    ended(server, job)
    series = server.get(f"/v1/{job}:metrics")
    assert "value.loss" in json.dumps(series)


def test_what_a_program_tells_hypertune_is_heard(server: LiveServer, ordinary: str):
    source = """
import json, os, time
with open(os.environ['CLOUD_ML_HP_METRIC_FILE'], 'w') as file:
    file.write(json.dumps({'timestamp': time.time(), 'acc': '0.5', 'global_step': '4'}) + chr(10))
"""
    job = server.submit(pools=[boxed(source, image=ordinary)])
    ended(server, job)
    progress = server.get(f"/v1/{job}:metrics")["progress"]
    assert (progress["step"], progress["values"]) == (4, {"acc": 0.5})


def test_scratch_is_on_the_disk_and_shared_memory_half_of_the_memory(own_server: LiveServer):
    server = own_server
    source = """
import os, tempfile
with tempfile.NamedTemporaryFile() as file:
    print(file.name.startswith('/.trainshed/tmp/'), flush=True)
size = os.statvfs('/dev/shm')
print(size.f_blocks * size.f_frsize >> 20)
"""
    job = server.submit(pools=[boxed(source)])
    assert ended(server, job) == ["True", "1920"]
    assert not list((server.home / "containers/jobs").iterdir())


def test_what_is_handed_over_and_is_no_listening_socket_leads_nowhere(server: LiveServer):
    source = (
        ASK
        + """
import array, socket
for wrong in (socket.socket(), open('/dev/null'), socket.socketpair()[0], None):
    talk = socket.socket(socket.AF_UNIX)
    talk.connect('/.trainshed/hatch/socket')
    if wrong is None:
        talk.send(b'h')
    else:
        socket.send_fds(talk, [b'h'], [wrong.fileno()])
    talk.settimeout(30)
    print(talk.recv(1), flush=True)
ask('/storage/v1/b/training-data/o')
"""
    )
    job = server.submit(pools=[boxed(source)])
    assert ended(server, job) == ["b''"] * 4


def test_who_fills_more_than_its_disk_is_ended_with_a_verdict_that_names_limit_and_use(server: LiveServer):
    source = """
import time
for number in range(12):
    with open(f'/fill-{number}', 'wb') as file:
        file.write(bytes(100 << 20))
time.sleep(600)
"""
    pool = boxed(source, diskSpec={"bootDiskSizeGb": 1})
    job = server.submit(pools=[pool])
    done = server.wait(job, 180)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "DISK_FULL: it filled 1." in done["error"]["message"], done["error"]
    assert "its diskSpec allows 1 GiB" in done["error"]["message"]
    events = json.dumps(server.get(f"/v1/{job}:events"))
    assert "Its disk is 1 GiB: it is looked at" in events


def test_a_server_with_tls_is_found_as_before_and_gives_named_secrets(podman: Podman):
    source = f"{PUT}\nprint(len(os.environ['HF_TOKEN']))"
    with a_server(podman, "--tls") as live, a_bucket(live):
        live.post("/v1/projects/p1/secrets?secretId=hf")
        live.post("/v1/projects/p1/secrets/hf:addVersion", {"payload": {"data": "czNjcjN0LXZhbHVl"}})
        pool = boxed(source)
        pool["containerSpec"]["env"] = [{"name": "HF_TOKEN", "value": "secret://hf"}]
        job = live.submit(pools=[pool])
        assert live.wait(job)["state"] == "JOB_STATE_SUCCEEDED", live.lines(job)
        assert [line["text"] for line in live.lines(job)] == ["put", str(len("s3cr3t-value"))]
        assert not files_with_value(live.home, "s3cr3t-value")


@pytest.mark.parametrize("user", ["root", "1234"])
def test_a_program_reads_a_secret_from_a_file_that_is_gone_with_its_container(
    server: LiveServer, ordinary: str, user: str
):
    source = """
import os, pathlib, time
path = pathlib.Path(os.environ['KEY'])
print(path, len(path.read_text()), oct(path.stat().st_mode), os.getuid(), flush=True)
try:
    path.write_text('other')
except OSError as error:
    print(type(error).__name__, flush=True)
time.sleep(600)
"""
    server.request("POST", "/v1/projects/p1/secrets?secretId=key.json")
    server.post("/v1/projects/p1/secrets/key.json:addVersion", {"payload": {"data": "czNjcjN0LXZhbHVl"}})
    pool = boxed(source, image=BASE if user == "root" else ordinary)
    pool["containerSpec"]["env"] = [{"name": "KEY", "value": "secret-file://key.json"}]
    job = server.submit(pools=[pool])
    first, second = until(lambda: lines if len(lines := said(server, job)) == 2 else None)
    mode, number = ("0o100400", "0") if user == "root" else ("0o100444", user)
    assert first == f"/trainshed/secrets/key.json {len('s3cr3t-value')} {mode} {number}"
    assert second in ("OSError", "PermissionError")
    [place] = files_with_value(server.home, "s3cr3t-value")
    assert place.endswith("/secrets/key.json")
    server.cancel(job)
    server.wait(job)
    assert files_with_value(server.home, "s3cr3t-value") == []

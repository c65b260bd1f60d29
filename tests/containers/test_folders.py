"""Folders in containers: the job's own as the place to start, buckets of S3; what cannot be had is said."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.containers.engine import Podman
from tests.containers.engine_images import BASE
from tests.containers.test_reach import ALONE, boxed, ended, ordinary
from tests.live import IMAGE, LiveServer, pool, python, until
from tests.shell import Shell
from tests.weed import weed_on_path

__all__ = ["ordinary"]

pytestmark = pytest.mark.containers

PLACED = "localhost/reach-placed:1"  # with a working directory of its own
TRAIN = """
import os, sys
sys.path.insert(0, '..')
import model
print(os.getcwd(), model.NAME, sys.argv[1:], open('data.txt').read(), flush=True)
open('written', 'w').write('x')
"""


@pytest.fixture(scope="module")
def server(podman: Podman) -> Iterator[LiveServer]:
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets)
    with LiveServer(*flags, "--cpus", "32", "--memory", "120GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


def folder(top: Path) -> Path:
    for name, text in {"sub/train.py": TRAIN, "sub/data.txt": "read", "model.py": "NAME = 'm'"}.items():
        (top / name).parent.mkdir(exist_ok=True, parents=True)
        (top / name).write_text(text)
    return top


@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_a_folder_is_submitted_with_an_image_and_is_where_the_program_starts(
    server: LiveServer, ordinary: str, tmp_path: Path, user: str
):
    image = BASE if user == "root" else ordinary
    folder(tmp_path / "code")
    shell = Shell(server, tmp_path)
    script = f"cd code/sub && trainshed submit train.py --folder .. --image {image} --follow -- --epochs 3"
    done = shell(script, 180)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "/trainshed/code/sub m ['--epochs', '3'] read" in done.stdout


def test_without_a_folder_the_image_says_where_the_program_starts(server: LiveServer, podman: Podman):
    podman.run("build", "--tag", PLACED, "-", feed=f"FROM {BASE}\nWORKDIR /opt/here\n".encode())
    job = server.submit(pools=[boxed("import os; print(os.getcwd())", image=PLACED)])
    assert ended(server, job) == ["/opt/here"]


def test_submit_says_which_network(server: LiveServer, tmp_path: Path):
    source = "print('way out:', any(row.split()[1] == '00000000' for row in open('/proc/net/route')))"
    (tmp_path / "look.py").write_text(source)
    for network, out in (("none", False), ("private", True)):
        submit = f"trainshed submit look.py --folder . --image {BASE} --network {network} --follow"
        done = Shell(server, tmp_path)(submit, 180)
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert f"way out: {out}" in done.stdout
    assert (
        "'all' is none of private, none"
        in Shell(server, tmp_path)("trainshed submit look.py --network all").stderr
    )


def test_a_process_that_asks_for_no_network_is_not_run(server: LiveServer):
    job = server.submit(pools=[pool(python("print('ran')"))], spec=ALONE)
    done = server.wait(job)
    assert done["state"] == "JOB_STATE_FAILED"
    assert "a process has its machine's" in done["error"]["message"]
    assert server.lines(job) == []


def test_every_wrong_mount_and_disk_is_told(server: LiveServer):
    wrong = boxed(
        "",
        image=IMAGE,
        nfsMounts=[{"server": "a b", "path": "x", "mountPoint": "../etc"}],
        diskSpec={"bootDiskSizeGb": -1},
    )
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [wrong]}}
    answer = server.request("POST", "/v1/projects/p1/locations/us-central1/customJobs", body)
    top = "job_spec.worker_pool_specs[0]"
    assert answer.violations.keys() == {
        f"{top}.nfs_mounts[0].server",
        f"{top}.nfs_mounts[0].path",
        f"{top}.nfs_mounts[0].mount_point",
        f"{top}.disk_spec.boot_disk_size_gb",
    }


def test_an_nfs_folder_that_cannot_be_mounted_is_named(server: LiveServer, podman: Podman):
    mount = {"server": "127.0.0.1", "path": "/export", "mountPoint": "data"}
    job = server.submit(pools=[boxed("print('ran')", nfsMounts=[mount])])

    def told() -> str:
        lines = " ".join(line["text"] for line in server.lines(job))
        return lines or " ".join(one["message"] for one in server.get(f"/v1/{job}:events")["events"])

    text = until(lambda: told() if "-nfs-0-0" in told() else "")
    assert "mount" in text and "ran" not in text.split()
    server.request("POST", f"/v1/{job}:cancel", {})  # where it is not over already
    server.wait(job)
    until(lambda: "-nfs-0-0" not in podman.run("volume", "ls"))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_buckets_of_a_store_on_this_machine_are_reached_and_seen_below_s3(podman: Podman, ordinary: str):
    flags = ("--engine", str(podman.socket), "--subnets", podman.subnets, "--s3")
    sizes = ("--cpus", "8", "--memory", "8GiB")
    with LiveServer(*flags, *sizes, env={"PATH": weed_on_path()}) as live:
        path = f"/upload/storage/v1/b/datasets/o?uploadType=media&name={quote('in/größe.csv', safe='')}"
        sent = live.request("POST", path, b"1,2", headers={"Content-Type": "text/plain"})
        assert sent.status == 200, sent.body
        source = """
import os, urllib.request, urllib.error
print(open('/s3/datasets/in/größe.csv').read(), flush=True)
os.makedirs('/s3/training/out')
open('/s3/training/out/model', 'w').write('trained')
try:
    urllib.request.urlopen(os.environ['AWS_ENDPOINT_URL'] + '/datasets', timeout=30)
except urllib.error.HTTPError as error:
    print(error.code)
"""
        for image in (BASE, ordinary):
            job = live.submit(pools=[boxed(source, image=image)], spec=ALONE)
            assert ended(live, job) == ["1,2", "403"]
            found = live.request("GET", "/storage/v1/b/training/o/out%2Fmodel?alt=media")
            assert found.body == b"trained"
            live.request("DELETE", "/storage/v1/b/training/o/out%2Fmodel")
        assert "Traceback" not in live.said(), live.said()

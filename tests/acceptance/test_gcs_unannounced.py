"""/gcs for programs that alone know of it: no argument speaks of it, and nothing they write is lost."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_gcs_paths import (
    BUCKET,
    a_bucket,
    ended,
    events,
    media,
    names,
    put,
    running_event,
    said,
)
from tests.faults import Sentence
from tests.live import IMAGE, PROJECT, LiveServer, pool, python, until
from tests.shared_server import forget_jobs

pytestmark = pytest.mark.slow

# What is said in an argument announces it: so no argument says it.
ROOT = "import os, sys, time; root = '/' + 'gcs'; top = root + '/training-' + 'data'\n"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts of its own, and triggers at /gcs")


@pytest.fixture(scope="module")
def shared_server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "32", "--memory", "120GiB") as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture
def server(shared_server: LiveServer) -> Iterator[LiveServer]:
    """All tests have the same one, each a bucket that is new, and none finds anything of another's jobs."""
    with a_bucket(shared_server):
        yield shared_server
        forget_jobs(shared_server)
    until(lambda: not list((shared_server.home / "run/jobs").iterdir()))


@contextlib.contextmanager
def server_with_own_gcs(place: Path, env: dict[str, str] | None = None) -> Iterator[LiveServer]:
    """One whose machine has a real folder /gcs, as it alone sees it."""
    live = LiveServer("--cpus", "8", "--memory", "32GiB", env=env)
    own = 'mkdir -p /gcs && mount --make-rprivate / && mount --bind "$0" /gcs && exec "$@"'
    live.prefix = ("unshare", "--mount", "sh", "-c", own, str(place))
    try:
        live.start()
        live.post(f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
        yield live
    finally:
        live.close()


def test_a_program_that_alone_knows_of_gcs_finds_the_objects_and_leaves_its_model_in_the_bucket(
    server: LiveServer,
):
    put(server, "in/train.csv", b"1,2,3")
    source = """
print(os.environ['TRAINSHED_GCS_ROOT'], os.path.isdir(root), os.listdir(top))
print(open(top + '/in/train.csv').read())
open(top + '/beside', 'w').write('1')
os.makedirs(top + '/models/new')
open(top + '/models/new/model.bin', 'wb').write(b'm' * 100_000)
open(top + '/in/train.csv', 'a').write(',4')
"""
    job = server.submit(python(ROOT + source))
    assert ended(server, job) == ["/gcs True ['in']", "1,2,3"]
    assert media(server, "models/new/model.bin") == b"m" * 100_000
    assert media(server, "beside") == b"1"
    assert media(server, "in/train.csv") == b"1,2,3,4"


@AS_ROOT
def test_a_job_that_does_not_look_into_gcs_has_nothing_made_for_it(server: LiveServer):
    put(server, "in/a", b"x")
    job = server.submit(python("import time; print('up', flush=True); time.sleep(3)"))
    until(lambda: said(server, job))
    [folder] = (server.home / "run/jobs").iterdir()
    assert not (folder / "gcs").exists()
    server.cancel(job)


@pytest.mark.fault(
    "Buckets",
    "A program writes below `/gcs` into a bucket that does not exist",
    "The job fails, and the file is kept on the server.",
    sentence="trainshed storage buckets create gs://unknown",
)
def test_a_file_below_a_bucket_that_is_not_there_fails_the_job_and_is_kept(
    sentence: Sentence, server: LiveServer
):
    source = "os.makedirs(root + '/unknown/deep')\nopen(root + '/unknown/deep/model', 'w').write('model')"
    done = server.wait(server.submit(python(ROOT + source)))
    assert done["state"] == "JOB_STATE_FAILED"
    message = done["error"]["message"]
    assert "/gcs/unknown/deep/model" in message
    assert sentence.is_in(message)
    # It is moved when the view goes, which for a container is after the end of the job.
    [kept] = until(lambda: list(server.home.glob("*/unstored/*/*/unknown/deep/model")))
    assert kept.read_text() == "model"


def test_replicas_that_alone_know_of_gcs_share_one_view(server: LiveServer):
    chief = "open(top + '/said', 'w').write('hello')"
    worker = "while not (os.path.exists(top + '/said') and open(top + '/said').read()): time.sleep(0.02)\n"
    worker += (
        "print(open(top + '/said').read())\nopen(f'{top}/from-{os.getpid()}-{os.uname().nodename}', 'w')"
    )
    pools = [pool(python(ROOT + chief)), pool(python(ROOT + worker), replicas=3)]
    assert ended(server, server.submit(pools=pools)) == ["hello"] * 3
    assert media(server, "said") == b"hello"
    assert len(names(server, "from-")) == 3


def test_a_job_that_is_tried_again_finds_what_it_has_stored_below_gcs(server: LiveServer):
    source = """
if os.path.exists(top + '/state'):
    print('on from', open(top + '/state').read())
else:
    open(top + '/state', 'w').write('7')
    os.kill(os.getpid(), 9)
"""
    spec = {"scheduling": {"restartJobOnWorkerRestart": True}}
    assert ended(server, server.submit(pools=[pool(python(ROOT + source))], spec=spec)) == ["on from 7"]


def test_files_of_a_cancelled_job_are_stored(server: LiveServer):
    job = server.submit(python(ROOT + "open(top + '/early', 'w').write('1')\nprint('up')\ntime.sleep(600)"))
    until(lambda: said(server, job))
    server.cancel(job)
    assert server.wait(job)["state"] == "JOB_STATE_CANCELLED"
    assert media(server, "early") == b"1"


@AS_ROOT
def test_a_program_that_looks_while_no_server_runs_waits_for_one(server: LiveServer):
    put(server, "x", b"seen")
    source = """
print('up', flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
open(top + '/y', 'w').write(open(top + '/x').read())
"""
    go = server.base / "go"
    job = server.submit(pools=[pool([*python(ROOT + source), str(go)])])
    until(lambda: said(server, job))
    server.kill()
    go.touch()
    until(lambda: list((server.home / "run/jobs").glob("*/gcs/wanted")))
    server.start()
    ended(server, job)
    assert media(server, "y") == b"seen"


@AS_ROOT
def test_a_server_killed_while_files_are_in_a_lazy_view_stores_them_after_its_start(server: LiveServer):
    source = "[open(f'{top}/{n}', 'w').write(str(n)) for n in range(300)]\nprint('up')\ntime.sleep(2)"
    job = server.submit(python(ROOT + source))
    until(lambda: said(server, job))
    server.kill()
    time.sleep(2)
    server.start()
    ended(server, job)
    assert len(names(server)) == 300


@AS_ROOT
def test_a_program_forked_from_a_warm_interpreter_finds_gcs():
    with LiveServer("--warm", IMAGE, "--cpus", "8", "--memory", "32GiB") as server:
        server.post(f"/storage/v1/b?project={PROJECT}", {"name": BUCKET})
        put(server, "x", b"seen")
        until(lambda: "Forked" in running_event(server, server.submit(python("pass"))))
        job = server.submit(python(ROOT + "print(open(top + '/x').read()); open(top + '/y', 'w').write('1')"))
        assert ended(server, job) == ["seen"]
        assert media(server, "y") == b"1"
        assert "Forked" in running_event(server, job)


@AS_ROOT
def test_a_real_folder_gcs_on_the_machine_neither_stops_jobs_nor_is_written_to(tmp_path: Path):
    (tmp_path / BUCKET).mkdir()
    (tmp_path / BUCKET / "owners").write_text("1")
    with server_with_own_gcs(tmp_path) as server:
        put(server, "x", b"seen")
        source = "print(os.listdir(top), open(top + '/x').read())\nopen(top + '/y', 'w').write('1')"
        assert ended(server, server.submit(python(ROOT + source))) == ["['x'] seen"]
        assert ended(server, server.submit(["cat", f"/gcs/{BUCKET}/y"])) == ["1"]
        assert media(server, "y") == b"1"
    assert [path.name for path in (tmp_path / BUCKET).iterdir()] == ["owners"]


@pytest.fixture
def no_compiler(tmp_path: Path) -> dict[str, str]:
    """Variables with which nothing can be mounted: what mounts is not built."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cc").write_text("#!/bin/sh\nexit 1\n")
    (tools / "cc").chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}"}


@AS_ROOT
def test_what_goes_into_the_machines_own_gcs_where_nothing_can_be_mounted_is_stored_or_fails_the_job(
    tmp_path: Path, no_compiler: dict[str, str]
):
    own = tmp_path / "own"
    (own / BUCKET).mkdir(parents=True)
    (own / BUCKET / "owners").write_text("1")
    with server_with_own_gcs(own, no_compiler) as server:
        job = server.submit(
            python(ROOT + "os.makedirs(top + '/m')\nopen(top + '/m/model', 'w').write('model')")
        )
        ended(server, job)
        assert media(server, "m/model") == b"model"
        assert names(server).keys() == {"m/model"}
        assert any("There is no /gcs here" in line for line in events(server, job))
        source = "os.makedirs(root + '/unknown')\nopen(root + '/unknown/model', 'w').write('model')"
        done = server.wait(server.submit(python(ROOT + source)))
        assert done["state"] == "JOB_STATE_FAILED"
        assert "/gcs/unknown/model" in done["error"]["message"]
        # It gets there when what the job leaves is cleared, after its end.
        [kept] = until(lambda: list(server.home.glob("run/unstored/*/*/unknown/model")))
        assert kept.read_text() == "model"


@AS_ROOT
def test_a_job_that_fails_for_want_of_gcs_is_told_why_there_is_none(
    tmp_path: Path, no_compiler: dict[str, str]
):
    with server_with_own_gcs(tmp_path, no_compiler) as server:
        done = server.wait(server.submit(python(ROOT + "open(top + '/missing/x')")))
        message = done["error"]["message"]
        assert "/gcs is not available on this machine because there is no C compiler" in message

"""A server that an ordinary user starts: what root may do without asking has to be allowed here."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_gcs_paths import media
from tests.live import LiveServer, python
from tests.reachable import reachable

USER = "200009"
AS_USER = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
MOUNTS = ("unshare", "--user", "--mount", "true")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run it as root"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    server = reachable()
    os.chown(server.base, int(USER), int(USER))
    server.prefix += AS_USER
    with server:
        server.post("/storage/v1/b?project=p1", {"name": "training-data"})
        yield server


def test_a_program_writes_to_an_object_below_gcs(server: LiveServer) -> None:
    if subprocess.run([*AS_USER, *MOUNTS], check=False).returncode or not Path("/gcs").is_dir():
        pytest.skip("needs the folder /gcs, and user namespaces for everybody (sysctl)")
    path = "/upload/storage/v1/b/training-data/o?uploadType=media&name=notes.txt"
    assert server.request("POST", path, b"old").status == 200
    job = server.submit(python("open('/gcs/training-data/notes.txt', 'a').write(' and new')"))
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED", server.lines(job)
    assert media(server, "notes.txt") == b"old and new"


def test_an_upload_comes_in_pieces(server: LiveServer) -> None:
    begun = "/upload/storage/v1/b/training-data/o?uploadType=resumable&name=large"
    upload = f"{begun}&upload_id={server.request('POST', begun, b'{}').headers['x-guploader-uploadid']}"
    piece = 256 << 10
    for number in range(3):
        first = number * piece
        span = f"bytes {first}-{first + piece - 1}/{3 * piece}"
        answer = server.request("PUT", upload, bytes([number]) * piece, headers={"Content-Range": span})
        assert answer.status == (308 if number < 2 else 200), answer.body
    assert media(server, "large") == bytes(piece) + b"\1" * piece + b"\2" * piece

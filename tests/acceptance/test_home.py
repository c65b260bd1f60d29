"""A home that others could read before: the server closes it, and programs of jobs do not notice."""

import os
import tempfile
from pathlib import Path
from stat import S_IMODE

import pytest

from tests.live import LiveServer, python

SHOW_UMASK = "import os; print(f'umask {os.umask(0):03o}')"


def mode(path: Path) -> int:
    return S_IMODE(path.stat().st_mode)


@pytest.mark.fault(
    "The server",
    "Other users may read the server's home",
    "The server closes it to them at its start.",
)
def test_a_home_that_is_open_to_others_is_closed_at_the_start_and_programs_keep_the_umask() -> None:
    umask = os.umask(0o022)
    try:
        with tempfile.TemporaryDirectory(prefix="ts-") as folder:
            home = Path(folder) / "home"
            home.mkdir(mode=0o755)
            server = LiveServer(home=home)
            try:
                server.start()
                server.stop()
                for path in (home, home / "trainshed.db", home / "token", home / "job-secret", home / "logs"):
                    path.chmod(mode(path) | 0o055)
                server.start()
                job = server.submit(python(SHOW_UMASK))
                assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
                assert [line["text"] for line in server.lines(job)] == ["umask 022"]
                assert mode(home) == 0o700
                opened = [path.name for path in home.iterdir() if mode(path) & 0o077 and path.is_dir()]
                assert set(opened) <= {"hatch"}
                secrets = [*home.glob("trainshed.db*"), home / "token", home / "job-secret"]
                assert {mode(path) for path in secrets} == {0o600}
            finally:
                server.close()
    finally:
        os.umask(umask)

"""The machine's clock is set forwards and backwards while jobs run; timeouts and logs do not care.

Only the server's own clock is moved, by libfaketime; the machine's is never touched.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer, python

LIBRARIES = [
    *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
    *Path("/usr/lib/faketime").glob("libfaketimeMT.so.1"),
]
HOUR, YEAR = 3600, 365 * 86400

pytestmark = pytest.mark.skipif(not LIBRARIES, reason="needs libfaketime (Debian: libfaketime)")


class JumpingServer(LiveServer):
    """Its wall clock differs from the machine's by so many seconds; its steady counter does not."""

    def __init__(self) -> None:
        super().__init__("--cpus", "32", "--memory", "120GiB")
        self._offset = self.base / "offset"
        self.jump(0)
        self._env |= {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_CACHE_DURATION": "1",  # a file read at every look at a clock would starve the server
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: int) -> None:
        draft = self._offset.with_suffix(".new")
        draft.write_text(f"{seconds:+d}\n")
        draft.replace(self._offset)


@pytest.fixture
def server() -> Iterator[JumpingServer]:
    live = JumpingServer()
    try:
        live.start()
        yield live
    finally:
        live.close()


COUNTING = "import time\nfor n in range(40): print(n, flush=True); time.sleep(0.2)"


def test_the_wall_clock_of_the_server_can_be_moved(server: JumpingServer) -> None:
    """Otherwise the other tests here would show nothing."""
    job = server.submit(python("import time; time.sleep(60)"))
    server.jump(HOUR)
    deadline = time.monotonic() + 60
    while "has jumped forwards" not in server.said():
        assert time.monotonic() < deadline, server.said()
        server.submit(python("pass"))
        time.sleep(0.1)
    server.cancel(job)
    server.wait(job)


@pytest.mark.fault(
    "The clock",
    "The clock of the machine jumps",
    "Time limits, pauses and the ledger go by true time.",
)
def test_jumps_of_the_clock_neither_end_a_job_early_nor_late(server: JumpingServer) -> None:
    limited = server.submit(python("import time; time.sleep(600)"), spec={"scheduling": {"timeout": "12s"}})
    counting = server.submit(python(COUNTING), spec={"scheduling": {"timeout": "1800s"}})
    server.wait_for(limited, ("JOB_STATE_RUNNING",))
    started = time.monotonic()
    server.wait_for(counting, ("JOB_STATE_RUNNING",))
    for seconds in (HOUR, -HOUR, YEAR, 0, YEAR):
        server.jump(seconds)
        server.submit(python("pass"))  # something moves, so that the clock is asked
        time.sleep(1.3)  # the jump is seen within a second
        if time.monotonic() - started < 10:  # on a busy machine its time may really be over
            assert server.state(limited) == "JOB_STATE_RUNNING"
    server.kill()
    server.jump(-HOUR)
    server.start()
    done = server.wait(limited)
    lasted = time.monotonic() - started
    assert done["state"] == "JOB_STATE_FAILED"
    assert "timeout of 12 s" in done["error"]["message"]
    assert 6 < lasted < 60  # counted from when the test saw it run, which may be late
    assert server.wait(counting)["state"] == "JOB_STATE_SUCCEEDED"
    rows = server.lines(counting)
    assert [row["text"] for row in rows] == [str(number) for number in range(40)]
    ids = [row["insertId"] for row in rows]
    assert ids == sorted(set(ids))
    entries = server.entries(
        f'resource.labels.job_id="{counting.rsplit("/", 1)[-1]}"', orderBy="timestamp asc"
    )
    texts = [entry["jsonPayload"]["message"] for entry in entries]
    assert [text for text in texts if text.isdigit()] == [str(number) for number in range(40)]


def test_restarts_wait_their_back_off_by_true_time_though_the_clock_jumps(server: JumpingServer) -> None:
    rule = {"restartRule": {"backoff": "3s", "maxReplicaRestarts": 1, "maxJobRetries": 0}}
    source = "import os, time; print(time.monotonic_ns(), flush=True); os.kill(os.getpid(), 9)"
    for seconds in (YEAR, -YEAR):
        job = server.submit(python(source), spec={"scheduling": rule})
        deadline = time.monotonic() + 60
        while not server.lines(job):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        server.jump(seconds)
        assert server.wait(job)["state"] == "JOB_STATE_FAILED"
        first, second = (int(row["text"]) for row in server.lines(job))
        assert 2.5e9 < second - first < 60e9

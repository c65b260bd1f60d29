"""`trainshed logs` into a pipe: the very bytes, whatever they are, also while the server is killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LOCATION, PATIENCE, PROJECT, LiveServer

PIECE_TEXT = 64 * 1024  # characters of a piece, about (`api/line_stream.py`)
LONGEST_ROW = 2000  # a line of 1000 characters, with its names

ODD = r"""
import os, sys
def put(stream, data):
    while data:
        data = data[os.write(stream, data):]
put(1, b"x" * 40_000 + b"\n")
put(1, b"\xff\xfe\0\r\x1b[31m\n\n")
put(1, b"y" * 300_000)
put(1, "é€😀".encode() * 50_000 + b"\n")
put(1, b"".join(b"%d\n" % n for n in range(20_000)))
put(1, b"no end")
"""
COUNTING = r"""
import sys, time
for number in range(3000):
    sys.stdout.write(f"line {number} " + "z" * (number * 37 % 900) + "\n")
    if number % 10 == 0:
        sys.stdout.flush()
        time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--cpus", "8") as server:
        yield server


def environment(server: LiveServer) -> dict[str, str]:
    return os.environ | {
        "TRAINSHED_URL": server.url,
        "TRAINSHED_TOKEN": server.token,
        "TRAINSHED_PROJECT": PROJECT,
        "TRAINSHED_LOCATION": LOCATION,
    }


def logs(server: LiveServer, *args: str, out: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "trainshed.cli", "logs", *args]
    with out.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, env=environment(server))


def written(server: LiveServer, job: str, name: str = "0.0-0.out") -> bytes:
    return (server.home / "logs" / job.rsplit("/", 1)[-1] / name).read_bytes()


def test_any_bytes_come_out_as_they_were_written(server: LiveServer, tmp_path: Path) -> None:
    job = server.submit([sys.executable, "-c", ODD])
    server.wait(job)
    identity = job.rsplit("/", 1)[-1]
    for args in ([], ["-f"], ["--replica", "workerpool0-0"], ["--tail", "1000000"]):
        out = tmp_path / "out"
        assert logs(server, identity, *args, out=out).wait(60) == 0
        assert out.read_bytes() == written(server, job), args
    assert logs(server, identity, "--grep", "^199[0-9]{2}$", out=tmp_path / "out").wait(60) == 0
    assert (tmp_path / "out").read_bytes() == b"".join(b"%d\n" % n for n in range(19_900, 20_000))
    assert logs(server, identity, "--tail", "3", out=tmp_path / "out").wait(60) == 0
    assert (tmp_path / "out").read_bytes() == b"19998\n19999\nno end"


def test_a_follower_outlasts_kills_of_the_server_without_losing_or_doubling_a_byte(
    server: LiveServer, tmp_path: Path
) -> None:
    job = server.submit([sys.executable, "-c", COUNTING])
    out = tmp_path / "out"
    follower = logs(server, job.rsplit("/", 1)[-1], "-f", out=out)
    for size in (20_000, 300_000, 700_000):
        deadline = time.monotonic() + 60
        while out.stat().st_size < size and time.monotonic() < deadline:
            time.sleep(0.01)
        server.kill()
        server.start()
    assert follower.wait(120) == 0
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert out.read_bytes() == written(server, job)


def test_ctrl_c_ends_a_follower_at_once_and_not_the_job(server: LiveServer, tmp_path: Path) -> None:
    job = server.submit([sys.executable, "-c", "import time; print('hi', flush=True); time.sleep(60)"])
    out = tmp_path / "out"
    follower = logs(server, job.rsplit("/", 1)[-1], "-f", out=out)
    deadline = time.monotonic() + 60
    while not out.stat().st_size and time.monotonic() < deadline:
        time.sleep(0.01)
    follower.send_signal(signal.SIGINT)
    assert follower.wait(10) == 130
    server.cancel(job)


def test_the_last_lines_are_as_many_as_were_asked_for_and_come_in_bounded_memory(server: LiveServer) -> None:
    job = server.submit([sys.executable, "-c", "for n in range(60_000): print(n % 10 or '')"])
    server.wait(job)
    before = peak(server)
    rows = server.request("GET", f"/v1/{job}:tail?limit=50000").body.splitlines()
    assert len(rows) == 50_000
    assert peak(server) - before < 40 * 1024 * 1024


@pytest.mark.parametrize("limit", ["100001", "9" * 5000])
def test_more_of_the_last_lines_than_the_bound_are_refused(server: LiveServer, limit: str) -> None:
    job = server.submit([sys.executable, "-c", "print('hi')"])
    answer = server.request("GET", f"/v1/{job}:tail?limit={limit}")
    assert answer.status == 400
    assert "limit" in answer.violations["limit"]


def test_a_follower_of_a_fast_job_is_sent_small_pieces_so_that_others_have_their_turn_between(
    server: LiveServer,
) -> None:
    source = "import sys\nsys.stdout.write(('x' * 1000 + '\\n') * 5000)"
    job = server.submit([sys.executable, "-c", source])
    server.wait_for(job, ("JOB_STATE_SUCCEEDED",))
    for query in ("", "?follow=true"):
        sizes = list(chunk_sizes(server, f"/v1/{job}:tail{query}"))
        assert sum(sizes) > 5_000_000
        # The server makes each chunk without a pause: what it has in it is what others wait for.
        assert max(sizes) < PIECE_TEXT + LONGEST_ROW


def chunk_sizes(server: LiveServer, path: str) -> Iterator[int]:
    """The sizes of the chunks as the server sends them."""
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        connection.sendall(head.encode())
        with connection.makefile("rb") as answer:
            while answer.readline().strip():
                pass
            while size := int(answer.readline(), 16):
                answer.read(size + 2)
                yield size


def test_a_place_nobody_gave_out_is_refused(server: LiveServer) -> None:
    job = server.submit([sys.executable, "-c", "print('hi')"])
    answer = server.request("GET", f"/v1/{job}:output?after=nowhere")
    assert answer.status == 400
    assert "after must be the `next` of a frame" in answer.violations["after"]


def peak(server: LiveServer) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

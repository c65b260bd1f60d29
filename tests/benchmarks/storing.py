"""What buckets cost: a large object beside a plain copy of its bytes, many small ones, and a long list."""

import http.client
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from tests.benchmarks.commanding import COMMAND
from tests.benchmarks.row import Row, ms
from tests.live import LiveServer

SIZE = 1 << 30
ROUNDS = 3
SMALL = 10_000
WRITERS = 16
PIECE = 1 << 20


def large_object() -> list[Row]:
    """Up and down over one connection; the floor is `cp` and fsync on the same disk."""
    floors: list[float] = []
    ups: list[float] = []
    downs: list[float] = []
    copied_up: list[float] = []
    copied_down: list[float] = []
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": "bench"})
        source, target = server.base / "source", server.base / "target"
        _make(source)
        _up(server, source, "warm")
        before = _memory(server.pid)
        for number in range(ROUNDS):
            began = time.perf_counter()
            subprocess.run(["cp", source, target], check=True)
            _sync(target)
            floors.append(time.perf_counter() - began)
            target.unlink()
            ups.append(_up(server, source, str(number)))
            downs.append(_down(server, str(number), target))
            target.unlink()
            copied_up.append(_copied(server, source, f"gs://bench/{number}"))
            copied_down.append(_copied(server, f"gs://bench/{number}", target))
            target.unlink()
            server.request("DELETE", f"/storage/v1/b/bench/o/{number}")
        grown = _memory(server.pid) - before
    # The best of each: what else the machine does only ever adds to a time.
    rows = (
        ("1 GB up through the storage API", ups, 0.5),
        ("1 GB down through the storage API, to a file", downs, 0.7),
        ("1 GB up with `trainshed storage cp`", copied_up, 0.5),
        ("1 GB down with `trainshed storage cp`", copied_down, 0.7),
    )
    return [
        *(
            Row(
                what=what,
                floor=f"cp + fsync {min(floors):.2f} s",
                ours=f"{min(times):.2f} s",
                value=min(floors) / min(times),
                goal=goal,
                at_least=True,
            )
            for what, times, goal in rows
        ),
        Row(
            what="server memory over 3 GB up and down",
            floor="0",
            ours=f"{grown / 2**20:.0f} MiB more",
            value=grown / 2**20,
            goal=64,
            unit="MiB",
        ),
    ]


def small_objects() -> list[Row]:
    """Each put is on the disk for good when it is answered. Then all of them listed, page by page."""
    with LiveServer() as server:
        server.post("/storage/v1/b", {"name": "bench"})
        began = time.perf_counter()
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(lambda part: _puts(server, part), range(WRITERS)))
        rate = SMALL / (time.perf_counter() - began)
        times: list[float] = []
        for _ in range(5):
            began = time.perf_counter()
            assert _listed(server) == SMALL
            times.append(time.perf_counter() - began)
    return [
        Row(
            what=f"durable puts of 1 KB, {WRITERS} at a time",
            floor="-",
            ours=f"{rate:.0f} a second",
            value=rate,
            goal=300,
            unit="/s",
            at_least=True,
        ),
        Row(
            what="10,000 objects listed over HTTP, 10 pages",
            floor="-",
            ours=ms(times),
            value=median(times) * 1e3,
            goal=150,
            unit="ms",
        ),
    ]


def _make(path: Path) -> None:
    block = os.urandom(64 << 20)
    with path.open("wb") as file:
        for _ in range(SIZE // len(block)):
            file.write(block)
    _sync(path)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def _headers(server: LiveServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token}", "Content-Type": "application/octet-stream"}


def _up(server: LiveServer, source: Path, name: str) -> float:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, blocksize=PIECE)
    path = f"/upload/storage/v1/b/bench/o?uploadType=media&name={name}"
    with source.open("rb") as file:
        connection.request("POST", path, file, _headers(server) | {"Content-Length": str(SIZE)})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()
    return time.perf_counter() - began


def _down(server: LiveServer, name: str, target: Path) -> float:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", f"/download/storage/v1/b/bench/o/{name}?alt=media", headers=_headers(server))
    answer = connection.getresponse()
    with target.open("wb", buffering=0) as file:
        while piece := answer.read(PIECE):
            file.write(piece)
        os.fsync(file.fileno())
    connection.close()
    assert target.stat().st_size == SIZE
    return time.perf_counter() - began


def _copied(server: LiveServer, source: Path | str, target: Path | str) -> float:
    began = time.perf_counter()
    environ = os.environ | {"TRAINSHED_HOME": str(server.home)}
    subprocess.run([COMMAND, "storage", "cp", source, target], env=environ, check=True)
    if isinstance(target, Path):
        _sync(target)
    return time.perf_counter() - began


def _puts(server: LiveServer, part: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    headers, content = _headers(server), os.urandom(1000)
    for number in range(part, SMALL, WRITERS):
        path = f"/upload/storage/v1/b/bench/o?uploadType=media&name=folder-{number % 10}/{number:05}"
        connection.request("POST", path, content, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()


def _listed(server: LiveServer) -> int:
    connection, token, count = http.client.HTTPConnection("127.0.0.1", server.port), "", 0
    while True:
        path = f"/storage/v1/b/bench/o?maxResults=1000&pageToken={token}"
        connection.request("GET", path, headers=_headers(server))
        page = connection.getresponse().read()
        count += page.count(b'"storage#object"')
        found = re.search(
            rb'"nextPageToken": "([^"]+)"', page[:2000]
        )  # not parsed: a client's time is its own
        if found is None:
            connection.close()
            return count
        token = found[1].decode()


def _memory(pid: int) -> int:
    """Bytes of its own that are in memory."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))

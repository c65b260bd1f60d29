"""How soon a line of a very long log is there: the end, a line in its midst, a rare word."""

import http.client
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from tests.benchmarks.row import Row, ms
from tests.live import LiveServer

LINES = int(os.environ.get("LOG_LINES", "10000000"))  # of 100 bytes: 1 GB
ROUNDS = 5
PROGRAM = f"""
import sys
write = sys.stdout.buffer.write
for start in range(0, {LINES}, 10000):
    write(b"".join(b"%08d loss=%03d %s\\n" % (n, n % 997, b"x" * 82) for n in range(start, start + 10000)))
write(b"the needle\\n")
"""


def by_line() -> list[Row]:
    """Of a finished job, over HTTP; the floor is reading the same file from its first byte on."""
    with LiveServer() as server:
        name = server.submit([sys.executable, "-c", PROGRAM])
        server.wait(name, 600)
        file = server.home / "logs" / name.rsplit("/", 1)[-1] / "0.0-0.out"
        floor = f"cat {_read(file):.2f} s"
        first = _answered(server, f"{name}:lines", {"line": -300, "count": 300})
        _answered(server, f"{name}:lines", {"line": -1, "count": 1, "numbered": "true"})
        asked = {
            "the end of a log": ({"line": -300, "count": 300}, 0.2),
            "a line in its midst": ({"line": LINES // 2, "count": 300}, 0.2),
        }
        rows = [_row("the end of a log that is not counted yet", floor, [first], 0.2)]
        for what, (query, goal) in asked.items():
            times = [_answered(server, f"{name}:lines", query) for _ in range(ROUNDS)]
            rows.append(_row(what, floor, times, goal))
        times = [_first_match(server, name, "needle") for _ in range(ROUNDS)]
        return [*rows, _row("a rare word, at its end", floor, times, 3)]


def _row(what: str, floor: str, times: list[float], goal: float) -> Row:
    what = f"{LINES:,} lines: {what}"
    return Row(what=what, floor=floor, ours=ms(times), value=median(times), goal=goal, unit="s")


def _read(file: Path) -> float:
    began = time.perf_counter()
    with file.open("rb", buffering=0) as source:
        while source.read(1 << 20):
            pass
    return time.perf_counter() - began


def _answered(server: LiveServer, path: str, query: Mapping[str, object]) -> float:
    began = time.perf_counter()
    answer = server.request("GET", f"/v1/{path}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    assert answer.json["lines"]
    return time.perf_counter() - began


def _first_match(server: LiveServer, name: str, text: str) -> float:
    """Until the line is here; the search is given up then."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    began = time.perf_counter()
    headers = {"Authorization": f"Bearer {server.token}"}
    connection.request("GET", f"/v1/{name}:find?{urlencode({'text': text})}", headers=headers)
    answer = connection.getresponse()
    while not json.loads(answer.readline().strip() or b"{}").get("lines"):
        pass
    seconds = time.perf_counter() - began
    connection.close()
    return seconds

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

from playwright.sync_api import Page

from tests.benchmarks.browsing import empty_page, noting, shown, signed_in_page
from tests.benchmarks.row import Row, ms
from tests.live import LiveServer
from tests.long_log import NEEDLE, prints

LINES = int(os.environ.get("LOG_LINES", "10000000"))  # of 100 bytes: 1 GB
ROUNDS = 5
SCROLLS = 60  # turns of the wheel, each more than a screen
# All in the page, so that no message to its driver counts.
JUMP = """(number) => {
  const field = document.querySelector("[aria-label='Go to a line or a time']");
  field.value = String(number);
  const began = performance.now();
  const seen = new Promise((resolve) => {
    const list = document.querySelector(".log-list");
    const wanted = String(number).padStart(8, "0") + " ";
    const observer = new MutationObserver(() => {
      if (!list.textContent.includes(wanted)) return;
      observer.disconnect();
      resolve(performance.now() - began);
    });
    observer.observe(list, {childList: true, subtree: true, characterData: true});
  });
  field.form.requestSubmit();
  return seen;
}"""


def by_line() -> list[Row]:
    """Of a finished job, over HTTP; the floor is reading the same file from its first byte on."""
    with LiveServer() as server:
        name = server.submit([sys.executable, "-c", prints(LINES)])
        server.wait(name, 600)
        file = server.home / "logs" / name.rsplit("/", 1)[-1] / "0.0-0.out"
        floor = f"cat {_read(file):.2f} s"
        first = _answered(server, f"{name}:lines", {"line": -300, "count": 300})
        _await_numbers(server, f"{name}:lines")
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


def in_page() -> list[Row]:
    """The same log in a browser: opened at its end, a line in its midst, and what the page holds of it."""
    with LiveServer() as server, signed_in_page(server) as page:
        name = server.submit([sys.executable, "-c", prints(LINES)])
        server.wait(name, 600)
        _, project, _, location, _, job = name.split("/")
        floor = empty_page(page)
        page.add_init_script(noting(f"document.querySelector('.log-list')?.textContent.includes('{NEEDLE}')"))
        ends = [shown(page, f"/console/jobs/{project}/{location}/{job}/logs") for _ in range(ROUNDS)]
        page.get_by_text(f"{LINES:,} lines").wait_for()
        # Each somewhere else: what was read is kept.
        jumps = [float(page.evaluate(JUMP, LINES // 2 + turn * LINES // 100)) / 1e3 for turn in range(ROUNDS)]
        memory = _scrolled(page)
    held = f"{memory:.1f} MB"
    return [
        _row("address -> its end in the page", floor, ends, 0.2),
        _row("a line in its midst in the page", "-", jumps, 0.2),
        Row(
            what=f"{LINES:,} lines: JS heap after scrolling",
            floor="-",
            ours=held,
            value=memory,
            goal=100,
            unit="MB",
        ),
    ]


def _scrolled(page: Page) -> float:
    """MB that the page's scripts hold then, with what nobody has collected yet."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.get_by_role("region", name="Lines of the log").hover()
    for _ in range(SCROLLS):
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(30)
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["JSHeapUsedSize"]) / 1e6


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


def _await_numbers(server: LiveServer, path: str) -> None:
    """Until the lines are counted: a question that needs numbers is refused where that takes long."""
    query = urlencode({"line": -1, "count": 1, "numbered": "true"})
    while server.request("GET", f"/v1/{path}?{query}").status == 503:
        pass


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

"""What the console's list costs: its first row beside 100,000 jobs, and 200 pages that are left open."""

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

from playwright.sync_api import Page, sync_playwright

from tests.benchmarks.resting import cpu_seconds
from tests.benchmarks.row import Row, ms
from tests.browser.page import FLAGS, WIDE, chromium, open_context, sign_in
from tests.live import LiveServer
from tests.many_jobs import keep_ended_jobs

KEPT = 100_000
ROUNDS = 7
PAGES = 200
WATCHED = 30.0  # seconds
EVERYWHERE = "/v1/projects/-/locations/-/customJobs"
# The moment of the first row, in milliseconds since the address was entered.
FIRST_ROW = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("a.job")) return;
  observer.disconnect();
  window.firstRow = performance.now();
}).observe(document, {childList: true, subtree: true});
"""


def console_list() -> list[Row]:
    """Until the list is usable, and what the server needs for its parts."""
    with _server() as server, _page(server) as page:
        page.add_init_script(FIRST_ROW)
        shown = [_first_row(page) for _ in range(ROUNDS)]
        answers = [
            ("a page", lambda: server.get(EVERYWHERE, view="trainshed", pageSize=50)),
            ("count", lambda: server.get(f"{EVERYWHERE}:count")),
            ("search of a word", lambda: server.get(f"{EVERYWHERE}:count", filter="nowhere")),
        ]
        rows = [_answer(what, ask) for what, ask in answers]
    value = median(shown) * 1e3
    what = f"console: address -> list, {KEPT:,} jobs"
    return [Row(what=what, floor="-", ours=ms(shown), value=value, goal=300, unit="ms"), *rows]


def open_pages() -> list[Row]:
    """The server's CPU while nothing changes: each page has a stream of hints, and asks nothing."""
    with LiveServer() as server, ExitStack() as stack:
        server.wait(server.submit(["true"]))
        for _ in range(PAGES):
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            stack.callback(connection.close)
            headers = {"Authorization": f"Bearer {server.token}"}
            connection.request("GET", f"{EVERYWHERE}:watch", headers=headers)
            assert connection.getresponse().readline().startswith(b"id: ")
        time.sleep(2)
        before = cpu_seconds(server.pid)
        time.sleep(WATCHED)
        share = (cpu_seconds(server.pid) - before) / WATCHED * 100
    what = f"{PAGES} open pages, nothing changes"
    return [Row(what=what, floor="-", ours=f"{share:.2f} %", value=share, goal=5, unit="%")]


def _answer(what: str, ask: Callable[[], object]) -> Row:
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    what = f"the same, {what} by the API"
    return Row(what=what, floor="-", ours=ms(times), value=median(times) * 1e3, goal=100, unit="ms")


def _first_row(page: Page) -> float:
    page.goto("/console/jobs")
    page.wait_for_selector("a.job")
    return float(page.evaluate("window.firstRow")) / 1e3


@contextmanager
def _server() -> Iterator[LiveServer]:
    server = LiveServer()
    keep_ended_jobs(server.home, KEPT)
    with server:
        yield server


@contextmanager
def _page(server: LiveServer) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, "--no-sandbox"], chromium_sandbox=False
        )
        with open_context(browser, server, WIDE) as context:
            page = context.new_page()
            sign_in(page, server)
            yield page
        browser.close()

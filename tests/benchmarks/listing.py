"""What the console's list costs: its first row beside 100,000 jobs, and 200 pages that are left open."""

import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

from tests.benchmarks.browsing import empty_page, noting, shown, signed_in_page
from tests.benchmarks.resting import cpu_seconds, proportional_memory
from tests.benchmarks.row import Row, ms
from tests.homes.many_jobs import keep_ended_jobs
from tests.live import LiveServer

KEPT = 100_000
ROUNDS = 7
PAGES = 200
WATCHED = 30.0  # seconds
EVERYWHERE = "/v1/projects/-/locations/-/customJobs"


def console_list() -> list[Row]:
    """Until the list is usable, and what the server needs for its parts."""
    with _server() as server, signed_in_page(server) as page:
        floor = empty_page(page)
        page.add_init_script(noting("document.querySelector('a.job')"))
        times = [shown(page, "/console/jobs") for _ in range(ROUNDS)]
        answers = [
            ("a page", lambda: server.get(EVERYWHERE, view="trainshed", pageSize=50)),
            ("count", lambda: server.get(f"{EVERYWHERE}:count")),
            ("search of a word", lambda: server.get(f"{EVERYWHERE}:count", filter="nowhere")),
        ]
        rows = [_answer(what, ask) for what, ask in answers]
    value = median(times) * 1e3
    what = f"console: address -> list, {KEPT:,} jobs"
    return [Row(what=what, floor=floor, ours=ms(times), value=value, goal=300, unit="ms"), *rows]


def open_pages() -> list[Row]:
    """The server while nothing changes: each page has a stream of hints, and asks nothing."""
    with LiveServer() as server, ExitStack() as stack:
        server.wait(server.submit(["true"]))
        for _ in range(PAGES):
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            stack.callback(connection.close)
            headers = {"Authorization": f"Bearer {server.token}"}
            connection.request("GET", f"{EVERYWHERE}:watch", headers=headers)
            assert connection.getresponse().readline().startswith(b"id: ")
        time.sleep(2)
        spent, memory = cpu_seconds(server.pid), proportional_memory(server.pid)
        time.sleep(WATCHED)
        share = (cpu_seconds(server.pid) - spent) / WATCHED * 100
        after = proportional_memory(server.pid)
    what = f"{PAGES} open pages, nothing changes"
    return [
        Row(what=f"{what}: CPU", floor="-", ours=f"{share:.2f} %", value=share, goal=5, unit="%"),
        Row(
            what=f"{what}: memory more in {WATCHED:.0f} s",
            floor=f"{memory:.1f} MB before",
            ours=f"{after:.1f} MB",
            value=after - memory,
            goal=1,
            unit="MB",
        ),
    ]


def _answer(what: str, ask: Callable[[], object]) -> Row:
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    what = f"the same, {what} by the API"
    return Row(what=what, floor="-", ours=ms(times), value=median(times) * 1e3, goal=100, unit="ms")


@contextmanager
def _server() -> Iterator[LiveServer]:
    server = LiveServer()
    keep_ended_jobs(server.home, KEPT)
    with server:
        yield server

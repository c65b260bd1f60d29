"""No request makes the server fail: thousands that are nearly right get an answer other than 500, soon.

FUZZ_SEED repeats a run, FUZZ_REQUESTS says how many requests it has. Each everyday run has other ones, so it
needs few; `make fuzz` runs for longer.
"""

import http.client
import logging
import os
import secrets
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.requests import RequestMaker
from tests.fuzz.world import PATIENT, TracebackCollector, fuzz_world
from tests.live import JOBS, LiveServer

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "5000"))
SEED = int(os.environ.get("FUZZ_SEED") or secrets.randbelow(1 << 32))
MOST_CPU = 1.0  # seconds of work for an answer: time that others take from this machine does not count
MOST_GROWTH = 100 << 20  # bytes that the second half of the requests may add to this process


@pytest.fixture
def collector():
    collector = TracebackCollector()
    logging.getLogger("trainshed").addHandler(collector)
    yield collector
    logging.getLogger("trainshed").removeHandler(collector)


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.slow
@pytest.mark.timeout(300 + REQUESTS // 20)
async def test_no_request_makes_the_server_fail(tmp_path: Path, collector: TracebackCollector):
    slow: list[str] = []
    halfway = 0
    async with fuzz_world(tmp_path / "home") as world:
        methods = world.assembly.api.methods
        maker = RequestMaker(Random(SEED), methods, world.token, await world.names())
        for number in range(REQUESTS):
            request = maker.make()
            answer = await world.send(request)
            where = f"FUZZ_SEED={SEED}, request {number}: {request}"
            if answer.status in (0, 500):
                collector.places.setdefault(f"{answer.status} without a trace", where)
            elif request.refusal and answer.status < 300:
                collector.places.setdefault(f"accepted: {request.refusal}", where[:3000])
            elif answer.status == 200:
                maker.learn(request, answer.body)
            if answer.cpu > MOST_CPU and (again := await world.send(request)).cpu > MOST_CPU:
                slow.append(f"{again.cpu:.1f} s: {where[:3000]}")
            if number == REQUESTS // 2:
                halfway = memory()
    problems = "\n\n".join(f"{place}\n{text}" for place, text in collector.places.items())
    assert not problems, f"FUZZ_SEED={SEED}: {len(collector.places)} places\n{problems}"
    assert not slow, slow[:5]
    assert memory() - halfway < MOST_GROWTH, f"FUZZ_SEED={SEED}"


@pytest.mark.slow
def test_no_request_over_a_socket_makes_the_server_fail():
    with LiveServer("--no-auth") as server:
        made = server.submit(["true"])
        random = Random(SEED)
        names = {"project": ["p1"], "location": ["us-central1"], "job": [made.rpartition("/")[2]]}
        maker = RequestMaker(random, _table(server), "x", names)
        for number in range(min(REQUESTS // 20, 5000)):
            request = maker.make()
            if request.decoded.endswith(PATIENT) or "follow" in request.query:
                continue
            headers = [row for row in request.headers if row[0] not in ("host", "content-length")]
            assert (
                _status(server, request.verb, f"{request.path}?{request.query}", headers, request.body) != 500
            ), f"FUZZ_SEED={SEED}, request {number}: {request}"
        assert server.get(JOBS)
        assert "Traceback" not in server.said(), server.said()[-3000:]


def _table(server: LiveServer):
    from trainshed.assembly.assembly import assemble
    from trainshed.settings.table import Settings

    settings = Settings.from_args(["--home", str(server.base / "table"), "--engine", "none"])
    (server.base / "table").mkdir()
    return assemble(settings, server.url).api.methods


def _status(server: LiveServer, verb: str, target: str, headers: list[tuple[str, bytes]], body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.putrequest(verb, target)
        for name, value in headers:
            connection.putheader(name, value)
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return 0  # the server refused what is not HTTP
    finally:
        connection.close()

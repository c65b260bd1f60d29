"""A job's log by line number, searches in it, hints that it grew, and its download, over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.test_watch import event, listening
from tests.live import LiveServer, pool, python

PROGRAM = """
import sys
for number in range(1, 1001):
    print(f"line {number}", flush=number % 100 == 0)
print("WARNING: it gets warm", flush=True)
print("Traceback (most recent call last):", file=sys.stderr, flush=True)
print('{"severity": "ERROR", "message": "needle"}', flush=True)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with LiveServer("--engine", "none", "--cpus", "8") as server:
        yield server


@pytest.fixture(scope="module")
def job(server: LiveServer) -> str:
    name = server.submit(pools=[pool(python(PROGRAM)), pool(python("print('worker <b>')"))])
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    return name


def numbers(answer: Any) -> list[int]:
    return [int(line["number"]) for line in answer["lines"]]


def steps(server: LiveServer, path: str) -> list[Any]:
    answer = server.request("GET", path)
    assert answer.status == 200, answer.body
    *rows, end = [json.loads(row) for row in answer.body.splitlines() if row]
    assert end == {"end": True}
    return rows


def test_lines_are_had_by_number_from_the_end_by_time_and_by_id(server: LiveServer, job: str) -> None:
    shown = server.lines(job)
    whole = server.get(f"/v1/{job}:lines", count=5000)
    assert [line["text"] for line in whole["lines"]] == [line["text"] for line in shown]
    assert numbers(whole) == list(range(1, 1005))
    assert whole["total"]["lines"] == "1004" and whole["total"]["complete"] is True
    some = server.get(f"/v1/{job}:lines", line=501, count=3)
    assert some["lines"] == whole["lines"][500:503]
    assert server.get(f"/v1/{job}:lines", line=-2)["lines"] == whole["lines"][-2:]
    middle = whole["lines"][700]
    for asked in ({"time": middle["time"]}, {"insertId": middle["insertId"]}):
        around = server.get(f"/v1/{job}:lines", **asked, before=5, count=6)
        assert around["lines"] == whole["lines"][695:701]
    first = server.get(f"/v1/{job}:lines", task="workerpool0-0", stream="stdout", line=1000, count=9)
    assert [line["text"] for line in first["lines"]][:2] == ["line 1000", "WARNING: it gets warm"]
    assert [line["severity"] for line in first["lines"]] == ["DEFAULT", "WARNING", "ERROR"]


def test_every_wrong_parameter_is_named(server: LiveServer, job: str) -> None:
    query = "line=0&time=yesterday&count=9999999&before=-1&stream=stdin&attempt=x"
    wrong = server.request("GET", f"/v1/{job}:lines?{query}").violations
    assert set(wrong) == {"line", "count", "before", "stream", "attempt"}
    assert set(server.request("GET", f"/v1/{job}:lines?time=yesterday").violations) == {"time"}
    assert set(server.request("GET", f"/v1/{job}:lines?insertId=no").violations) == {"insertId"}
    wrong = server.request("GET", f"/v1/{job}:find?direction=up&from=x&limit=-4").violations
    assert set(wrong) == {"direction", "from", "limit", "text"}
    for query in ("regex=%28", "regex=x*", "text=a%0Ab", "severity=LOUD", "text=a&regex=b"):
        assert server.request("GET", f"/v1/{job}:find?{query}").status == 400, query
    assert server.request("GET", f"/v1/{job}x:find?text=a").status == 404
    assert set(server.request("GET", f"/v1/{job.rpartition('/')[0]}:watch?logs=j").violations) == {"logs"}


def test_a_search_finds_lines_with_their_numbers_both_ways(server: LiveServer, job: str) -> None:
    (step,) = steps(server, f"/v1/{job}:find?text=NEEDLE")
    assert [line["text"] for line in step["lines"]] == ['{"severity": "ERROR", "message": "needle"}']
    assert server.get(f"/v1/{job}:lines", line=numbers(step)[0], count=1)["lines"] == step["lines"]
    assert steps(server, f"/v1/{job}:find?text=NEEDLE&matchCase=true")[0]["matches"] == "0"
    (step,) = steps(server, f"/v1/{job}:find?regex=%5Eline%20%5Cd%2B0%24&from=100&limit=2&task=workerpool0-0")
    assert [line["text"] for line in step["lines"]] == ["line 100", "line 110"]
    assert step["matches"] == "91"
    query = "text=line&direction=backward&from=900&limit=2&task=workerpool0-0"
    assert numbers(steps(server, f"/v1/{job}:find?{query}")[0]) == [900, 899]
    (step,) = steps(server, f"/v1/{job}:find?severity=WARNING")
    assert sorted(line["severity"] for line in step["lines"]) == ["ERROR", "ERROR", "WARNING"]


def test_an_expression_that_would_take_for_ever_elsewhere_is_answered(server: LiveServer) -> None:
    name = server.submit(python("print('a' * 60_000 + '!')"))
    server.wait(name)
    assert steps(server, f"/v1/{name}:find?regex=%28a%2B%29%2B%24")[0]["matches"] == "0"


def test_the_log_is_saved_as_a_file_by_a_plain_link(server: LiveServer, job: str) -> None:
    answer = server.request("GET", f"/v1/{job}:output?download=true&task=workerpool1-0")
    identity = job.rpartition("/")[2]
    disposition = f'attachment; filename="{identity}-workerpool1-0.log"'
    assert answer.headers["content-disposition"] == disposition
    assert answer.body == b"worker <b>\n"
    whole = server.request("GET", f"/v1/{job}:output?download=true")
    assert whole.headers["content-disposition"] == f'attachment; filename="{identity}.log"'
    assert len(whole.body.splitlines()) == 1004


def test_a_log_that_grows_is_hinted_in_the_stream_of_hints(server: LiveServer) -> None:
    program = "import time\nfor number in range(600): print(number, flush=True); time.sleep(0.1)"
    name = server.submit(python(program))
    with listening(server, f"?logs={name}") as answer:
        while event(answer)[1] != {"name": name, "log": True}:
            pass
    server.cancel(name)

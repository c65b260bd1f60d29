"""gcloud's stream-logs, by a faithful model of its loop: no line lost, none doubled, and it ends."""

import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.gcloud_model import Gcloud, message, task
from tests.live import LiveServer, pool, python

Unique = Callable[[str], str]
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")


def program(lines: int, pause: float = 0.0) -> list[str]:
    return python(
        "import os, sys, time\n"
        "me = os.environ['RANK']\n"
        f"for i in range({lines}):\n"
        "    print(f'{me}:{i}', file=sys.stderr if i % 7 == 0 else sys.stdout)\n"
        f"    time.sleep({pause}) if {pause} else None\n"
    )


def lines_of(entries: list[Any]) -> list[Any]:
    return [entry for entry in entries if task(entry) != "service"]


def check(entries: list[Any], replicas: int, each: int) -> None:
    """Every line once; positions strictly increasing as text; one width of timestamp."""
    counted = Counter((task(e), message(e)) for e in lines_of(entries))
    assert len(counted) == replicas * each
    assert set(counted.values()) == {1}
    assert all(TIMESTAMP.fullmatch(e["timestamp"]) for e in entries)
    places = [(e["timestamp"], e["insertId"]) for e in entries]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    for rank in range(replicas):
        for parity in (True, False):
            own = [int(m[1]) for e in lines_of(entries) if (m := _line(message(e), rank)) is not None]
            kept = [i for i in own if (i % 7 == 0) is parity]
            assert kept == sorted(kept), "a stream's lines keep their order"


def _line(text: str, rank: int) -> tuple[int, int] | None:
    who, _, number = text.partition(":")
    return (rank, int(number)) if who == str(rank) else None


@pytest.fixture(scope="module")
def finished(server: LiveServer) -> str:
    """A job of three replicas with 2500 lines each, over."""
    name = server.submit(pools=[pool(program(2500)), pool(program(2500), replicas=2)], name="stream-finished")
    assert server.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    return name


@pytest.mark.parametrize("track", ["ga", "beta", "alpha"])
def test_a_finished_job_is_streamed_whole_and_the_stream_ends(
    server: LiveServer, finished: str, track: str
) -> None:
    stream = Gcloud(server, track).stream_logs(finished)
    entries = list(stream)
    check(entries, replicas=3, each=2500)
    assert stream.dropped == []
    assert stream.polls >= 8, "a poll brings at most a thousand"


def test_the_task_filter_keeps_one_replica(server: LiveServer, finished: str) -> None:
    job = finished.rsplit("/", 1)[1]
    entries = server.entries(
        f'resource.type="ml_job" AND resource.labels.job_id="{job}" '
        'AND resource.labels.task_name="workerpool1-1" AND timestamp>="1970-01-01T01:00:00.000000000Z"',
        orderBy="timestamp asc",
        pageSize=1000,
    )
    assert len(entries) == 2500
    assert {task(e) for e in entries} == {"workerpool1-1"}


def test_the_legacy_filter_is_understood(server: LiveServer, finished: str) -> None:
    job = finished.rsplit("/", 1)[1]
    entries = server.entries(
        f'(resource.type="ml_job" OR resource.type="cloudml_job") AND resource.labels.job_id="{job}" '
        'AND (resource.labels.task_name="workerpool0-0" OR labels.task_name="workerpool0-0") '
        'AND timestamp>="1970-01-01T01:00:00.000000000Z"',
        orderBy="timestamp asc",
        pageSize=1000,
    )
    assert len(entries) == 2500


def test_a_stream_begun_on_a_running_job_has_every_line_and_ends_with_the_job(
    server: LiveServer, unique: Unique
) -> None:
    name = server.submit(
        pools=[pool(program(300, 0.01)), pool(program(300, 0.01), replicas=2)], name=unique("running")
    )
    server.wait_for(name, ("JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED"))
    stream = Gcloud(server).stream_logs(name)
    entries = list(stream)
    assert server.state(name) == "JOB_STATE_SUCCEEDED", "the stream ended before the job"
    check(entries, replicas=3, each=300)
    assert stream.dropped == []


def test_a_silent_job_does_not_end_its_stream(server: LiveServer, unique: Unique) -> None:
    source = "import time; print('before'); time.sleep(4); print('after')"
    name = server.submit(python(source), name=unique("silent"))
    entries = list(Gcloud(server).stream_logs(name))
    assert [message(e) for e in lines_of(entries)] == ["before", "after"]


def test_a_stream_on_a_waiting_job_lasts_until_it_has_run(strict_server: LiveServer) -> None:
    first = strict_server.submit(python("import time; time.sleep(600)"), name="holds-the-machine")
    strict_server.wait_for(first, ("JOB_STATE_RUNNING",))
    second = strict_server.submit(python("print('at last')"), name="waits")
    timer = threading.Timer(2, strict_server.cancel, (first,))
    timer.start()
    try:
        entries = list(Gcloud(strict_server).stream_logs(second))
    finally:
        timer.join()
    assert [message(e) for e in lines_of(entries)] == ["at last"]


def test_a_cancelled_job_ends_its_stream(server: LiveServer, unique: Unique) -> None:
    source = "import time; print('up', flush=True); time.sleep(600)"
    name = server.submit(python(source), name=unique("cancelled"))
    server.wait_for(name, ("JOB_STATE_RUNNING",))
    timer = threading.Timer(1.5, server.cancel, (name,))
    timer.start()
    try:
        entries = list(Gcloud(server).stream_logs(name))
    finally:
        timer.join()
    assert [message(e) for e in lines_of(entries)] == ["up"]
    assert server.state(name) == "JOB_STATE_CANCELLED"


def test_the_bound_gcloud_draws_is_kept_for_others(server: LiveServer, unique: Unique) -> None:
    """Only stream-logs, known by its user agent, is answered with lines younger than it asked for."""
    name = server.submit(python("print('young')"), name=unique("young"))
    server.wait(name)
    job = name.rsplit("/", 1)[1]
    entries = server.entries(f'resource.labels.job_id="{job}" AND timestamp<"2001-01-01T00:00:00Z"')
    assert entries == []


def test_only_stream_logs_is_told_an_end_that_has_not_come(server: LiveServer, unique: Unique) -> None:
    name = server.submit(python("import time; time.sleep(600)"), name=unique("honest"))
    gcloud = Gcloud(server)
    assert gcloud.stream_logs(name).ended_at_first, "or gcloud would never end its loop"
    assert "endTime" not in gcloud.describe(name).json
    assert "endTime" not in server.job(name)
    server.cancel(name)

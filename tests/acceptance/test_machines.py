"""The machines, the queue and what is prepared, as scripts and people at a terminal see them."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.test_why import command
from tests.live import PARENT, LiveServer, pool, python

FOREVER = python("import time; time.sleep(600)")
EVERYWHERE = "/v1/projects/-/locations/-"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    """Two CPUs: a job holds one, two jobs wait for both."""
    with LiveServer("--cpus", "2", "--memory", "8GiB") as server:
        holder = server.submit(pools=[pool(FOREVER, machine="n1-standard-1")], name="holder")
        server.wait_for(holder, ["JOB_STATE_RUNNING"])
        for name in ("first", "second"):
            server.submit(pools=[pool(FOREVER, replicas=2, machine="n1-standard-1")], name=name)
        wait_for_reasons(server)
        yield server


def wait_for_reasons(server: LiveServer) -> None:
    """A job that was just submitted has no reason yet: admission gives it in the next turn of the loop."""
    deadline = time.monotonic() + 30
    while any(row["waiting"]["reason"] == "WAITS_FOR_ADMISSION" for row in queue(server)["jobs"]):
        assert time.monotonic() < deadline, queue(server)
        time.sleep(0.02)


def queue(server: LiveServer, **query: str | int) -> Any:
    return server.get(f"{EVERYWHERE}/queue", **query)


def test_a_node_says_what_is_free_who_holds_the_rest_and_what_its_machine_does(server: LiveServer):
    (node,) = server.get(f"{EVERYWHERE}/nodes")["nodes"]
    assert (node["name"], node["backends"]) == ("local", ["process"])
    assert (node["capacity"]["cpus"], node["free"]["cpus"]) == (2, 1)
    (holder,) = node["holders"]
    assert (holder["displayName"], holder["task"], holder["cpus"]) == ("holder", "workerpool0-0", 1)
    assert server.get(f"/v1/{holder['job']}")["displayName"] == "holder"
    assert 0 <= node["use"]["cpus"]["used"] <= node["use"]["cpus"]["size"]
    for part in ("memory", "disk"):
        assert 0 < int(node["use"][part]["usedBytes"]) < int(node["use"][part]["sizeBytes"])


def test_the_queue_is_told_in_its_order_with_reasons_page_by_page(server: LiveServer):
    first = queue(server, pageSize=1)
    second = queue(server, pageSize=1, pageToken=first["nextPageToken"])
    rows = [*first["jobs"], *second["jobs"]]
    assert [(row["displayName"], row["position"]) for row in rows] == [("first", 1), ("second", 2)]
    assert [row["waiting"]["reason"] for row in rows] == ["WAITS_FOR_CAPACITY", "WAITS_BEHIND_OTHERS"]
    assert rows[0]["needs"]["cpus"] == 2
    assert (first["totalSize"], "nextPageToken" in second) == (2, False)
    refused = server.request("GET", f"{PARENT}/queue?pageToken={first['nextPageToken']}")
    assert (refused.status, list(refused.violations)) == (400, ["page_token"])


def test_the_queue_knows_the_time_of_a_start_as_why_does(server: LiveServer):
    row = queue(server, eta="true")["jobs"][0]
    known = server.get(f"/v1/{row['name']}:why")
    assert (row["eta"]["latest"], row["position"]) == (known["eta"]["latest"], known["position"])


def test_nothing_is_prepared_where_all_is_there(server: LiveServer):
    assert server.get(f"{PARENT}/preparations") == {"preparations": []}


def test_people_see_machines_and_queue_at_a_terminal(server: LiveServer):
    nodes, waiting = command(server, "nodes").stdout, command(server, "queue").stdout
    assert "1 of 2" in nodes
    assert "workerpool0-0" in nodes
    assert [line.split()[0] for line in waiting.splitlines()] == ["PLACE", "1", "2"]
    told = json.loads(command(server, "queue", "--json", "--limit", "1").stdout)
    assert [job["displayName"] for job in told["jobs"]] == ["first"]
    assert json.loads(command(server, "nodes", "--json").stdout)[0]["name"] == "local"


def test_without_an_engine_images_say_why_and_what_to_do(server: LiveServer):
    answer = server.request("GET", f"{PARENT}/images")
    assert answer.status == 503
    assert answer.error["message"] == (
        "Containers cannot run here: there is no engine: containers are switched off by --engine none. "
        "Start the server without it."
    )

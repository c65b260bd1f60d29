"""A home that an earlier release left behind, killed while a job ran, opens, runs on and loses nothing.

`home-0.4.0.tar.xz` is such a home. Release 0.4.0 made it: eight jobs of every kind and state, a bucket with a
replaced object, logs, and a database with an unfinished write-ahead log. `made.json` inside names the jobs.
"""

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.live import PARENT, LiveServer, python

HOMES = sorted(Path(__file__).parent.glob("home-*.tar.xz"))


@pytest.fixture(scope="module", params=HOMES, ids=lambda path: path.name)
def upgraded(request: pytest.FixtureRequest) -> Iterator[tuple[LiveServer, dict[str, str], dict[str, str]]]:
    server = LiveServer("--cpus", "2", "--memory", "4GiB")
    with tarfile.open(request.param) as archive:
        archive.extractall(server.home, filter="tar")
    made = json.loads((server.home / "made.json").read_text())
    with server:
        yield server, made["names"], made["states"]


Upgraded = tuple[LiveServer, dict[str, str], dict[str, str]]


def test_every_job_that_was_over_is_as_it_was(upgraded: Upgraded):
    server, names, states = upgraded
    over = {which for which, state in states.items() if which not in ("running", "queued")}
    assert {which: server.get(f"/v1/{names[which]}")["state"] for which in over} == {
        which: states[which] for which in over
    }


def test_a_failure_keeps_its_verdict(upgraded: Upgraded):
    server, names, _ = upgraded
    assert "nonexistent_module" in json.dumps(server.job(names["failed"])["error"])


def test_what_ran_when_the_old_server_was_killed_runs_again_and_ends_well(upgraded: Upgraded):
    server, names, _ = upgraded
    assert server.wait(names["running"])["state"] == "JOB_STATE_SUCCEEDED"
    texts = [line["text"] for line in server.lines(names["running"])]
    assert texts[0] == "began"  # what the first run printed is kept
    assert texts[-1] == "went on"


def test_what_waited_runs(upgraded: Upgraded):
    server, names, _ = upgraded
    assert server.wait(names["queued"])["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in server.lines(names["queued"])] == ["waited"]


def test_a_job_of_the_older_api_keeps_its_name_and_the_names_of_its_replicas(upgraded: Upgraded):
    server, _, _ = upgraded
    asked = {"resourceNames": ["projects/p1"], "filter": 'resource.labels.job_id="older_job"'}
    entries: list[Any] = server.post("/v2/entries:list", asked)["entries"]
    assert {entry["resource"]["labels"]["task_name"] for entry in entries} == {"service", "master-replica-0"}
    [job] = server.get(f"{PARENT}/customJobs", filter='display_name="older_job"', view="trainshed")[
        "customJobs"
    ]
    assert job["kind"] == "legacy"
    assert "legacy" not in job


def test_objects_are_there_byte_for_byte(upgraded: Upgraded):
    server, _, _ = upgraded
    listed: list[Any] = server.get("/storage/v1/b/old-home/o")["items"]
    bodies = {
        item["name"]: server.request(
            "GET", f"/storage/v1/b/old-home/o/{item['name'].replace('/', '%2F')}?alt=media"
        ).body
        for item in listed
    }
    assert bodies["data/rows.csv"] == b"a,b\n3,4\n"
    assert bodies["out/model/model.txt"] == b"weights"
    assert bodies["pipe/model/m"] == b"x"


def test_the_index_of_its_buckets_is_guarded_from_now_on(upgraded: Upgraded):
    server, _, _ = upgraded
    with closing(sqlite3.connect(server.home / "buckets/.trainshed/index.db")) as index:
        assert index.execute("SELECT identity FROM home").fetchall() == [
            ((server.home / "buckets.created").read_text(),)
        ]


def test_the_model_of_a_pipeline_is_listed(upgraded: Upgraded):
    server, _, _ = upgraded
    assert [model["displayName"] for model in server.get(f"{PARENT}/models")["models"]] == ["m"]


def test_new_work_goes_on_top(upgraded: Upgraded):
    server, _, _ = upgraded
    job = server.submit(python("print(open('/gcs/old-home/data/rows.csv').read())"))
    assert server.wait(job)["state"] == "JOB_STATE_SUCCEEDED"
    assert "3,4" in "".join(line["text"] for line in server.lines(job))

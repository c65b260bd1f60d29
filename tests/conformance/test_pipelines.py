"""trainingPipelines and models over HTTP, on a live server: what no client shows, and what kill -9 leaves."""

import random
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

import pytest

from tests.conformance.refusal import refused
from tests.live import JOBS, PARENT, LiveServer, pool, python, until
from trainshed.wire.training_pipeline import CUSTOM_TASK

Unique = Callable[[str], str]
PIPELINES, MODELS = f"{PARENT}/trainingPipelines", f"{PARENT}/models"
FINAL = ("PIPELINE_STATE_SUCCEEDED", "PIPELINE_STATE_FAILED", "PIPELINE_STATE_CANCELLED")


def asked(name: str, command: list[str] | None = None, **more: Any) -> dict[str, Any]:
    inputs = {
        "workerPoolSpecs": [pool(command or ["true"])],
        "baseOutputDirectory": {"outputUriPrefix": "gs://b/out"},
    }
    return {
        "displayName": name,
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": inputs,
        "modelToUpload": {"displayName": f"{name}-model"},
        **more,
    }


def ended(server: LiveServer, name: str) -> Any:
    def look() -> Any:
        told = server.get(f"/v1/{name}")
        return told if told["state"] in FINAL else None

    return until(look)


def test_a_pipeline_and_its_job_are_one_and_tell_the_same(server: LiveServer, unique: Unique) -> None:
    made = server.post(PIPELINES, asked(unique("one"), labels={"a": "b"}))
    done = ended(server, made["name"])
    assert done["state"] == "PIPELINE_STATE_SUCCEEDED"
    job = server.job(done["trainingTaskMetadata"]["backingCustomJob"])
    for field in ("displayName", "labels", "createTime", "startTime", "endTime", "updateTime"):
        assert job[field] == done[field], field
    model = server.get(f"/v1/{done['modelToUpload']['name']}%401")
    assert model["artifactUri"] == done["modelToUpload"]["artifactUri"] == "gs://b/out/model"
    assert model["createTime"] == done["endTime"]


def test_a_job_that_was_not_asked_for_as_a_pipeline_is_none(server: LiveServer) -> None:
    name = server.submit(["true"])
    identity = name.rsplit("/", 1)[-1]
    for verb, path in (("GET", ""), ("DELETE", ""), ("POST", ":cancel")):
        answer = server.request(verb, f"{PIPELINES}/{identity}{path}", {} if verb == "POST" else None)
        assert "trainingPipelines" in refused(answer, 404, "NOT_FOUND").error["message"]
    server.wait(name)


def test_pages_masks_and_filters_work_as_for_jobs(server: LiveServer, unique: Unique) -> None:
    stem = unique("paged")
    # One after the other: models come in the order in which they were made.
    names = [ended(server, server.post(PIPELINES, asked(f"{stem}-{n}"))["name"])["name"] for n in range(5)]
    query: dict[str, Any] = {"filter": f'display_name:"{stem}*"', "pageSize": 2, "readMask": "name,state"}
    seen: list[Any] = []
    for _ in range(3):
        page = server.get(PIPELINES, **query)
        seen += page["trainingPipelines"]
        query["pageToken"] = page.get("nextPageToken", "")
    assert query["pageToken"] == ""
    assert [row["name"] for row in seen] == names[::-1]
    assert all(set(row) == {"name", "state"} for row in seen)
    found = server.get(MODELS, filter=f'display_name:"{stem}*"', pageSize=3, readMask="displayName")
    assert [row["displayName"] for row in found["models"]] == [f"{stem}-{n}-model" for n in (4, 3, 2)]
    rest = server.get(
        MODELS,
        filter=f'display_name:"{stem}*"',
        pageSize=3,
        readMask="displayName",
        pageToken=found["nextPageToken"],
    )
    assert len(rest["models"]) == 2
    wanted = f'display_name:"{stem}*" AND training_task_definition:'
    assert len(server.get(PIPELINES, filter=wanted + '"*/custom_task*"')["trainingPipelines"]) == 5
    assert server.get(PIPELINES, filter=wanted + '"*automl*"') == {}
    refused(server.request("GET", f"{PIPELINES}?readMask=oops"))
    refused(server.request("GET", f"{MODELS}?filter=state%3DRUNNING"))
    refused(server.request("GET", f"{MODELS}?orderBy=name"))
    refused(server.request("GET", f"{PIPELINES}?pageToken={quote(found['nextPageToken'])}"))


def test_v1beta1_and_enums_as_numbers(server: LiveServer, unique: Unique) -> None:
    made = server.post(PIPELINES.replace("/v1/", "/v1beta1/"), asked(unique("beta")))
    done = ended(server, made["name"])
    told = server.get(f"/v1beta1/{made['name']}", **{"$alt": "json;enum-encoding=int"})
    assert (done["state"], told["state"]) == ("PIPELINE_STATE_SUCCEEDED", 4)


def test_the_same_key_gives_the_same_pipeline_and_no_other(server: LiveServer, unique: Unique) -> None:
    key = {"Idempotency-Key": unique("key")}
    body = asked(unique("twice"), modelId=unique("m"))
    first = server.request("POST", PIPELINES, body, headers=key)
    again = server.request("POST", PIPELINES, body, headers=key)
    assert first.status == again.status == 200
    assert first.json["name"] == again.json["name"]
    other = {**body, "modelToUpload": {"displayName": "another"}}
    refused(server.request("POST", PIPELINES, other, headers=key), 409, "ALREADY_EXISTS")
    job = {"displayName": body["displayName"], "jobSpec": body["trainingTaskInputs"]}
    plain = {"Idempotency-Key": unique("key")}
    assert server.request("POST", JOBS, job, headers=plain).status == 200
    refused(server.request("POST", PIPELINES, body, headers=plain), 409, "ALREADY_EXISTS")


def test_of_many_who_want_the_same_model_one_gets_it(server: LiveServer, unique: Unique) -> None:
    identity, name = unique("wanted"), unique("race")
    codes: list[int] = []

    def ask() -> None:
        codes.append(server.request("POST", PIPELINES, asked(name, modelId=identity)).status)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [200] + [409] * 7
    (kept,) = server.get(JOBS, filter=f'display_name="{name}"')["customJobs"]
    server.wait(kept["name"])
    assert server.get(f"{MODELS}/{identity}")["displayName"] == f"{name}-model"


def test_a_running_pipeline_can_be_cancelled_once_and_not_deleted(server: LiveServer, unique: Unique) -> None:
    identity = unique("m")
    made = server.post(
        PIPELINES, asked(unique("long"), python("import time; time.sleep(600)"), modelId=identity)
    )
    refused(server.request("GET", f"{MODELS}/{identity}"), 404, "NOT_FOUND")
    refused(server.request("DELETE", f"{MODELS}/{identity}"), 404, "NOT_FOUND")
    refused(server.request("DELETE", f"/v1/{made['name']}"), 400, "FAILED_PRECONDITION")
    for _ in range(2):
        server.post(f"/v1/{made['name']}:cancel")
    done = ended(server, made["name"])
    assert done["state"] == "PIPELINE_STATE_CANCELLED"
    assert done["error"]["code"] == 1
    assert "name" not in done["modelToUpload"]
    operation = server.request("DELETE", f"/v1/{made['name']}").json
    assert operation["done"]
    assert server.get(f"/ui/{operation['name']}")["response"]


@pytest.mark.parametrize("odd", ["..%2F..", "%C3%A9", "1:oops", "x" * 3000, "1@7", "@", "%40%40"])
def test_odd_names_are_not_there(server: LiveServer, odd: str) -> None:
    for place in (PIPELINES, MODELS):
        assert server.request("GET", f"{place}/{odd}").status == 404
        assert server.request("DELETE", f"{place}/{odd}").status == 404


def test_show_names_the_pipeline_and_its_model(server: LiveServer, unique: Unique) -> None:
    made = server.post(PIPELINES, asked(unique("shown")))
    done = ended(server, made["name"])
    told = server.get(f"/v1/{done['trainingTaskMetadata']['backingCustomJob']}:status")
    assert told["pipeline"] == made["name"]
    assert told["model"] == done["modelToUpload"]["name"]


@pytest.mark.slow
def test_kill_9_leaves_a_pipeline_with_its_job_and_its_model_s_name_or_nothing() -> None:
    dice = random.Random(4)
    with LiveServer("--cpus", "64", "--memory", "256GiB") as server:
        acknowledged: dict[str, str] = {}
        for turn in range(3):
            over = threading.Event()

            def submit(turn: int = turn, over: threading.Event = over) -> None:
                number = 0
                while not over.is_set():
                    name = f"m{turn}-{number}"
                    try:
                        answer = server.request("POST", PIPELINES, asked(name, modelId=name))
                    except (OSError, HTTPException):
                        return
                    if answer.status == 200:
                        acknowledged[name] = answer.json["name"]
                    number += 1

            thread = threading.Thread(target=submit)
            thread.start()
            time.sleep(
                0.2 + dice.random() / 2
            )  # where it strikes is chance; what must hold does not depend on it
            server.kill()
            over.set()
            thread.join()
            server.start()
        assert acknowledged
        pipelines = {row["displayName"]: row for row in _all(server, PIPELINES, "trainingPipelines")}
        jobs = {row["displayName"]: row for row in _all(server, JOBS, "customJobs")}
        assert acknowledged.items() <= {name: row["name"] for name, row in pipelines.items()}.items()
        assert set(pipelines) == set(jobs)
        for name, row in pipelines.items():
            assert ended(server, row["name"])["state"] == "PIPELINE_STATE_SUCCEEDED"
            assert server.get(f"{MODELS}/{name}")["trainingPipeline"] == row["name"]
        assert len(_all(server, MODELS, "models")) == len(pipelines)


def _all(server: LiveServer, place: str, key: str) -> list[Any]:
    found: list[Any] = []
    query: dict[str, Any] = {"pageSize": 50}
    while True:
        page = server.get(place, **query)
        found += page.get(key, [])
        if not page.get("nextPageToken"):
            return found
        query["pageToken"] = page["nextPageToken"]


def test_all_jobs_of_a_pipeline_are_listed_by_their_owner(server: LiveServer, unique: Unique) -> None:
    pipeline = server.post(PIPELINES, asked(unique("owner")))["name"]
    identity = pipeline.rpartition("/")[2]
    server.submit(python("pass"))
    (job,) = server.get(JOBS, owner=f"pipeline/{identity}")["customJobs"]
    assert job["name"].endswith(f"/customJobs/{identity}")
    told = server.get(f"/v1/{job['name']}:status")
    assert (told["owner"], told["pipeline"]) == (f"pipeline/{identity}", pipeline)
    refused = server.request("GET", f"{JOBS}?owner=nobody")
    assert (refused.status, "owner" in refused.violations) == (400, True)

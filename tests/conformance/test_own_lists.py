"""Our own view of lists, by plain HTTP: words, orders, projects, counts, values, submitters, retries."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.refusal import refused
from tests.live import JOBS, LOCATION, PARENT, LiveServer, pool

Unique = Callable[[str], str]
ALL = "/v1/projects/-/locations/-/customJobs"


def names(page: Any) -> list[str]:
    return [job["displayName"] for job in page.get("customJobs", [])]


@pytest.fixture(scope="module")
def stem(server: LiveServer) -> str:
    """Three jobs that have ended, in two projects."""
    for name, labels in (("b", {"team": "lists-vision"}), ("a", {"team": "lists-ads"})):
        server.wait(server.submit(["true"], name=f"lists-{name}", labels=labels))
    elsewhere = server.post(
        f"/v1/projects/p-other/locations/{LOCATION}/customJobs",
        {"displayName": "lists-c", "jobSpec": {"workerPoolSpecs": [pool(["false"])]}},
    )
    server.wait(elsewhere["name"])
    return "lists-"


def test_words_are_found_in_names_ids_and_labels_of_all_projects(server: LiveServer, stem: str) -> None:
    found = server.get(ALL, view="trainshed", filter=stem.upper(), orderBy="display_name")
    assert names(found) == ["lists-a", "lists-b", "lists-c"]
    job = found["customJobs"][0]["name"].rpartition("/")[2]
    for text, wanted in (
        ("lists-vision", ["lists-b"]),
        (job, ["lists-a"]),
        (f"{stem} -lists-vision project=p1", ["lists-a"]),
        (f"{stem} state=FAILED", ["lists-c"]),
        (f"{stem} kind=pipeline", []),
    ):
        assert names(server.get(ALL, view="trainshed", filter=text)) == wanted
    refused(server.request("GET", f"{JOBS}?filter={stem}"))  # Google's own list has no words


def test_pages_follow_an_order_of_our_own(server: LiveServer, stem: str) -> None:
    asked = {"view": "trainshed", "filter": stem, "orderBy": "display_name desc", "pageSize": 2}
    first = server.get(ALL, **asked)
    second = server.get(ALL, **asked, pageToken=first["nextPageToken"])
    assert names(first) + names(second) == ["lists-c", "lists-b", "lists-a"]
    other = f"{ALL}?view=trainshed&filter={stem}&orderBy=state&pageToken={first['nextPageToken']}"
    assert "page_token" in refused(server.request("GET", other)).violations
    assert "order_by" in refused(server.request("GET", f"{JOBS}?orderBy=state")).violations


def test_one_job_has_the_fields_that_it_has_in_the_list(server: LiveServer, stem: str) -> None:
    [listed] = server.get(ALL, view="trainshed", filter=f"{stem} state=FAILED")["customJobs"]
    assert server.get(f"/v1/{listed['name']}", view="trainshed") == listed
    added = {"kind", "replicas", "version", "why", "usage"}
    assert added <= set(listed)
    assert not added & set(
        server.job(listed["name"])
    )  # Google's clients fail on fields that they do not know


def test_counts_are_by_state_and_projects_are_listed(server: LiveServer, stem: str) -> None:
    counted = server.get(f"{ALL}:count", filter=stem)
    assert counted == {
        "count": 3,
        "elsewhere": 0,
        "byState": {"JOB_STATE_SUCCEEDED": 2, "JOB_STATE_FAILED": 1},
    }
    projects = {project["projectId"]: project for project in server.get("/v1/projects")["projects"]}
    assert projects["p-other"] == {
        "projectId": "p-other",
        "jobCount": 1,
        "byState": {"JOB_STATE_FAILED": 1},
    }
    assert projects["p1"]["jobCount"] >= 2


def test_values_are_completed(server: LiveServer, stem: str) -> None:
    def completed(field: str, prefix: str) -> list[str]:
        answer = server.get(f"{ALL}:complete", field=field, prefix=prefix)
        return [item["value"] for item in answer["values"]]

    assert completed("display_name", "LISTS-") == ["lists-a", "lists-b", "lists-c"]
    assert "team" in completed("labels", "te")
    assert completed("labels", "team=lists-v") == ["team=lists-vision"]
    assert "custom" in completed("kind", "")
    assert completed("state", "FAI") == ["FAILED"]
    assert "field" in refused(server.request("GET", f"{ALL}:complete?field=colour")).violations


def test_a_row_says_why_how_many_and_how_much(server: LiveServer, stem: str) -> None:
    [failed] = server.get(ALL, view="trainshed", filter=f"{stem} state=FAILED")["customJobs"]
    assert failed["kind"] == "custom"
    assert failed["replicas"] == {"running": 0, "wanted": 1}
    assert "exited with code 1" in failed["why"]
    assert failed["usage"]["cpuSeconds"] > 0
    assert failed["usage"]["gpuSeconds"] == 0
    [plain] = server.get(f"/v1/projects/p-other/locations/{LOCATION}/customJobs")["customJobs"]
    assert not {"kind", "why", "usage", "replicas", "submitter", "version"} & set(plain)


def test_a_running_job_has_used_something_before_it_ends(server: LiveServer, unique: Unique) -> None:
    name = unique("runs")
    job = server.submit(["sleep", "60"], name=name)
    server.wait_for(job, ["JOB_STATE_RUNNING"])
    rows = [server.get(JOBS, view="trainshed", filter=name)["customJobs"][0] for _ in range(2)]
    assert rows[0]["replicas"] == {"running": 1, "wanted": 1}
    assert 0 < rows[0]["usage"]["cpuSeconds"] < rows[1]["usage"]["cpuSeconds"]
    server.cancel(job)


def test_the_submitter_is_kept_as_the_client_says(server: LiveServer, unique: Unique) -> None:
    name = unique("who")
    body = {"displayName": name, "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}
    said = {"X-Trainshed-User": "Ada%20L%C3%B6ve"}
    assert server.request("POST", JOBS, body, headers=said).status == 200
    [row] = server.get(JOBS, view="trainshed", filter='submitter="Ada Löve"')["customJobs"]
    assert (row["displayName"], row["submitter"]) == (name, "Ada Löve")
    for wrong in ("x" * 101, "a%0Ab"):
        answer = refused(server.request("POST", JOBS, body, headers={"X-Trainshed-User": wrong}))
        assert "X-Trainshed-User" in answer.violations


def test_a_retry_is_the_same_job_once_more(server: LiveServer, unique: Unique) -> None:
    name = unique("again")
    first = server.submit(["true"], name=name, labels={"a": "b"})
    server.wait(first)
    key = {"Idempotency-Key": unique("key")}
    again = server.request("POST", f"/v1/{first}:retry", {}, headers=key).json
    assert server.request("POST", f"/v1/{first}:retry", {}, headers=key).json["name"] == again["name"]
    assert again["name"] != first
    old = server.get(f"/v1/{first}")
    assert {field: again[field] for field in ("displayName", "jobSpec", "labels")} == {
        field: old[field] for field in ("displayName", "jobSpec", "labels")
    }
    assert server.post(f"/v1/{first}:retry", {"displayName": "new name"})["displayName"] == "new name"
    assert "colour" in refused(server.request("POST", f"/v1/{first}:retry", {"colour": 1})).violations
    assert server.request("POST", f"{JOBS}/1:retry", {}).status == 404


def test_a_job_is_made_in_one_project(server: LiveServer) -> None:
    body = {"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}
    for parent in ("/v1/projects/-/locations/l", f"{PARENT.rpartition('/')[0]}/-"):
        assert "parent" in refused(server.request("POST", f"{parent}/customJobs", body)).violations

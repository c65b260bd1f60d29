"""The edges of the API by plain HTTP: whatever is sent, the answer is a google.rpc.Status and never a 5xx."""

import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.conformance.refusal import refused
from tests.live import IMAGE, JOBS, PARENT, PROJECT, LiveServer, pool, python

Unique = Callable[[str], str]
POOLS = "job_spec.worker_pool_specs"
GOOD = {"displayName": "wire", "jobSpec": {"workerPoolSpecs": [pool(["true"])]}}


def job_with(pools: list[Any], **spec: Any) -> dict[str, Any]:
    return {"displayName": "wire", "jobSpec": {"workerPoolSpecs": pools, **spec}}


# ---- everything that is wrong with a request is told at once


def test_one_answer_names_every_violation_with_its_path(server: LiveServer) -> None:
    body = {
        "displayName": 7,
        "colour": "red",
        "labels": {"Team": "vision", "ok": 3},
        "jobSpec": {
            "shape": "round",
            "enableWebAccess": "yes",
            "scheduling": {"timeout": "1h", "strategy": "CHEAP", "patience": 1},
            "workerPoolSpecs": [
                {**pool(["true"], machine="n1-nonsense-4"), "replicaCount": 0},
                {**pool(["true"]), "replicaCount": "-3"},
                {**pool(["true"]), "replicaCount": 1001},
                {**pool(["true"]), "replicaCount": 1.5, "size": "large"},
                pool(["true"], env={f"V{i}": "x" for i in range(101)}),
                {
                    "machineSpec": {
                        "machineType": "n1-standard-4",
                        "acceleratorType": "NVIDIA_ABACUS",
                        "acceleratorCount": 1,
                    },
                    "containerSpec": {"imageUri": "gcr.io/somebody/else:1"},
                },
                {"machineSpec": {"machineType": "n1-standard-4"}},
                {"containerSpec": {"imageUri": IMAGE}},
                "pool",
            ],
        },
    }
    answer = refused(server.request("POST", JOBS, body))
    assert answer.error["details"][0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    expected = {
        "display_name",
        "colour",
        "labels.Team",
        "labels.ok",
        "job_spec.shape",
        "job_spec.enable_web_access",
        "job_spec.scheduling.timeout",
        "job_spec.scheduling.strategy",
        "job_spec.scheduling.patience",
        f"{POOLS}[0].machine_spec.machine_type",
        f"{POOLS}[0].replica_count",
        f"{POOLS}[1].replica_count",
        f"{POOLS}[2].replica_count",
        f"{POOLS}[3].replica_count",
        f"{POOLS}[3].size",
        f"{POOLS}[4].container_spec.env",
        f"{POOLS}[5].machine_spec.accelerator_type",
        f"{POOLS}[5].container_spec.image_uri",
        f"{POOLS}[7].machine_spec.machine_type",
        f"{POOLS}[8]",
    }
    assert expected <= set(answer.violations), expected - set(answer.violations)
    beyond = set(answer.violations) - expected
    assert all(field.startswith(f"{POOLS}[6]") for field in beyond), beyond
    assert beyond, "a pool without a program is told too"
    assert all(answer.violations.values())


def test_eleven_pools_are_one_too_many(server: LiveServer) -> None:
    answer = refused(server.request("POST", JOBS, job_with([pool(["true"])] * 11)))
    assert list(answer.violations) == [POOLS]
    assert "10" in answer.violations[POOLS]
    assert "11" in answer.violations[POOLS]


@pytest.mark.parametrize("count", [0, -1, "0", "-1", 1001, "1001", 2**70, 1.5, True, "many", [], {}])
def test_a_count_that_cannot_be_is_refused(server: LiveServer, count: object) -> None:
    answer = refused(server.request("POST", JOBS, job_with([{**pool(["true"]), "replicaCount": count}])))
    assert list(answer.violations) == [f"{POOLS}[0].replica_count"]


@pytest.mark.parametrize("count", [2, "2", 2.0])
def test_a_count_may_be_a_number_or_a_text(server: LiveServer, count: object) -> None:
    answer = server.request("POST", JOBS, job_with([{**pool(["true"]), "replicaCount": count}]))
    assert answer.status == 200
    assert answer.json["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "2"


def test_a_hundred_variables_are_fine_and_one_more_is_not(server: LiveServer) -> None:
    many = {f"V{i}": str(i) for i in range(100)}
    assert server.request("POST", JOBS, job_with([pool(["true"], env=many)])).status == 200
    answer = refused(server.request("POST", JOBS, job_with([pool(["true"], env=many | {"ONE": "1"})])))
    assert list(answer.violations) == [f"{POOLS}[0].container_spec.env"]
    assert "100" in answer.violations[f"{POOLS}[0].container_spec.env"]


def test_an_unknown_machine_is_refused_with_what_is_near(server: LiveServer) -> None:
    answer = refused(server.request("POST", JOBS, job_with([pool(["true"], machine="n1-standart-4")])))
    assert "n1-standart-4" in answer.error["message"]
    assert "n1-standard-4" in answer.error["message"]


def test_a_foreign_image_is_refused_with_what_would_run_it(server: LiveServer) -> None:
    body = job_with([pool(["true"])])
    body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["imageUri"] = "example.org/own/trainer:7"
    answer = refused(server.request("POST", JOBS, body))
    sentence = answer.violations[f"{POOLS}[0].container_spec.image_uri"]
    assert "example.org/own/trainer:7" in sentence
    assert IMAGE in sentence


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"displayName": "x"},
        {"displayName": "x", "jobSpec": {}},
        {"displayName": "x", "jobSpec": {"workerPoolSpecs": []}},
        {"displayName": "x", "jobSpec": {"workerPoolSpecs": [{}, {}]}},
        {"displayName": "x", "jobSpec": []},
        {"displayName": "x", "jobSpec": {"workerPoolSpecs": {}}},
        {"displayName": "x", "jobSpec": {"workerPoolSpecs": [[]]}},
        {"displayName": "x" * 129, "jobSpec": GOOD["jobSpec"]},
        {"displayName": "", "jobSpec": GOOD["jobSpec"]},
        {"displayName": "a\0b", "jobSpec": GOOD["jobSpec"]},
        {"displayName": "\ud800", "jobSpec": GOOD["jobSpec"]},
        {"displayName": "x", "jobSpec": GOOD["jobSpec"], "labels": {"a": "b" * 64}},
        {"displayName": "x", "jobSpec": GOOD["jobSpec"], "labels": {f"k{i}": "v" for i in range(65)}},
        {"displayName": "x", "jobSpec": GOOD["jobSpec"], "labels": "team"},
        {"displayName": "x", "jobSpec": {**GOOD["jobSpec"], "scheduling": {"timeout": 3600}}},
        {"displayName": "x", "jobSpec": {**GOOD["jobSpec"], "scheduling": {"timeout": "-1s"}}},
        {"displayName": "x", "jobSpec": {**GOOD["jobSpec"], "baseOutputDirectory": "gs://b"}},
        {"displayName": "x", "jobSpec": {"job_spec": {"workerPoolSpecs": 1}}},
    ],
)
def test_a_body_that_cannot_be_a_job_is_refused_with_violations(
    server: LiveServer, body: dict[str, Any]
) -> None:
    answer = refused(server.request("POST", JOBS, body))
    assert answer.violations


# ---- bodies that are not even that


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"not json",
        b"[]",
        b'"text"',
        b"3",
        b"null",
        b"true",
        b"\xff\xfe\x00",
        b"{}{}",
        b'{"displayName": NaN}',
        b'{"displayName": 1e999}',
        b'{"displayName": ' + b"9" * 5000 + b"}",
        b'{"displayName":"a","displayName":"b"}',
        b"[" * 100_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"jobSpec":' * 900 + b"1" + b"}" * 900,
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda body: repr(body[:20]),
)
@pytest.mark.parametrize("path", [JOBS, "/v2/entries:list"])
def test_a_body_that_is_no_good_json_object_is_a_400(server: LiveServer, path: str, body: bytes) -> None:
    refused(server.request("POST", path, body))


def test_a_huge_body_is_refused_and_not_kept(server: LiveServer) -> None:
    body = b'{"displayName": "' + b"x" * (20 * 1024 * 1024) + b'"}'
    try:
        answer = server.request("POST", JOBS, body)
    except (ConnectionError, http.client.HTTPException):
        pass  # it may hang up on us rather than read to the end
    else:
        refused(answer)
    assert server.request("GET", "/healthz").status == 200


def test_a_deep_but_valid_value_does_not_break_anything(server: LiveServer) -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = {"a": deep}
    answer = refused(server.request("POST", JOBS, {**GOOD, "labels": {"deep": deep}}))
    assert "labels.deep" in answer.violations


def test_a_thousand_unknown_fields_do_not_make_an_endless_answer(server: LiveServer) -> None:
    body = {**GOOD, **{f"unknown{i}": i for i in range(50_000)}}
    answer = refused(server.request("POST", JOBS, body))
    assert len(answer.violations) >= 100
    assert len(answer.body) < 1_000_000
    assert len(answer.error["message"]) < 2000


# ---- names and paths


@pytest.mark.parametrize(
    "job", ["1:2", "a:b", ":", "1:cancel:cancel", "1:frobnicate", "%00", "%2F", "..", " "]
)
@pytest.mark.parametrize("verb", ["GET", "DELETE", "POST"])
def test_an_id_that_cannot_be_is_not_found(server: LiveServer, verb: str, job: str) -> None:
    path = f"{JOBS}/{job if job.startswith('%') else quote(job, safe=':')}"
    answer = server.request(verb, path, {} if verb == "POST" else None)
    assert answer.status in (400, 404), answer.body
    assert answer.error["status"] in ("INVALID_ARGUMENT", "NOT_FOUND")


@pytest.mark.parametrize(
    "verb_path",
    [
        ("POST", "/"),
        ("GET", "/v1"),
        ("GET", "/v3/projects/p1/locations/us-central1/customJobs"),
        ("PUT", JOBS),
        ("PATCH", f"{JOBS}/1"),
        ("POST", f"{JOBS}/1:explode"),
        ("GET", f"{PARENT}/batchPredictionJobs"),
        ("DELETE", "/v2/entries:list"),
        ("GET", "/v2/entries:list"),
        ("OPTIONS", JOBS),
        ("PROPFIND", JOBS),
        ("GET", f"{JOBS}/"),
        ("GET", "//v1//projects"),
        ("GET", "/%ff%fe"),
        ("GET", "/" + "a" * 20_000),
    ],
    ids=str,
)
def test_an_unknown_method_is_a_404_in_json(server: LiveServer, verb_path: tuple[str, str]) -> None:
    answer = server.request(*verb_path)
    assert 400 <= answer.status < 500, answer.status
    if len(verb_path[1]) < 1000:  # the HTTP parser itself may refuse an endless line
        refused(answer, 404, "NOT_FOUND")


def test_a_job_of_another_project_or_place_is_not_found(server: LiveServer, unique: Unique) -> None:
    name = server.submit(["true"], name=unique("mine"))
    job = name.rsplit("/", 1)[1]
    for elsewhere in (
        f"/v1/projects/other/locations/us-central1/customJobs/{job}",
        f"/v1/projects/{PROJECT}/locations/europe-west4/customJobs/{job}",
    ):
        refused(server.request("GET", elsewhere), 404, "NOT_FOUND")
        refused(server.request("DELETE", elsewhere), 404, "NOT_FOUND")
        refused(server.request("POST", f"{elsewhere}:cancel", {}), 404, "NOT_FOUND")


def test_an_operation_nobody_made_is_not_found(server: LiveServer) -> None:
    for root in ("/v1", "/v1beta1", "/ui"):
        path = f"{root}/projects/{PROJECT}/locations/us-central1/operations/77"
        refused(server.request("GET", path), 404, "NOT_FOUND")


# ---- what a job's state forbids


def test_deleting_a_running_job_names_its_state(server: LiveServer, unique: Unique) -> None:
    name = server.submit(python("import time; time.sleep(600)"), name=unique("busy"))
    server.wait_for(name, ("JOB_STATE_RUNNING",))
    answer = refused(server.request("DELETE", f"/v1/{name}"), 400, "FAILED_PRECONDITION")
    assert "RUNNING" in answer.error["message"]
    server.cancel(name)


def test_cancelling_an_ended_job_names_its_state(server: LiveServer, unique: Unique) -> None:
    name = server.submit(["true"], name=unique("over"))
    server.wait(name)
    answer = refused(server.request("POST", f"/v1/{name}:cancel", {}), 400, "FAILED_PRECONDITION")
    assert "SUCCEEDED" in answer.error["message"]


def test_cancelling_twice_is_once(server: LiveServer, unique: Unique) -> None:
    source = "import signal, time; signal.signal(15, lambda *a: None); print('up'); time.sleep(600)"
    name = server.submit(python(source), name=unique("twice"), spec={"scheduling": {"gracePeriod": "2s"}})
    server.wait_for(name, ("JOB_STATE_RUNNING",))
    for _ in range(3):
        assert server.request("POST", f"/v1/{name}:cancel", {}).status == 200
    assert server.wait(name)["state"] == "JOB_STATE_CANCELLED"


def test_delete_answers_with_an_operation_that_is_done(server: LiveServer, unique: Unique) -> None:
    name = server.submit(["true"], name=unique("gone"))
    server.wait(name)
    answer = server.request("DELETE", f"/v1/{name}")
    assert answer.status == 200
    operation = answer.json
    assert operation["done"] is True
    assert operation["response"] == {"@type": "type.googleapis.com/google.protobuf.Empty"}
    for root in ("/v1", "/v1beta1", "/ui"):
        assert server.get(f"{root}/{operation['name']}") == operation
    refused(server.request("GET", f"/v1/{name}"), 404, "NOT_FOUND")
    refused(server.request("DELETE", f"/v1/{name}"), 404, "NOT_FOUND")
    job = name.rsplit("/", 1)[1]
    assert server.entries(f'resource.labels.job_id="{job}"') == []

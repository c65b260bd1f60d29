"""Persistent resources over HTTP, as gcloud and the SDK ask for them, on a live server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.gcloud_model import headers
from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.live import IMAGE, JOBS, PARENT, PROJECT, Answer, LiveServer, pool, python, until
from tests.shared_server import forget_jobs
from tests.studies.tuning import TUNING, a_tuning_job, wait_study

RESOURCES = f"{PARENT}/persistentResources"
MACHINE = "n1-standard-4"
SLEEP = python("import time; time.sleep(600)")
SIZE = ("--cpus", "16", "--memory", "64GiB")


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    """Four machines of n1-standard-4 fit in it."""
    with LiveServer(*SIZE) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(autouse=True)
def clean(server: LiveServer) -> Iterator[None]:
    yield
    forget_jobs(server)
    for resource in server.get(RESOURCES).get("persistentResources", []):
        assert server.request("DELETE", f"/v1/{resource['name']}").status == 200


def a_body(count: int = 2, **changes: Any) -> dict[str, Any]:
    machines = {"machineSpec": {"machineType": MACHINE}, "replicaCount": str(count)}
    return {"displayName": "kept", "resourcePools": [machines], **changes}


def create(server: LiveServer, id: str, body: object = None, track: str = "v1") -> Answer:
    """As gcloud ai persistent-resources create does."""
    path = f"{RESOURCES.replace('v1', track, 1)}?alt=json&persistentResourceId={id}"
    sent = headers("ai.persistent-resources.create")
    return server.request("POST", path, body or a_body(), headers=sent)


def made(server: LiveServer, id: str, body: object = None) -> Any:
    answer = create(server, id, body)
    assert answer.status == 200, answer.body
    return answer.json


def submit(server: LiveServer, resource: str = "", name: str = "job") -> str:
    return server.submit(SLEEP, name=name, spec={"persistentResourceId": resource} if resource else {})


def running(server: LiveServer, resource: str = "", count: int = 1) -> list[str]:
    jobs = [submit(server, resource) for _ in range(count)]
    for job in jobs:
        server.wait_for(job, ("JOB_STATE_RUNNING",))
    return jobs


def waits(server: LiveServer, job: str) -> str:
    """The sentence that says why."""

    def sentence() -> str:
        waiting = server.get(f"/v1/{job}:status").get("waiting", {})
        return waiting["message"] if waiting.get("reason") == "WAITS_FOR_SHARE" else ""

    return until(sentence)


@pytest.mark.parametrize("track", ["v1", "v1beta1"])
def test_a_resource_is_made_listed_described_and_deleted(server: LiveServer, track: str) -> None:
    body = a_body(labels={"team": "vision"})
    body["resourcePools"][0]["id"] = "head"
    created = create(server, "team", body, track)
    assert created.status == 200, created.body
    assert created.json["done"] is True
    kinds = f"type.googleapis.com/google.cloud.aiplatform.{track}"
    assert created.json["metadata"]["@type"] == f"{kinds}.CreatePersistentResourceOperationMetadata"
    assert created.json["response"]["@type"] == f"{kinds}.PersistentResource"
    [listed] = server.get(RESOURCES, pageSize=100)["persistentResources"]
    described = server.get(f"{RESOURCES}/team")
    assert listed == described
    assert described["name"] == f"{RESOURCES.removeprefix('/v1/')}/team"
    assert (described["state"], described["displayName"]) == ("RUNNING", "kept")
    assert described["labels"] == {"team": "vision"}
    assert described["resourcePools"] == [
        {"id": "head", "machineSpec": {"machineType": MACHINE}, "replicaCount": "2"}
    ]
    assert described["createTime"] <= described["startTime"]
    deleted = server.request("DELETE", f"{RESOURCES}/team")
    assert deleted.json["done"] is True
    assert server.get(f"/v1/{deleted.json['name']}")["done"] is True
    assert server.request("GET", f"{RESOURCES}/team").status == 404
    assert server.get(f"/ui/{created.json['name']}")["error"]["code"] == 5


def test_resources_come_in_pages_newest_first(server: LiveServer) -> None:
    ids = ["one", "two", "three"]
    for id in ids:
        made(server, id, a_body(1))
    first = server.get(RESOURCES, pageSize=2)
    assert server.request("DELETE", f"{RESOURCES}/two").status == 200
    rest = server.get(RESOURCES, pageSize=2, pageToken=first["nextPageToken"])
    names = [
        [row["name"].rpartition("/")[2] for row in page["persistentResources"]] for page in (first, rest)
    ]
    assert names == [["three", "two"], ["one"]]
    assert "nextPageToken" not in rest
    assert len(server.get(RESOURCES)["persistentResources"]) == 2
    for query in ("pageSize=-3", "pageSize=many", "pageToken=nonsense"):
        answer = server.request("GET", f"{RESOURCES}?{query}")
        assert (answer.status, answer.error["status"]) == (400, "INVALID_ARGUMENT"), query


def test_parameters_may_be_written_as_a_refusal_names_them(server: LiveServer) -> None:
    assert set(create(server, "Team_").violations) == {"persistent_resource_id"}
    answer = server.request("POST", f"{RESOURCES}?persistent_resource_id=team", a_body(1))
    assert answer.status == 200, answer.body
    made(server, "more", a_body(1))
    page = server.get(RESOURCES, page_size=1)
    assert len(page["persistentResources"]) == 1
    rest = server.get(RESOURCES, page_size=1, page_token=page["nextPageToken"])
    assert rest["persistentResources"][0]["name"].endswith("/team")


def test_no_job_from_outside_gets_its_machines_and_its_own_do_at_once(server: LiveServer) -> None:
    made(server, "team")
    running(server, count=2)
    outside = submit(server, name="outside")
    assert "kept by their shares" in waits(server, outside)
    running(server, "team", count=2)
    third = submit(server, "team", "third")
    assert "persistentResources/team" in waits(server, third)
    assert server.state(outside) == "JOB_STATE_QUEUED"


def test_what_it_had_is_for_everybody_when_it_is_deleted(server: LiveServer) -> None:
    made(server, "team", a_body(4))
    job = submit(server)
    waits(server, job)
    assert server.request("DELETE", f"{RESOURCES}/team").status == 200
    server.wait_for(job, ("JOB_STATE_RUNNING",))


def test_it_is_provisioning_until_running_jobs_leave_its_machines(server: LiveServer) -> None:
    others = running(server, count=3)
    operation = made(server, "team")
    assert "done" not in operation
    assert operation["metadata"]["progressMessage"] == "It waits until running jobs leave its machines."
    assert server.get(f"{RESOURCES}/team")["state"] == "PROVISIONING"
    running(server, "team")
    server.cancel(others[0])
    done = until(lambda: (at := server.get(f"/ui/{operation['name']}")).get("done") and at)
    assert done["response"]["state"] == "RUNNING"
    assert [server.state(job) for job in others[1:]] == ["JOB_STATE_RUNNING"] * 2, "nobody was stopped"


def test_a_spot_job_uses_what_is_idle_and_gives_way(server: LiveServer) -> None:
    made(server, "team", a_body(4))
    spot = server.submit(SLEEP, name="spot", spec={"scheduling": {"strategy": "SPOT"}})
    server.wait_for(spot, ("JOB_STATE_RUNNING",))
    running(server, "team", count=4)
    assert server.state(spot) == "JOB_STATE_QUEUED"


def test_a_resource_with_jobs_is_not_deleted_and_they_are_named(server: LiveServer) -> None:
    made(server, "team")
    [job] = running(server, "team")
    refused = server.request("DELETE", f"{RESOURCES}/team")
    assert (refused.status, refused.error["status"]) == (400, "FAILED_PRECONDITION")
    assert job.rsplit("/", 1)[1] in refused.error["message"]
    assert "Cancel them" in refused.error["message"]


def test_every_violation_of_a_request_is_told_at_once(server: LiveServer) -> None:
    body = {
        "resourcePools": [
            {"machineSpec": {"machineType": "n9"}},
            {"machineSpec": {"machineType": MACHINE}, "replicaCount": 0},
            {
                "machineSpec": {"machineType": MACHINE},
                "autoscalingSpec": {"minReplicaCount": 2, "maxReplicaCount": 1},
            },
        ],
        "resourceRuntimeSpec": {"raySpec": {}},
    }
    refused = create(server, "Team_", body)
    assert (refused.status, refused.error["status"]) == (400, "INVALID_ARGUMENT")
    assert set(refused.violations) == {
        "persistent_resource_id",
        "resource_pools[0].machine_spec.machine_type",
        "resource_pools[0].replica_count",
        "resource_pools[1].replica_count",
        "resource_pools[2].autoscaling_spec.max_replica_count",
        "resource_runtime_spec.ray_spec",
    }
    assert set(create(server, "team", {"displayName": "x"}).violations) == {"resource_pools"}


def test_more_than_the_machines_have_is_429_with_what_can_be_reserved(server: LiveServer) -> None:
    made(server, "team", a_body(3))
    refused = create(server, "more", a_body(2))
    assert (refused.status, refused.error["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert "custom_model_training_cpus" in refused.error["message"]
    assert "asks for 8 CPUs" in refused.error["message"]
    assert "of the machines at most 4 CPUs" in refused.error["message"]
    assert create(server, "team").status == 409, "a name is taken once"


def test_a_job_that_names_one_that_is_not_there_is_refused(server: LiveServer) -> None:
    spec = {"workerPoolSpecs": [pool(SLEEP)], "persistentResourceId": "none"}
    for path, part, body in (
        (JOBS, "job_spec", {"displayName": "x", "jobSpec": spec}),
        (TUNING, "trial_job_spec", a_tuning_job(trialJobSpec=spec)),
    ):
        refused = server.request("POST", path, body)
        assert refused.status == 400, refused.body
        assert "persistentResources/none" in refused.violations[f"{part}.persistent_resource_id"]


def test_a_job_larger_than_the_resource_or_of_spot_is_refused(server: LiveServer) -> None:
    made(server, "team", a_body(1))
    spec = {"workerPoolSpecs": [pool(SLEEP, machine="n1-standard-8")], "persistentResourceId": "team"}
    large = server.request("POST", JOBS, {"displayName": "x", "jobSpec": spec})
    assert large.status == 429, large.body
    assert "persistentResources/team' may have 4 CPUs" in large.error["message"]
    spec = {"workerPoolSpecs": [pool(SLEEP)], "persistentResourceId": "team"}
    spot = server.request(
        "POST", JOBS, {"displayName": "x", "jobSpec": {**spec, "scheduling": {"strategy": "SPOT"}}}
    )
    assert set(spot.violations) == {"job_spec.scheduling.strategy"}


def test_the_trials_of_a_study_run_in_it(server: LiveServer) -> None:
    made(server, "team", a_body(1))
    running(server, count=3)
    spec = {"workerPoolSpecs": [pool(SLEEP)], "persistentResourceId": "team"}
    study = server.post(TUNING, a_tuning_job(trials=2, parallel=2, trialJobSpec=spec))["name"]
    inside = f"{JOBS}?filter=state%3D%22JOB_STATE_RUNNING%22"
    until(lambda: len(server.get(inside).get("customJobs", [])) == 4)
    refused = server.request("DELETE", f"{RESOURCES}/team")
    assert refused.error["status"] == "FAILED_PRECONDITION", refused.body
    assert f"study {study.rpartition('/')[2]} (tune)" in refused.error["message"]
    server.post(f"/v1/{study}:cancel")
    wait_study(server, study)


def test_shares_that_leave_less_than_is_reserved_are_refused(server: LiveServer) -> None:
    made(server, "team", a_body(1))

    def set_shares(cpus: int) -> Answer:
        share = {"projects": [PROJECT], "nominal": {"cpus": cpus}, "borrow": {"cpus": 16}}
        return server.request("PUT", "/v1/shares", {"share": {"a": share}})

    refused = set_shares(1)
    assert refused.status == 400, refused.body
    sentence = refused.violations["share.a.nominal.cpus"]
    assert "1 CPU" in sentence and "Make it at least 4 CPUs" in sentence
    assert "a" not in [row["name"] for row in server.get("/v1/shares")["shares"]]
    assert set_shares(4).status == 200
    running(server, "team")
    assert server.request("PUT", "/v1/shares", {}).status == 200


def test_quotas_of_others_are_less_by_what_is_reserved(server: LiveServer) -> None:
    made(server, "team")
    quotas = {row["metric"]: row["limit"] for row in server.get(f"{PARENT}/quotas")["quotas"]}
    assert quotas["cpus"] == 8


def test_a_resource_outlives_the_server(server: LiveServer) -> None:
    made(server, "team")
    before = server.get(f"{RESOURCES}/team")
    [job] = running(server, "team")
    server.kill()
    server.start()
    assert server.get(f"{RESOURCES}/team") == before
    running(server, count=2)
    waits(server, submit(server))
    assert server.state(job) == "JOB_STATE_RUNNING"


def test_below_a_share_no_more_is_reserved_than_its_nominal_amount(tmp_path: Path) -> None:
    shares = tmp_path / "shares.toml"
    shares.write_text(f'[share.small]\nprojects = ["{PROJECT}"]\nnominal = {{ cpus = 8 }}\n')
    with LiveServer(*SIZE, "--shares", str(shares)) as own:
        refused = create(own, "team", a_body(3))
        assert refused.status == 429
        assert "of share 'small' at most 8 CPUs can be reserved" in refused.error["message"]
        assert made(own, "team", a_body(2))["done"] is True


# ---- the real SDK

needs_sdk = pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk")
SDK_POOLS = [{"machine_spec": {"machine_type": MACHINE}, "replica_count": 2}]
SDK_JOB = {
    "machine_spec": {"machine_type": MACHINE},
    "replica_count": 1,
    "container_spec": {"image_uri": IMAGE, "command": SLEEP, "args": []},
}


@pytest.mark.needs_sdk
@pytest.mark.slow
@needs_sdk
@pytest.mark.parametrize("beta", [False, True])
def test_the_sdk_makes_one_runs_a_job_in_it_and_deletes_it(server: LiveServer, sdk: Sdk, beta: bool) -> None:
    created = sdk("resources.create", server, id="team", pools=SDK_POOLS, beta=beta)
    assert created == {
        "name": f"{RESOURCES.removeprefix('/v1/')}/team",
        "display_name": "kept",
        "state": "RUNNING",
        "started": True,
    }
    assert sdk("resources.find", server) == [created]
    job = sdk("resources.submit", server, id="team", name="inside", pools=[SDK_JOB])
    server.wait_for(job, ("JOB_STATE_RUNNING",))
    assert server.job(job)["jobSpec"]["persistentResourceId"] == "team"
    with pytest.raises(SdkError, match="not over"):
        sdk("resources.delete", server, id="team")
    server.cancel(job)
    server.wait(job)
    sdk("resources.delete", server, id="team")
    assert sdk("resources.find", server) == []


# ---- the commands


def test_the_commands_make_list_describe_and_delete_one(server: LiveServer) -> None:
    group = ("ai", "persistent-resources")
    spec = f"--resource-pool-spec=machine-type={MACHINE},min-replica-count=1,max-replica-count=3"
    done = server.cli(*group, "create", "--persistent-resource-id=team", spec, "--labels=team=vision")
    assert done.returncode == 0, done.stderr
    assert "is submitted successfully" in done.stderr
    [listed] = json.loads(server.cli(*group, "list", "--format=json").stdout)
    described = json.loads(server.cli(*group, "describe", "team", "--format=json").stdout)
    assert listed == described
    [machines] = described["resourcePools"]
    assert machines["replicaCount"] == "1"
    assert machines["autoscalingSpec"] == {"minReplicaCount": "1", "maxReplicaCount": "3"}
    again = server.cli(*group, "create", "--persistent-resource-id=team", spec)
    assert again.returncode == 1
    assert "conflict" in again.stderr
    running(server, "team")
    refused = server.cli(*group, "delete", "team")
    assert refused.returncode == 1
    assert "FAILED_PRECONDITION" in refused.stderr
    forget_jobs(server)
    assert server.cli(*group, "delete", described["name"]).returncode == 0
    assert server.cli(*group, "list").stderr.endswith("Listed 0 items.\n")


@pytest.mark.parametrize("text", ["replica-count=1", "machine-type=n1-standard-4,size=2"])
def test_a_pool_spec_with_a_wrong_key_is_told_before_anything_is_sent(server: LiveServer, text: str) -> None:
    words = ("ai", "persistent-resources", "create", "--persistent-resource-id=x")
    done = server.cli(*words, f"--resource-pool-spec={text}")
    assert done.returncode == 2
    assert "--resource-pool-spec" in done.stderr

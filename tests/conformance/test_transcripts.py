"""What the real gcloud was recorded to send, sent again with plain HTTP: runs where gcloud is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.gcloud_model import Gcloud, printed_environment
from tests.live import IMAGE, LOCATION, PROJECT, LiveServer

TRACKS = ("ga", "beta", "alpha")
Unique = Callable[[str], str]


def inline(*words: str, **more: Any) -> dict[str, Any]:
    """`--worker-pool-spec=machine-type=…,container-image-uri=…`: the count is a string, as int64 is."""
    container: dict[str, Any] = {"imageUri": IMAGE}
    if words:
        container["command"] = list(words)
    return {
        "containerSpec": container,
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        **more,
    }


HELLO = inline("python", "-c", "print('hello')")


@pytest.fixture(params=TRACKS)
def gcloud(request: pytest.FixtureRequest, server: LiveServer) -> Gcloud:
    return Gcloud(server, request.param)


def test_create_describe_and_list_work_in_every_track(gcloud: Gcloud, unique: Unique) -> None:
    name = unique("simple")
    created = gcloud.create({"displayName": name, "jobSpec": {"workerPoolSpecs": [HELLO]}})
    assert created.status == 200, created.body
    full = created.json["name"]
    assert full.startswith(f"projects/{PROJECT}/locations/{LOCATION}/customJobs/")
    assert full.rsplit("/", 1)[1].isdigit(), "gcloud and the logs know a custom job by a number"

    described = gcloud.describe(full)
    assert described.status == 200
    assert described.json["displayName"] == name
    assert described.json["jobSpec"]["workerPoolSpecs"][0]["replicaCount"] == "1"

    listed = gcloud.list()
    assert listed.status == 200
    assert full in [job["name"] for job in listed.json["customJobs"]]
    assert gcloud.server.wait(full)["state"] == "JOB_STATE_SUCCEEDED"


def test_the_tracks_show_each_other_s_jobs(server: LiveServer, unique: Unique) -> None:
    full = (
        Gcloud(server, "beta")
        .create({"displayName": unique("b"), "jobSpec": {"workerPoolSpecs": [HELLO]}})
        .json["name"]
    )
    assert Gcloud(server, "ga").describe(full).json["name"] == full


def test_list_pages_as_gcloud_does_until_there_is_no_token(server: LiveServer, unique: Unique) -> None:
    name = unique("many")
    wanted = {server.submit(["python", "-c", "pass"], name=name) for _ in range(5)}
    gcloud, seen, token = Gcloud(server), list[str](), ""
    while True:
        page = gcloud.list(token)
        assert page.status == 200
        seen += [job["name"] for job in page.json.get("customJobs", []) if job["displayName"] == name]
        token = page.json.get("nextPageToken", "")
        if not token:
            break
    assert sorted(seen) == sorted(wanted)


def test_a_list_of_nothing_has_no_jobs_and_no_token(server: LiveServer) -> None:
    answer = server.request("GET", "/v1/projects/empty-one/locations/us-central1/customJobs?alt=json")
    assert (answer.status, answer.json) == (200, {})


def test_cancel_answers_with_an_empty_object(gcloud: Gcloud, unique: Unique) -> None:
    pool = inline("python", "-c", "import time; time.sleep(600)")
    full = gcloud.create({"displayName": unique("c"), "jobSpec": {"workerPoolSpecs": [pool]}}).json["name"]
    cancelled = gcloud.cancel(full)
    assert (cancelled.status, cancelled.json) == (200, {})
    assert gcloud.server.wait(full)["state"] == "JOB_STATE_CANCELLED"

    again = gcloud.cancel(full)
    assert again.status == 400
    assert again.error["status"] == "FAILED_PRECONDITION"
    assert "CANCELLED" in again.error["message"]


def test_every_flag_of_create_is_understood(server: LiveServer, unique: Unique) -> None:
    """--args --command --labels --enable-web-access --network --service-account --kms-key, and the rest."""
    name = unique("flags")
    body = {
        "displayName": name,
        "encryptionSpec": {"kmsKeyName": "projects/p1/locations/us-central1/keyRings/r/cryptoKeys/k"},
        "jobSpec": {
            "enableWebAccess": True,
            "enableDashboardAccess": True,
            "network": "projects/12345/global/networks/default",
            "serviceAccount": "trainer@p1.iam.gserviceaccount.com",
            "workerPoolSpecs": [
                {
                    "containerSpec": {
                        "args": ["-c", "echo a,b $0 $1", "x", "y"],
                        "command": ["sh"],
                        "imageUri": IMAGE,
                    },
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": "1",
                }
            ],
        },
        "labels": {"team": "vision", "cost-centre": "42"},
    }
    created = Gcloud(server).create(body)
    assert created.status == 200, created.body
    job = server.wait(created.json["name"])
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert job["labels"] == body["labels"]
    assert job["encryptionSpec"] == body["encryptionSpec"]
    for flag in (
        "enableWebAccess",
        "enableDashboardAccess",
        "network",
        "serviceAccount",
    ):
        assert job["jobSpec"][flag] == body["jobSpec"][flag], flag
    assert (
        job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
        == (body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"])
    )
    assert [line["text"] for line in server.lines(job["name"])] == ["a,b x y"]


def test_several_pools_and_an_empty_one_keep_their_places(server: LiveServer, unique: Unique) -> None:
    source = "import os, json; print(json.loads(os.environ['CLUSTER_SPEC'])['task'])"
    worker = inline("python", "-c", source)
    body = {
        "displayName": unique("pools"),
        "jobSpec": {"workerPoolSpecs": [worker, {**worker, "replicaCount": "2"}, {}, worker]},
    }
    created = Gcloud(server).create(body)
    assert created.status == 200, created.body
    job = server.wait(created.json["name"])
    assert job["state"] == "JOB_STATE_SUCCEEDED", job
    assert job["jobSpec"]["workerPoolSpecs"][2] == {}, "an empty pool is told as it was said"
    assert sorted(line["task"] for line in server.lines(job["name"])) == [
        "workerpool0-0",
        "workerpool1-0",
        "workerpool1-1",
        "workerpool3-0",
    ]


def test_accelerators_and_disks_come_back_as_they_were_sent(server: LiveServer, unique: Unique) -> None:
    pool = inline(
        "python",
        "-c",
        "import time; time.sleep(600)",
        machineSpec={
            "acceleratorCount": 1,
            "acceleratorType": "NVIDIA_TESLA_T4",
            "machineType": "n1-standard-4",
        },
        diskSpec={"bootDiskSizeGb": 200, "bootDiskType": "pd-ssd"},
    )
    created = Gcloud(server).create({"displayName": unique("gpu"), "jobSpec": {"workerPoolSpecs": [pool]}})
    assert created.status == 200, created.body
    told = created.json["jobSpec"]["workerPoolSpecs"][0]
    assert told["machineSpec"] == pool["machineSpec"]
    assert told["diskSpec"] == pool["diskSpec"]
    server.cancel(created.json["name"])


def test_a_config_file_s_scheduling_comes_back_in_google_s_words(server: LiveServer, unique: Unique) -> None:
    scheduling = {
        "maxWaitDuration": "600s",
        "restartJobOnWorkerRestart": True,
        "strategy": "SPOT",
        "timeout": "3600s",
    }
    spec = {
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out"},
        "scheduling": scheduling,
        "workerPoolSpecs": [HELLO],
    }
    created = Gcloud(server).create({"displayName": unique("file"), "jobSpec": spec})
    assert created.status == 200, created.body
    assert created.json["jobSpec"]["scheduling"] == scheduling
    assert created.json["jobSpec"]["baseOutputDirectory"] == spec["baseOutputDirectory"]


def test_disabled_retries_override_the_restart_of_the_gang(server: LiveServer, unique: Unique) -> None:
    """As Google documents the field: the other one is then false."""
    spec = {
        "scheduling": {"disableRetries": True, "restartJobOnWorkerRestart": True},
        "workerPoolSpecs": [HELLO],
    }
    created = Gcloud(server).create({"displayName": unique("once"), "jobSpec": spec})
    assert created.status == 200, created.body
    assert created.json["jobSpec"]["scheduling"]["disableRetries"] is True
    assert not created.json["jobSpec"]["scheduling"].get("restartJobOnWorkerRestart")


def test_the_seed_s_wrapped_file_is_understood(server: LiveServer, unique: Unique) -> None:
    """gcloud sends seed 004's job.yaml, given with --display-name, as jobSpec.jobSpec, numbers as numbers."""
    name = unique("wrapped")
    inner = {
        "machineSpec": {"machineType": "n1-standard-8"},
        "replicaCount": 1,
        "containerSpec": HELLO["containerSpec"],
    }
    body = {
        "displayName": name,
        "jobSpec": {"displayName": "from-the-file", "jobSpec": {"workerPoolSpecs": [inner]}},
    }
    created = Gcloud(server).create(body)
    assert created.status == 200, created.body
    assert created.json["displayName"] == name, "what was said outside wins"
    assert created.json["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["machineType"] == "n1-standard-8"
    assert server.wait(created.json["name"])["state"] == "JOB_STATE_SUCCEEDED"


def test_a_reduction_server_inside_a_pool_becomes_pool_two(server: LiveServer, unique: Unique) -> None:
    reducer = {
        "replicaCount": 2,
        "machineSpec": {"machineType": "n1-highcpu-16"},
        "containerSpec": {"imageUri": IMAGE, "command": ["python", "-c", "pass"]},
    }
    body = {
        "displayName": unique("reduce"),
        "jobSpec": {"workerPoolSpecs": [{**HELLO, "reductionServerSpec": reducer}]},
    }
    created = Gcloud(server).create(body)
    assert created.status == 200, created.body
    pools = created.json["jobSpec"]["workerPoolSpecs"]
    assert len(pools) == 3
    assert pools[1] == {}
    assert pools[2]["machineSpec"]["machineType"] == "n1-highcpu-16"
    assert pools[2]["replicaCount"] == "2"


def test_an_error_has_what_gcloud_renders(server: LiveServer) -> None:
    """`ERROR: (gcloud.ai.custom-jobs.create) INVALID_ARGUMENT: <message>` and the details as YAML."""
    pool = inline("true", machineSpec={"machineType": "n1-standrad-4"}, replicaCount="-1")
    answer = Gcloud(server).create({"displayName": "x", "jobSpec": {"workerPoolSpecs": [pool], "bogus": 1}})
    assert answer.status == 400
    error = answer.error
    assert error["code"] == 400
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["message"]
    assert error["details"][0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert set(answer.violations) == {
        "job_spec.bogus",
        "job_spec.worker_pool_specs[0].machine_spec.machine_type",
        "job_spec.worker_pool_specs[0].replica_count",
    }
    assert (
        answer.violations["job_spec.bogus"] == "Invalid JSON payload received. Unknown name "
        "\"bogus\" at 'custom_job.job_spec': Cannot find field."
    )
    assert "n1-standard-4" in answer.violations["job_spec.worker_pool_specs[0].machine_spec.machine_type"]


def test_a_job_that_is_not_there_is_a_404_in_google_s_form(gcloud: Gcloud) -> None:
    missing = f"projects/{PROJECT}/locations/{LOCATION}/customJobs/404"
    for answer in (gcloud.describe(missing), gcloud.cancel(missing)):
        assert answer.status == 404
        assert answer.error["status"] == "NOT_FOUND"
        assert "404" in answer.error["message"]


def test_a_wrong_token_is_401_and_none_is_403(server: LiveServer) -> None:
    wrong = server.request("GET", f"/v1/projects/{PROJECT}/locations/{LOCATION}/customJobs", token="wrong")
    none = server.request("GET", f"/v1/projects/{PROJECT}/locations/{LOCATION}/customJobs", token=None)
    assert (wrong.status, wrong.error["status"]) == (401, "UNAUTHENTICATED")
    assert (none.status, none.error["status"]) == (403, "PERMISSION_DENIED")


def test_web_access_uris_are_there_while_the_job_runs(server: LiveServer, unique: Unique) -> None:
    pools = [
        inline("python", "-c", "import time; time.sleep(600)"),
        inline("python", "-c", "import time; time.sleep(600)"),
    ]
    created = Gcloud(server).create(
        {"displayName": unique("web"), "jobSpec": {"enableWebAccess": True, "workerPoolSpecs": pools}}
    )
    job = server.wait_for(created.json["name"], ("JOB_STATE_RUNNING",))
    assert set(job["webAccessUris"]) == {"workerpool0-0", "workerpool1-0"}
    assert all(uri.startswith(server.url) for uri in job["webAccessUris"].values())
    server.cancel(job["name"])


def test_logging_read_gets_the_newest_first_and_the_other_order_on_request(
    server: LiveServer, unique: Unique
) -> None:
    name = server.submit(["python", "-c", "for i in range(50): print('row', i)"], name=unique("read"))
    server.wait(name)
    job_filter = (
        f'resource.labels.job_id="{name.rsplit("/", 1)[1]}" AND resource.labels.task_name="workerpool0-0"'
    )
    newest = Gcloud(server).call(
        "POST",
        "/entries:list",
        "logging.read",
        {
            "filter": f'timestamp>="2020-01-01T00:00:00.000000Z" AND {job_filter}',
            "orderBy": "timestamp desc",
            "pageSize": 10,
            "resourceNames": [f"projects/{PROJECT}"],
        },
    )
    assert newest.status == 200, newest.body
    assert [e["jsonPayload"]["message"] for e in newest.json["entries"]] == [
        f"row {i}" for i in range(49, 39, -1)
    ]
    oldest = Gcloud(server).call(
        "POST",
        "/entries:list",
        "logging.read",
        {
            "filter": job_filter,
            "orderBy": "timestamp asc",
            "pageSize": 1000,
            "resourceNames": [f"projects/{PROJECT}"],
        },
    )
    assert [e["jsonPayload"]["message"] for e in oldest.json["entries"]] == [f"row {i}" for i in range(50)]


def test_the_printed_variables_lead_gcloud_here_with_the_token(server: LiveServer) -> None:
    variables = printed_environment(server)
    for service in ("AIPLATFORM", "ML", "LOGGING", "STORAGE", "COMPUTE", "CLOUDQUOTAS"):
        assert variables[f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}"] == f"{server.url}/", service
    token_file = Path(variables["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"])
    assert token_file.read_text().strip() == server.token
    assert token_file.stat().st_mode & 0o077 == 0
    assert variables["CLOUDSDK_CORE_PROJECT"] == PROJECT
    assert variables["CLOUDSDK_CORE_DISABLE_PROMPTS"] == "1"
    assert Path(variables["CLOUDSDK_CONFIG"]).is_relative_to(server.home), "not the person's own"

"""The real google-cloud-aiplatform over REST, unmodified, against a live server."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.live import IMAGE, LiveServer
from trainshed.core.jobs.secret import MASK

Unique = Callable[[str], str]

pytestmark = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk: make sdk"),
]


def python(source: str, **more: Any) -> dict[str, Any]:
    """A pool as people write it for the SDK."""
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": IMAGE, "command": ["python", "-c", source], "args": []},
        **more,
    }


HELLO = python("print('hello')")
SLEEP = python("import time; time.sleep(600)")


def test_the_version_is_the_one_the_facts_are_about(sdk: Sdk) -> None:
    assert sdk.version == "2.6.0"


# ---- a job's life


def test_run_succeeds_and_knows_all_times(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    done = sdk("jobs.run", server, name=unique("run"), pools=[HELLO])
    assert done["state"] == "JOB_STATE_SUCCEEDED"
    assert done["error"] in (None, "")
    assert done["times"] == [True] * 4


def test_run_of_a_failing_job_raises_with_the_job_s_error(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("jobs.run", server, name=unique("fails"), pools=[python("import sys; sys.exit(7)")])
    assert caught.value.type == "RuntimeError"
    assert "Job failed with" in caught.value.text
    assert "workerpool0-0" in caught.value.text
    assert "code 7" in caught.value.text


def test_submit_then_get_by_id_and_by_full_name(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    name = unique("submitted")
    job = sdk("jobs.submit", server, name=name, pools=[HELLO], labels={"team": "vision"})
    assert job["display_name"] == name
    assert job["labels"] == {"team": "vision"}
    for known_as in (job["name"], job["resource_name"]):
        assert sdk("jobs.get", server, name=known_as)["resource_name"] == job["resource_name"]
    assert sdk("jobs.wait", server, name=job["name"])["state"] == "JOB_STATE_SUCCEEDED"
    assert [line["text"] for line in server.lines(job["resource_name"])] == ["hello"]


def test_cancel_ends_the_job_and_waiting_for_it(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    job = sdk("jobs.cancel_while_running", server, name=unique("cancel"), pools=[SLEEP])
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert "cancel" in job["raised"].lower()


def test_delete_is_an_operation_that_ends(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    job = sdk("jobs.run", server, name=unique("deleted"), pools=[HELLO])
    sdk("jobs.delete", server, name=job["name"])
    with pytest.raises(SdkError) as caught:
        sdk("jobs.get", server, name=job["name"])
    assert caught.value.type == "NotFound"


def test_web_access_uris_are_there_while_it_runs(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    uris = sdk("jobs.web_access", server, name=unique("shell"), pools=[SLEEP, {**SLEEP, "replica_count": 2}])
    assert set(uris) == {"workerpool0-0", "workerpool1-0", "workerpool1-1"}
    assert all(uri.startswith(server.url) for uri in uris.values())


def test_several_pools_with_an_empty_one_between(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    pools = [HELLO, {**HELLO, "replica_count": 2}, {}, HELLO]
    done = sdk("jobs.run", server, name=unique("pools"), pools=pools)
    assert done["state"] == "JOB_STATE_SUCCEEDED"
    tasks = sorted(line["task"] for line in server.lines(done["resource_name"]))
    assert tasks == ["workerpool0-0", "workerpool1-0", "workerpool1-1", "workerpool3-0"]


def test_scheduling_and_output_come_back_as_they_were_given(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    job = sdk(
        "jobs.submit",
        server,
        name=unique("options"),
        pools=[HELLO],
        base_output_dir="gs://bucket/some/place",
        timeout=3600,
        restart_job_on_worker_restart=True,
        max_wait_duration=600,
        scheduling_strategy="SPOT",
        service_account="trainer@p1.iam.gserviceaccount.com",
        network="projects/12345/global/networks/default",
        enable_web_access=True,
    )
    told = server.job(job["resource_name"])["jobSpec"]
    assert told["scheduling"] == {
        "timeout": "3600s",
        "restartJobOnWorkerRestart": True,
        "maxWaitDuration": "600s",
        "strategy": "SPOT",
    }
    assert told["baseOutputDirectory"] == {"outputUriPrefix": "gs://bucket/some/place"}
    assert told["serviceAccount"] == "trainer@p1.iam.gserviceaccount.com"
    assert told["network"] == "projects/12345/global/networks/default"
    assert told["enableWebAccess"] is True


def test_the_default_output_folder_with_its_colons_reaches_the_program(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    source = "import os; print(os.environ['AIP_MODEL_DIR'])"
    done = sdk("jobs.run", server, name=unique("output"), pools=[python(source)])
    prefix = server.job(done["resource_name"])["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
    assert ":" in prefix.removeprefix("gs://")
    [line] = server.lines(done["resource_name"])
    assert line["text"].rstrip("/") == f"{prefix}/model"


# ---- lists


@pytest.fixture(scope="module")
def three(sdk: Sdk, server: LiveServer) -> str:
    stem = "sdk-list"
    labels = {"a": {"kind": "x"}, "b": {"kind": "x", "only": "y"}, "c": {"kind": "z"}}
    for letter, of_it in labels.items():
        source = "raise SystemExit(3)" if letter == "c" else "pass"
        job = sdk("jobs.submit", server, name=f"{stem}-{letter}", pools=[python(source)], labels=of_it)
        server.wait(job["resource_name"])
    return stem


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ('display_name="{n}-a"', "a"),
        ('display_name:"{n}-*"', "abc"),
        ('display_name:"{n}-*" AND state="JOB_STATE_SUCCEEDED"', "ab"),
        ('display_name:"{n}-*" AND NOT state="JOB_STATE_SUCCEEDED"', "c"),
        ('display_name:"{n}-*" AND state!="JOB_STATE_FAILED"', "ab"),
        ('display_name="{n}-a" OR display_name="{n}-c"', "ac"),
        ('display_name:"{n}-*" AND labels.kind=x', "ab"),
        ('display_name:"{n}-*" AND labels.only:*', "b"),
        ('display_name:"{n}-*" AND create_time>"2021-05-18T00:00:00Z"', "abc"),
        ('display_name:"{n}-*" AND create_time<="2021-05-18T00:00:00Z"', ""),
    ],
)
def test_list_with_a_filter(sdk: Sdk, server: LiveServer, three: str, where: str, found: str) -> None:
    names = sdk("jobs.find", server, filter=where.format(n=three))
    assert "".join(sorted(name.removeprefix(f"{three}-") for name in names)) == found


def test_list_in_an_order(sdk: Sdk, server: LiveServer, three: str) -> None:
    names = sdk("jobs.find", server, filter=f'display_name:"{three}-*"', order_by="create_time")
    assert names == [f"{three}-a", f"{three}-b", f"{three}-c"]


def test_pages_of_the_generated_client(sdk: Sdk, server: LiveServer, three: str) -> None:
    told = sdk("gapic.pages", server, filter=f'display_name:"{three}-*"', page_size=2)
    assert told["sizes"] == [2, 1]
    assert told["by_token"] == told["by_pager"]
    assert len(set(told["by_token"])) == 3


def test_a_token_of_another_filter_is_a_bad_request(sdk: Sdk, server: LiveServer, three: str) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("gapic.borrowed_token", server, filter=f'display_name:"{three}-*"', other="")
    assert caught.value.type == "BadRequest"
    assert list(caught.value.violations) == ["page_token"]


def test_a_read_mask(sdk: Sdk, server: LiveServer, three: str) -> None:
    jobs = sdk("gapic.masked", server, filter=f'display_name="{three}-a"', mask=["name", "display_name"])
    assert [set(job) for job in jobs] == [{"name", "displayName"}]


def test_a_filter_that_means_nothing_is_a_bad_request(sdk: Sdk, server: LiveServer) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("jobs.find", server, filter='colour="red"')
    assert caught.value.type == "BadRequest"
    assert list(caught.value.violations) == ["filter"]


# ---- errors as its exceptions


def test_a_bad_request_holds_every_violation(sdk: Sdk, server: LiveServer) -> None:
    pools = [
        {**HELLO, "replica_count": -1, "machine_spec": {"machine_type": "n1-nonsense-4"}},
        {**HELLO, "container_spec": {"image_uri": "example.org/own/trainer:7"}},
    ]
    with pytest.raises(SdkError) as caught:
        sdk("jobs.submit", server, name="bad", pools=pools)
    assert caught.value.type == "BadRequest"
    assert caught.value.code == 400
    assert caught.value.details[0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert set(caught.value.violations) == {
        "job_spec.worker_pool_specs[0].replica_count",
        "job_spec.worker_pool_specs[0].machine_spec.machine_type",
        "job_spec.worker_pool_specs[1].container_spec.image_uri",
    }


def test_what_is_not_there_is_not_found(sdk: Sdk, server: LiveServer) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("jobs.get", server, name="1234567890123456789")
    assert caught.value.type == "NotFound"
    assert "1234567890123456789" in caught.value.text


def test_without_credentials_it_is_forbidden(sdk: Sdk, server: LiveServer) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("jobs.find", server, token=None, filter="")
    assert caught.value.type == "Forbidden"


def test_with_a_wrong_token_it_tries_to_get_another_and_says_so(sdk: Sdk, server: LiveServer) -> None:
    """A 401 makes google-auth refresh its credentials; a bare token cannot be refreshed."""
    with pytest.raises(SdkError) as caught:
        sdk("jobs.find", server, token="wrong", filter="")
    assert caught.value.type in ("RefreshError", "Unauthorized")


def test_no_auth_needs_no_credentials(sdk: Sdk, open_server: LiveServer) -> None:
    done = sdk("jobs.run", open_server, token=None, name="open", pools=[HELLO])
    assert done["state"] == "JOB_STATE_SUCCEEDED"


def test_cancelling_an_ended_job_is_a_bad_request_with_its_state(
    sdk: Sdk, server: LiveServer, three: str
) -> None:
    [name] = sdk("gapic.pages", server, filter=f'display_name="{three}-a"', page_size=5)["by_token"]
    with pytest.raises(SdkError) as caught:
        sdk("jobs.cancel", server, name=name)
    assert "BadRequest" in caught.value.classes
    assert "SUCCEEDED" in caught.value.text


def test_deleting_a_running_job_is_a_bad_request_with_its_state(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    job = sdk("jobs.submit", server, name=unique("busy"), pools=[SLEEP])
    server.wait_for(job["resource_name"], ("JOB_STATE_RUNNING",))
    with pytest.raises(SdkError) as caught:
        sdk("jobs.delete", server, name=job["name"])
    assert "BadRequest" in caught.value.classes
    assert "RUNNING" in caught.value.text
    sdk("jobs.cancel", server, name=job["name"])


# ---- what we answer is what Google's messages hold


FULL = {
    "displayName": "full",
    "labels": {"a": "b"},
    "encryptionSpec": {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
    "jobSpec": {
        "workerPoolSpecs": [
            {
                "machineSpec": {
                    "machineType": "n1-standard-8",
                    "acceleratorType": "NVIDIA_TESLA_T4",
                    "acceleratorCount": 2,
                    "reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"},
                },
                "replicaCount": "1",
                "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
                "nfsMounts": [{"server": "10.0.0.1", "path": "/data", "mountPoint": "data"}],
                "containerSpec": {
                    "imageUri": IMAGE,
                    "command": ["python", "-c"],
                    "args": ["pass"],
                    "env": [{"name": "A", "value": "b"}],
                },
            },
            {},
            {
                "machineSpec": {"machineType": "c2-standard-4"},
                "replicaCount": "2",
                "containerSpec": {"imageUri": IMAGE, "command": ["true"]},
            },
        ],
        "scheduling": {
            "timeout": "3600.500s",
            "strategy": "ON_DEMAND",
            "disableRetries": True,
            "maxWaitDuration": "60s",
        },
        "serviceAccount": "trainer@p1.iam.gserviceaccount.com",
        "network": "projects/12345/global/networks/n",
        "reservedIpRanges": ["range-1"],
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/out"},
        "tensorboard": "projects/p/locations/l/tensorboards/7",
        "enableWebAccess": True,
        "enableDashboardAccess": True,
        "experiment": "projects/p/locations/l/metadataStores/default/contexts/e",
        "experimentRun": "projects/p/locations/l/metadataStores/default/contexts/r",
        "models": ["projects/p/locations/l/models/m"],
        "protectedArtifactLocationId": "us",
    },
}


def test_every_field_given_is_answered_and_none_that_google_does_not_know(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    body = {**FULL, "displayName": unique("full")}
    created = sdk("gapic.create", server, body=body)
    for field, value in body.items():
        assert created[field] == value, field
    ended = server.wait(created["name"])
    assert ended["state"] == "JOB_STATE_SUCCEEDED", ended.get("error")
    for told in sdk("gapic.strict_job", server, name=created["name"]):
        assert _plain(told["read"]) == _plain(told["sent"])


def _plain(told: Any) -> Any:
    """Google's reader writes what it read; only digits of times, and how an enum is told, may differ."""
    if isinstance(told, dict):
        return {k: _time(v) if k.endswith("Time") else _plain(v) for k, v in told.items()}
    if isinstance(told, list):
        return [_plain(v) for v in told]
    return {"3600.5s": "3600.500s", "ANY_RESERVATION": 2}.get(told, told) if isinstance(told, str) else told


def _time(text: str) -> str:
    """protobuf writes fractions with 0, 3, 6 or 9 digits, as few as suffice."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    for digits in (0, 3, 6, 9):
        if not fraction.ljust(9, "0")[digits:].strip("0"):
            kept = fraction.ljust(9, "0")[:digits]
            return f"{whole}.{kept}Z" if kept else f"{whole}Z"
    raise AssertionError(text)


@pytest.mark.parametrize("state", ["running", "failed", "cancelled", "waiting"])
def test_a_job_in_any_state_is_read_strictly(
    sdk: Sdk, server: LiveServer, strict_server: LiveServer, unique: Unique, state: str
) -> None:
    live = strict_server if state == "waiting" else server
    source = "raise SystemExit(3)" if state == "failed" else "import time; time.sleep(600)"
    pools = [python(source, replica_count=50 if state == "waiting" else 1)]
    job = sdk("jobs.submit", live, name=unique(state), pools=pools, enable_web_access=True)
    name = job["resource_name"]
    if state == "cancelled":
        live.wait_for(name, ("JOB_STATE_RUNNING",))
        live.cancel(name)
    wanted = {
        "running": "JOB_STATE_RUNNING",
        "failed": "JOB_STATE_FAILED",
        "cancelled": "JOB_STATE_CANCELLED",
        "waiting": "JOB_STATE_QUEUED",
    }[state]
    live.wait_for(name, (wanted,))
    told = sdk("gapic.strict_job", live, name=name)
    assert [t["read"]["state"] for t in told[::2]] == [wanted] * 2
    if state in ("failed", "cancelled"):
        assert told[0]["read"]["error"]["message"]
        assert told[0]["read"]["error"]["code"]
    else:
        live.cancel(name)


def test_lists_and_operations_are_read_strictly(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    name = unique("strict")
    jobs = [sdk("jobs.run", server, name=name, pools=[HELLO]) for _ in range(2)]
    assert sdk("gapic.strict_list", server, filter=f'display_name="{name}"') == 2
    operation = sdk("gapic.strict_operation", server, name=jobs[0]["resource_name"])
    assert operation["done"] is True
    assert operation["response"] == "type.googleapis.com/google.protobuf.Empty"


def test_the_beta_client_sees_the_same_jobs(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    name = unique("beta")
    job = sdk("jobs.submit", server, name=name, pools=[HELLO])
    assert sdk("gapic.beta", server, name=job["resource_name"]) == name


# ---- secrets


def test_a_secret_is_read_as_a_mask_and_a_job_made_of_that_is_refused(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    pools = [python("import os; assert os.environ['HF_TOKEN'] == 'hf-Q7vT1'")]
    pools[0]["container_spec"]["env"] = [{"name": "HF_TOKEN", "value": "hf-Q7vT1"}]
    name = sdk("jobs.submit", server, name=unique("secret"), pools=pools)["resource_name"]
    assert sdk("jobs.wait", server, name=name)["state"] == "JOB_STATE_SUCCEEDED"
    read = sdk("jobs.spec", server, name=name)["job_spec"]["worker_pool_specs"]
    assert read[0]["container_spec"]["env"] == [{"name": "HF_TOKEN", "value": MASK}]
    pools[0]["container_spec"]["env"] = read[0]["container_spec"]["env"]
    with pytest.raises(SdkError) as caught:
        sdk("jobs.submit", server, name=unique("copy"), pools=pools)
    assert "job_spec.worker_pool_specs[0].container_spec.env[0].value" in caught.value.violations


def test_a_job_with_a_marked_secret_can_be_read(sdk: Sdk, server: LiveServer) -> None:
    container = {"imageUri": IMAGE, "env": [{"name": "MINE", "value": "x", "secret": True}]}
    machine = {"machineType": "n1-standard-4"}
    name = server.submit(pools=[{"machineSpec": machine, "replicaCount": 1, "containerSpec": container}])
    read = sdk("jobs.spec", server, name=name)["job_spec"]["worker_pool_specs"]
    assert read[0]["container_spec"]["env"] == [{"name": "MINE", "value": MASK}]

"""Quotas of a share over HTTP: what gcloud asks for, and every way in refuses a job that is too large."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.gcloud_model import TRACKS, Gcloud, headers
from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.live import IMAGE, JOBS, LOCATION, PARENT, PROJECT, Answer, LiveServer, pool, python
from tests.shared_server import forget_jobs
from tests.studies.tuning import TUNING, a_tuning_job
from trainshed.wire.training_pipeline import CUSTOM_TASK

SHARES = """
[share.small]
projects = ["p1", "p1-dev"]
nominal = { cpus = 4 }
borrow = { cpus = 2 }

[share.large]
projects = ["large"]
nominal = { cpus = 8 }
"""
METRIC = "aiplatform.googleapis.com/custom_model_training_cpus"
WORDS = f"The following quota metrics exceed quota limits: {METRIC}."
INFOS = f"/v1/projects/{PROJECT}/locations/global/services/aiplatform.googleapis.com/quotaInfos"
LARGE = "n1-standard-8"
SLEEP = python("import time; time.sleep(600)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Sixteen CPUs, of which the project may have six."""
    shares = tmp_path_factory.mktemp("shares") / "shares.toml"
    shares.write_text(SHARES)
    with LiveServer("--cpus", "16", "--memory", "128GiB", "--shares", str(shares)) as live:
        yield live
        assert "Traceback" not in live.said(), live.said()


@pytest.fixture(autouse=True)
def clean(server: LiveServer) -> Iterator[None]:
    yield
    forget_jobs(server)


def gcloud(server: LiveServer, command: str, path: str) -> Any:
    answer = server.request("GET", f"{path}?alt=json", headers=headers(command))
    assert answer.status == 200, answer.body
    return answer.json


def by_metric(answer: Any) -> dict[str, tuple[float, float]]:
    return {row["metric"]: (row["limit"], row["usage"]) for row in answer["quotas"]}


def hold_and_wait(server: LiveServer) -> None:
    """Four CPUs in use, and four that wait for two."""
    server.wait_for(server.submit(SLEEP), ("JOB_STATE_RUNNING",))
    server.submit(SLEEP, name="waits")


# ---- what gcloud asks for


@pytest.mark.parametrize("track", ["v1", "beta"])
def test_project_info_and_regions_have_the_limits_of_the_share_and_its_use(
    server: LiveServer, track: str
) -> None:
    hold_and_wait(server)
    project = gcloud(server, "compute.project-info.describe", f"/compute/{track}/projects/{PROJECT}")
    assert (project["kind"], project["name"]) == ("compute#project", PROJECT)
    assert by_metric(project)["CPUS"] == by_metric(project)["CPUS_ALL_REGIONS"] == (6, 4)
    assert by_metric(project)["PREEMPTIBLE_CPUS"] == (16, 0)
    path = f"/compute/{track}/projects/{PROJECT}/regions/{LOCATION}"
    region = gcloud(server, "compute.regions.describe", path)
    assert (region["kind"], region["name"]) == ("compute#region", LOCATION)
    assert by_metric(region)["CPUS"] == (6, 4)


def test_a_spot_job_is_counted_as_preemptible(server: LiveServer) -> None:
    job = server.submit(SLEEP, spec={"scheduling": {"strategy": "SPOT"}})
    server.wait_for(job, ("JOB_STATE_RUNNING",))
    quotas = by_metric(gcloud(server, "compute.project-info.describe", f"/compute/v1/projects/{PROJECT}"))
    assert (quotas["CPUS"], quotas["PREEMPTIBLE_CPUS"]) == ((6, 0), (16, 4))


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
def test_quotas_info_lists_and_describes_the_metrics_that_refusals_name(
    server: LiveServer, version: str
) -> None:
    infos = INFOS.replace("/v1/", f"/{version}/")
    rows = {row["metric"]: row for row in gcloud(server, "quotas.info.list", infos)["quotaInfos"]}
    assert rows[METRIC]["dimensionsInfos"] == [{"details": {"value": "6", "usage": "0"}}]
    assert rows[METRIC]["name"] == f"{INFOS.removeprefix('/v1/')}/{rows[METRIC]['quotaId']}"
    described = gcloud(server, "quotas.info.describe", f"{infos}/{rows[METRIC]['quotaId']}")
    assert described == rows[METRIC]


def test_another_service_and_another_quota_are_not_found_with_what_there_is(server: LiveServer) -> None:
    other = server.request("GET", INFOS.replace("aiplatform", "run"))
    assert (other.status, other.error["status"]) == (404, "NOT_FOUND")
    assert "aiplatform.googleapis.com" in other.error["message"]
    missing = server.request("GET", f"{INFOS}/Nothing")
    assert missing.status == 404
    assert "gcloud quotas info list" in missing.error["message"]


def test_projects_have_the_quotas_of_their_shares(server: LiveServer) -> None:
    hold_and_wait(server)
    limits = {
        project: by_metric(gcloud(server, "compute.project-info.describe", f"/compute/v1/projects/{project}"))
        for project in ("p1-dev", "large", "elsewhere")
    }
    assert limits["p1-dev"]["CPUS"] == (6, 4), "the projects of a share have it together"
    assert limits["large"]["CPUS"] == (16, 0)
    assert limits["elsewhere"]["CPUS"] == (16, 4), "of all machines, where no share names the project"


def test_the_command_shows_limit_use_and_what_waits(server: LiveServer) -> None:
    hold_and_wait(server)
    done = server.cli("quota")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["cpus"] == ["6", "4", "4"]
    assert "preemptible_cpus" not in rows
    found = json.loads(server.cli("quota", "--project", "large", "--json").stdout)
    assert found[0] == {"metric": "cpus", "limit": 16, "usage": 0, "waiting": 0}


def test_without_shares_the_quotas_are_those_of_the_machines() -> None:
    with LiveServer("--cpus", "8", "--memory", "32GiB") as plain:
        project = gcloud(plain, "compute.project-info.describe", f"/compute/v1/projects/{PROJECT}")
        assert by_metric(project)["CPUS"] == (8, 0)


# ---- a job that is larger than its share may ever be


def check_refused(answer: Answer) -> None:
    assert answer.status == 429, answer.body
    assert answer.error["status"] == "RESOURCE_EXHAUSTED"
    assert answer.error["message"] == (
        f"{WORDS} Share 'small' may have 6 CPUs, and the job asks for 8 CPUs: "
        "ask for less, or have the share raised."
    )


def none_is_there(server: LiveServer) -> bool:
    return not server.get(JOBS).get("customJobs")


def large_pools() -> list[dict[str, Any]]:
    return [pool(SLEEP, machine=LARGE)]


@pytest.mark.parametrize("track", list(TRACKS))
def test_gcloud_gets_429_for_a_custom_job(server: LiveServer, track: str) -> None:
    body = {"displayName": "large", "jobSpec": {"workerPoolSpecs": large_pools()}}
    check_refused(Gcloud(server, track).create(body))
    assert none_is_there(server)


@pytest.mark.parametrize("track", list(TRACKS))
def test_gcloud_gets_429_for_a_tuning_job_whose_trials_are_too_large(server: LiveServer, track: str) -> None:
    body = a_tuning_job(trialJobSpec={"workerPoolSpecs": large_pools()})
    check_refused(Gcloud(server, track, "hp-tuning-jobs").create(body))
    assert not server.get(TUNING).get("hyperparameterTuningJobs")
    assert none_is_there(server)


def test_a_pipeline_gets_429(server: LiveServer) -> None:
    body = {
        "displayName": "large",
        "trainingTaskDefinition": CUSTOM_TASK,
        "trainingTaskInputs": {"workerPoolSpecs": large_pools()},
    }
    check_refused(server.request("POST", f"{PARENT}/trainingPipelines", body))
    assert none_is_there(server)


@pytest.mark.parametrize("tunes", [False, True])
def test_a_job_of_the_older_api_gets_429(server: LiveServer, tunes: bool) -> None:
    metric = {"goal": "MAXIMIZE", "hyperparameterMetricTag": "accuracy", "maxTrials": 2, "params": [X]}
    asked: dict[str, Any] = {
        "region": LOCATION,
        "scaleTier": "CUSTOM",
        "masterType": LARGE,
        "masterConfig": {"imageUri": IMAGE, "containerCommand": SLEEP},
        **({"hyperparameters": metric} if tunes else {}),
    }
    path = f"/v1/projects/{PROJECT}/jobs"
    check_refused(server.request("POST", path, {"jobId": f"large_{tunes}", "trainingInput": asked}))
    assert not server.get(path).get("jobs")


X = {"parameterName": "x", "type": "DOUBLE", "minValue": 0, "maxValue": 1}

JOB_FILE = """
apiVersion: batch/v1
kind: Job
metadata: {name: large}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: trainshed/python:3
        command: [python, -c, "print(1)"]
        resources: {requests: {cpu: "8"}}
"""

JOB_YAML = """
displayName: large
jobSpec:
  workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-8}
    replicaCount: 1
    containerSpec: {imageUri: "trainshed/python:3", command: ["true"]}
"""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["submit"], JOB_YAML),
        (["apply", "-f"], JOB_FILE),
        (["ai", "custom-jobs", "create", f"--region={LOCATION}", "--display-name=large", "--config"], ""),
    ],
)
def test_every_command_that_submits_exits_with_1_and_the_words(
    server: LiveServer, tmp_path: Path, words: Sequence[str], text: str
) -> None:
    file = tmp_path / "job.yaml"
    pools = {"workerPoolSpecs": large_pools()}
    file.write_text(text or json.dumps(pools))
    done = server.cli(*words, str(file))
    assert done.returncode == 1, done.stdout
    assert WORDS in done.stderr
    assert "Share 'small' may have 6 CPUs, and the job asks for 8 CPUs" in done.stderr
    assert "Traceback" not in done.stderr
    assert none_is_there(server)


@pytest.mark.needs_sdk
@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk: make sdk")
def test_the_sdk_raises_too_many_requests(server: LiveServer, sdk: Sdk) -> None:
    spec = {
        "machine_spec": {"machine_type": LARGE},
        "replica_count": 1,
        "container_spec": {"image_uri": IMAGE, "command": ["true"], "args": []},
    }
    with pytest.raises(SdkError) as refused:
        sdk("jobs.submit", server, name="large", pools=[spec])
    assert (refused.value.type, refused.value.code) == ("TooManyRequests", 429)
    assert WORDS in refused.value.text
    assert none_is_there(server)

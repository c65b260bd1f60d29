"""hyperparameterTuningJobs as gcloud's requests and others use them, against a live server."""

from collections.abc import Callable

import pytest

from tests.conformance.gcloud_model import Gcloud, message, task
from tests.live import FINAL, LOCATION, PROJECT, LiveServer, until
from tests.studies.tuning import ACCURACY, PROGRAM, TUNING, X, a_tuning_job, point_of, tune, wait_study

Unique = Callable[[str], str]
SLEEP = "import time; print('begun', flush=True); time.sleep(600)"


@pytest.fixture(params=["ga", "beta", "alpha"])
def gcloud(server: LiveServer, request: pytest.FixtureRequest) -> Gcloud:
    return Gcloud(server, request.param, "hp-tuning-jobs")


def test_create_list_describe_and_cancel_as_gcloud_sends_them(gcloud: Gcloud, unique: Unique) -> None:
    name = unique("hp")
    created = gcloud.create(a_tuning_job(SLEEP, displayName=name, labels={"team": "vision"}))
    assert created.status == 200, created.body
    job = created.json
    assert job["name"].startswith(f"projects/{PROJECT}/locations/{LOCATION}/hyperparameterTuningJobs/")
    assert job["state"] in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
    assert name in [row["displayName"] for row in gcloud.list().json["hyperparameterTuningJobs"]]
    described = gcloud.describe(job["name"]).json
    assert (described["maxTrialCount"], described["parallelTrialCount"]) == (3, 3)
    assert described["labels"] == {"team": "vision"}
    assert gcloud.cancel(job["name"]).json == {}
    ended = wait_study(gcloud.server, job["name"])
    assert ended["state"] == "JOB_STATE_CANCELLED"
    trials = ended.get("trials", [])  # none, where it was cancelled before the first suggestion
    assert {trial["state"] for trial in trials} <= {"INFEASIBLE"}
    assert gcloud.cancel(job["name"]).status == 400


def test_discrete_values_and_whole_numbers_come_as_gcloud_sends_them(gcloud: Gcloud, unique: Unique) -> None:
    parameters = [
        {"parameterId": "batch", "discreteValueSpec": {"values": [32.0, 64.0]}},
        {"parameterId": "layers", "integerValueSpec": {"minValue": "1", "maxValue": "3"}},
        {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}},
    ]
    source = (
        "import sys; from trainshed import report\nprint(sorted(sys.argv[1:]))\nreport.step(1, accuracy=1)\n"
    )
    spec = {"metrics": [ACCURACY], "parameters": parameters, "algorithm": "RANDOM_SEARCH"}
    body = a_tuning_job(source, trials=2, spec=spec, displayName=unique("kinds"))
    ended = wait_study(gcloud.server, gcloud.create(body).json["name"])
    assert ended["state"] == "JOB_STATE_SUCCEEDED", ended
    for trial in ended["trials"]:
        point = point_of(trial)
        job = trial["customJob"]
        [line] = [row["text"] for row in gcloud.server.lines(job)]
        words = [f"--batch={int(point['batch'])}", f"--kind={point['kind']}", f"--layers={point['layers']}"]
        assert line == str(words)
    assert ended["studySpec"]["parameters"][1]["integerValueSpec"] == {"minValue": "1", "maxValue": "3"}


# Every field of a StudySpec that gcloud knows and sends; the flags of `create` fill some of them.
SPECS = {
    "algorithm-unspecified": {"algorithm": "ALGORITHM_UNSPECIFIED"},
    "grid-search": {
        "algorithm": "GRID_SEARCH",
        "parameters": [
            {
                "parameterId": "x",
                "discreteValueSpec": {"values": [0.25, 0.5]},
                "scaleType": "UNIT_LINEAR_SCALE",
            }
        ],
    },
    "random-search": {"algorithm": "RANDOM_SEARCH"},
    "decay curve": {"decayCurveStoppingSpec": {"useElapsedDuration": True}},
    "median": {"medianAutomatedStoppingSpec": {"useElapsedDuration": True}},
    "convex": {"convexAutomatedStoppingSpec": {"maxStepCount": "100", "minStepCount": "5"}},
    "last": {"measurementSelectionType": "LAST_MEASUREMENT", "observationNoise": "LOW"},
    "best": {"measurementSelectionType": "BEST_MEASUREMENT", "observationNoise": "HIGH"},
    "stopping": {"studyStoppingConfig": {"maxNumTrials": 5, "minNumTrials": 2}},
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_field_of_a_study_that_gcloud_sends_is_kept(
    server: LiveServer, unique: Unique, spec: dict[str, object]
) -> None:
    gcloud = Gcloud(server, "ga", "hp-tuning-jobs")
    body = a_tuning_job(SLEEP, trials=1, parallel=1, displayName=unique("spec"), spec=spec)
    created = gcloud.create(body)
    assert created.status == 200, created.body
    kept = gcloud.describe(created.json["name"]).json["studySpec"]
    usual = ("ALGORITHM_UNSPECIFIED",)  # is left out of answers, as in Google's
    assert {name: kept.get(name) for name in spec} == {
        name: None if value in usual else value for name, value in spec.items()
    }
    assert gcloud.cancel(created.json["name"]).json == {}


def test_the_flags_of_create_reach_every_trial(gcloud: Gcloud, unique: Unique) -> None:
    body = a_tuning_job(SLEEP, trials=1, parallel=1, displayName=unique("flags"))
    flags = {
        "network": "projects/12345/global/networks/default",
        "serviceAccount": "trainer@p1.iam.gserviceaccount.com",
        "enableWebAccess": True,
        "enableDashboardAccess": True,
    }
    body["trialJobSpec"] |= flags
    body["encryptionSpec"] = {"kmsKeyName": "projects/p1/locations/us-central1/keyRings/r/cryptoKeys/k"}
    created = gcloud.create(body)
    assert created.status == 200, created.body
    name = created.json["name"]
    described = gcloud.describe(name).json
    assert described["encryptionSpec"] == body["encryptionSpec"]
    assert {field: described["trialJobSpec"].get(field) for field in flags} == flags
    [job] = until(
        lambda: [t["customJob"] for t in gcloud.describe(name).json.get("trials", []) if t.get("customJob")]
    )
    spec = gcloud.server.get(f"/v1/{job}")["jobSpec"]
    assert {field: spec.get(field) for field in flags} == flags
    gcloud.cancel(name)


def test_stream_logs_has_the_lines_of_all_trials_and_ends_with_the_study(
    gcloud: Gcloud, unique: Unique
) -> None:
    source = "import time; time.sleep(1)\n" + PROGRAM
    job = gcloud.create(a_tuning_job(source, trials=4, parallel=2, displayName=unique("logs"))).json
    entries = list(gcloud.stream_logs(job["name"]))
    ended = gcloud.describe(job["name"]).json
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    lines = [entry for entry in entries if task(entry) == "workerpool0-0"]
    assert sorted(message(entry) for entry in lines) == sorted(
        f"x is {point_of(trial)['x']}" for trial in ended["trials"]
    )
    assert {e["labels"]["ml.googleapis.com/trial_id"] for e in lines} == {"1", "2", "3", "4"}
    assert {e["resource"]["labels"]["job_id"] for e in entries} == {job["name"].rsplit("/", 1)[1]}


def test_the_log_of_a_study_can_be_searched_without_a_stream(server: LiveServer) -> None:
    name = tune(server, trials=2)
    wait_study(server, name)
    entries = server.entries(f'resource.labels.job_id="{name.rsplit("/", 1)[1]}"')
    assert sum("x is" in message(entry) for entry in entries) == 2


def test_a_wrong_body_is_refused_with_every_violation_and_makes_nothing(server: LiveServer) -> None:
    before = len(server.get(TUNING, view="trainshed", pageSize=1000)["hyperparameterTuningJobs"] or [])
    body = a_tuning_job(
        trials=0,
        spec={"parameters": [X, X], "priorStudyNames": ["77"]},
        displayName="",
        trialJobSpec={"workerPoolSpecs": []},
    )
    answer = server.request("POST", TUNING, body)
    assert answer.status == 400
    assert set(answer.violations) == {
        "display_name",
        "max_trial_count",
        "study_spec.parameters[1].parameter_id",
        "trial_job_spec.worker_pool_specs",
    }
    after = len(server.get(TUNING, view="trainshed", pageSize=1000)["hyperparameterTuningJobs"] or [])
    assert after == before


def test_code_and_earlier_studies_that_are_not_there_are_refused(server: LiveServer) -> None:
    body = a_tuning_job(spec={"priorStudyNames": ["77"]})
    assert "77" in server.request("POST", TUNING, body).violations["study_spec.prior_study_names[0]"]
    body = a_tuning_job()
    body["trialJobSpec"]["code"] = "a" * 64
    assert "trial_job_spec.code" in server.request("POST", TUNING, body).violations


def test_a_create_that_is_sent_twice_makes_one_study(server: LiveServer, unique: Unique) -> None:
    key = {"Idempotency-Key": unique("key")}
    body = a_tuning_job(trials=1)
    first, second = (server.request("POST", TUNING, body, headers=key).json for _ in range(2))
    assert first["name"] == second["name"]
    other = server.request("POST", TUNING, a_tuning_job(trials=1, displayName="other"), headers=key)
    assert other.status == 409
    wait_study(server, first["name"])


def test_lists_are_filtered_masked_and_paged(server: LiveServer, unique: Unique) -> None:
    label = unique("paged")
    names = [tune(server, trials=1, labels={"list": label}, displayName=f"{label}-{n}") for n in range(3)]
    for name in names:
        wait_study(server, name)
    found, token = [], ""
    while True:
        page = server.get(TUNING, filter=f'labels.list="{label}"', pageSize=2, pageToken=token)
        found += [row["name"] for row in page["hyperparameterTuningJobs"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert found == names[::-1]
    done = server.get(TUNING, filter=f'state="JOB_STATE_SUCCEEDED" AND labels.list="{label}"')
    assert len(done["hyperparameterTuningJobs"]) == 3
    [row] = server.get(TUNING, filter=f'display_name="{label}-1"', readMask="name,trials.id")[
        "hyperparameterTuningJobs"
    ]
    assert row == {"name": names[1], "trials": [{"id": "1"}]}


def test_delete_needs_an_end_and_takes_trials_along(server: LiveServer) -> None:
    name = tune(server, a_tuning_job(SLEEP, trials=1))
    refused = server.request("DELETE", f"/v1/{name}")
    assert refused.status == 400
    assert "cancel it first" in refused.error["message"]
    server.post(f"/v1/{name}:cancel")
    wait_study(server, name)
    operation = server.request("DELETE", f"/v1/{name}").json
    assert operation["done"] is True
    assert server.get(f"/v1/{operation['name']}")["done"] is True
    assert server.request("GET", f"/v1/{name}").status == 404
    assert server.request("GET", f"/v1/{name}/trials").status == 404


def test_secrets_reach_the_trials_and_no_answer(server: LiveServer) -> None:
    source = "import os; from trainshed import report\nreport.step(1, accuracy=len(os.environ['HF_TOKEN']))\n"
    body = a_tuning_job(source, trials=1)
    [spec] = body["trialJobSpec"]["workerPoolSpecs"]
    spec["containerSpec"]["env"] = [{"name": "HF_TOKEN", "value": "hunter22"}]
    name = tune(server, body)
    ended = wait_study(server, name)
    [trial] = ended["trials"]
    assert trial["finalMeasurement"]["metrics"] == [{"metricId": "accuracy", "value": 8.0}]
    assert "hunter22" not in str(ended) + str(server.get(f"/v1/{name}:best"))
    assert server.get(f"/v1/{name}:best")["secretsOf"] == trial["customJob"].rsplit("/", 1)[1]


# ---- our own views


def test_the_own_view_has_counts_the_best_trial_and_no_trials_inline(
    server: LiveServer, unique: Unique
) -> None:
    label = unique("view")
    name = tune(server, trials=3, labels={"view": label}, initialTrials=[{"x": 0.3}])
    wait_study(server, name)
    [row] = server.get(TUNING, view="trainshed", filter=f"labels.view={label}")["hyperparameterTuningJobs"]
    assert row["trials"] == {"total": 3, "byState": {"SUCCEEDED": 3}, "max": 3, "parallel": 3, "waiting": 0}
    assert row["best"] == {"trial": "1", "value": 1.0, "metric": "accuracy", "parameters": {"x": 0.3}}
    assert row["objectives"] == [ACCURACY]
    assert (row["kind"], row["state"]) == ("tuning", "JOB_STATE_SUCCEEDED")
    whole = server.get(f"/v1/{name}", view="trainshed")
    assert whole["trainshed"] == row
    assert "trials" not in whole
    everywhere = server.get(
        "/v1/projects/-/locations/-/hyperparameterTuningJobs", view="trainshed", filter=f"labels.view={label}"
    )
    assert everywhere["hyperparameterTuningJobs"] == [row]


def test_trials_are_paged_sorted_and_filtered(server: LiveServer) -> None:
    name = tune(server, trials=5, parallel=5, initialTrials=[{"x": 0.3}, {"x": 1.0}])
    wait_study(server, name)
    values: list[float] = []
    token = ""
    while True:
        page = server.get(f"/v1/{name}/trials", orderBy="value desc", pageSize=2, pageToken=token)
        assert page["totalSize"] == 5
        values += [row["value"] for row in page["trials"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert values == sorted(values, reverse=True)
    assert values[0] == 1.0
    first, *_ = server.get(f"/v1/{name}/trials", orderBy="id")["trials"]
    assert (first["id"], first["isGiven"], first["jobState"]) == ("1", True, "JOB_STATE_SUCCEEDED")
    assert "measurements" not in first
    [row, *_] = server.get(f"/v1/{name}/trials", measurements="true")["trials"]
    assert row["measurements"][-1]["metrics"][0]["metricId"] == "accuracy"
    assert server.get(f"/v1/{name}/trials", filter="state=INFEASIBLE OR state=ACTIVE") == {"totalSize": 0}
    for wrong in ({"orderBy": "color"}, {"filter": "value>3"}, {"filter": "state=GOOD"}, {"pageToken": "x"}):
        assert (
            server.request(
                "GET", f"/v1/{name}/trials?{'&'.join(f'{k}={v}' for k, v in wrong.items())}"
            ).status
            == 400
        )


def test_analysis_curves_and_the_best_point(server: LiveServer) -> None:
    name = tune(server, trials=4, parallel=1, initialTrials=[{"x": 0.9}, {"x": 0.3}])
    wait_study(server, name)
    analysis = server.get(f"/v1/{name}:analysis")
    assert analysis["best"] == ["2"]
    assert [row["trial"] for row in analysis["history"]] == ["1", "2", "3", "4"]
    assert [row["best"] for row in analysis["history"]][1:] == [1.0] * 3
    assert analysis["counts"] == {"SUCCEEDED": 4}
    curves = server.get(f"/v1/{name}:curves", most=2)
    assert curves["curves"][0]["trial"] == "2"
    assert curves["metric"] == "accuracy"
    assert [c["trial"] for c in server.get(f"/v1/{name}:curves", trials="3,1")["curves"]] == ["3", "1"]
    assert server.request("GET", f"/v1/{name}:curves?trials=x").status == 400
    assert server.request("GET", f"/v1/{name}:curves?trials=99").status == 404
    best = server.get(f"/v1/{name}:best")
    assert best["args"] == ["--x=0.3"]
    again = server.post(f"{TUNING.rsplit('/', 1)[0]}/customJobs", best["customJob"])
    assert server.wait(again["name"])["state"] == "JOB_STATE_SUCCEEDED"
    assert [row["text"] for row in server.lines(again["name"])] == ["x is 0.3"]


def test_several_objectives_have_a_front_of_best_trials(server: LiveServer) -> None:
    source = (
        "import sys; from trainshed import report\n"
        "x = float(sys.argv[1].split('=')[1])\n"
        "report.step(1, accuracy=x, cost=x if x < 0.6 else 9.0)\n"
    )
    metrics = [ACCURACY, {"metricId": "cost", "goal": "MINIMIZE"}]
    points = [{"x": 0.1}, {"x": 0.5}, {"x": 0.7}, {"x": 0.6}]
    body = a_tuning_job(source, trials=4, spec={"metrics": metrics}, initialTrials=points)
    name = tune(server, body)
    wait_study(server, name)
    assert server.get(f"/v1/{name}:analysis")["best"] == ["1", "2", "3"]


def test_a_study_is_stopped_and_goes_on_with_higher_limits_and_points_of_ones_own(
    server: LiveServer,
) -> None:
    source = PROGRAM + "import time\nif x > 0.95: time.sleep(600)\n"
    name = tune(server, a_tuning_job(source, trials=5, parallel=1, initialTrials=[{"x": 0.3}, {"x": 0.99}]))
    until(lambda: len(server.get(f"/v1/{name}/trials", filter="state=SUCCEEDED").get("trials", [])) == 1)
    server.post(f"/v1/{name}:stop")
    ended = wait_study(server, name)
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    assert server.request("POST", f"/v1/{name}:addTrials", {"points": [{"x": 0.5}]}).status == 400
    before = len(ended["trials"])
    row = server.post(
        f"/v1/{name}:resume", {"maxTrialCount": before + 1, "parallelTrialCount": 2, "maxFailedTrialCount": 9}
    )
    assert row["trials"]["max"] == before + 1
    added = server.post(f"/v1/{name}:addTrials", {"points": [{"x": 0.25}]})["trials"]
    assert point_of(added[0]) == {"x": 0.25}
    ended = wait_study(server, name)
    assert ended["state"] == "JOB_STATE_SUCCEEDED"
    assert {"x": 0.25} in [point_of(trial) for trial in ended["trials"]]
    answer = server.request("POST", f"/v1/{name}:addTrials", {"points": [{"x": 7}, {}], "more": 1})
    assert set(answer.violations) == {"points[0].x", "points[1].x", "more"}
    assert server.request("POST", f"/v1/{name}:resume", {"maxTrialCount": 0}).status == 400


def test_one_trial_is_stopped_and_counts_with_its_last_measurement(server: LiveServer) -> None:
    source = PROGRAM + "import time\ntime.sleep(600)\n"
    name = tune(server, a_tuning_job(source, trials=1))
    job = until(lambda: server.get(f"/v1/{name}").get("trials", [{}])[0].get("customJob"))
    until(lambda: server.lines(job) or None)
    server.post(f"/v1/{name}/trials/1:stop")
    ended = wait_study(server, name)
    assert ended["state"] in FINAL
    [row] = server.get(f"/v1/{name}/trials")["trials"]
    assert row["stopReason"]
    assert row["state"] == "SUCCEEDED", row


def test_what_is_not_there_is_not_found(server: LiveServer) -> None:
    for verb, path in (
        ("GET", "1"),
        ("GET", "1:analysis"),
        ("GET", "1:curves"),
        ("GET", "1:best"),
        ("GET", "1:other"),
        ("POST", "1:stop"),
        ("POST", "1:resume"),
        ("POST", "1:cancel"),
        ("GET", "1/trials"),
        ("POST", "1/trials/1:stop"),
    ):
        assert server.request(verb, f"{TUNING}/{path}", {} if verb == "POST" else None).status == 404

"""Jobs of the older API with hyperparameters, by the requests that the real gcloud sends."""

import json
from typing import Any

import pytest

from tests.conformance.ai_platform_model import JOBS, AiPlatform, printed
from tests.conformance.test_ai_platform import Name, container, ended, fresh, good
from tests.live import LiveServer

__all__ = ["fresh"]

PROGRAM = """
import json, os, sys
from trainshed import report
args = dict(word[2:].split("=") for word in sys.argv[1:] if "=" in word)
config = json.loads(os.environ["TF_CONFIG"])
print(json.dumps({"args": sys.argv[1:], "task": config["task"], "trial": os.environ["CLOUD_ML_TRIAL_ID"]}))
report.step(1, accuracy=float(args["x"]))
"""
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def gcloud(server: LiveServer) -> AiPlatform:
    return AiPlatform(server)


def tuned(job: str, source: str = PROGRAM, **changes: Any) -> dict[str, Any]:
    hyperparameters = {
        "goal": "MAXIMIZE",
        "hyperparameterMetricTag": "accuracy",
        "maxTrials": 3,
        "maxParallelTrials": 3,
        "params": [{"parameterName": "x", "type": "DOUBLE", "minValue": 0.0, "maxValue": 1.0}],
        **changes,
    }
    return container(job, source, hyperparameters=hyperparameters, args=["--epochs", "3"])


def test_a_job_with_hyperparameters_tunes_and_describes_its_trials(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("tuned")
    made = good(gcloud.submit(tuned(job)))
    assert (made["jobId"], made["state"]) == (job, made["state"])
    done = ended(gcloud, job)
    assert done["state"] == "SUCCEEDED", done
    output = done["trainingOutput"]
    assert (output["completedTrialCount"], output["isHyperparameterTuningJob"]) == ("3", True)
    values = [trial["finalMetric"]["objectiveValue"] for trial in output["trials"]]
    assert values == sorted(values, reverse=True)
    for trial in output["trials"]:
        assert float(trial["hyperparameters"]["x"]) == trial["finalMetric"]["objectiveValue"]
        assert trial["state"] == "SUCCEEDED"
    assert done["trainingInput"]["hyperparameters"]["maxTrials"] == 3
    entries = list(gcloud.stream_logs(job))
    lines = {}
    for entry in entries:
        _, task, text = printed(entry)
        if task == "master-replica-0":
            lines[entry["labels"]["ml.googleapis.com/trial_id"]] = json.loads(text)
    assert set(lines) == {"1", "2", "3"}
    for trial, line in lines.items():
        assert (line["trial"], line["task"]["trial"], line["task"]["type"]) == (trial, trial, "master")
        assert line["args"][:2] == ["--epochs", "3"]


def test_it_is_listed_among_the_others_and_its_name_is_taken(gcloud: AiPlatform, fresh: Name) -> None:
    plain, job = fresh("plain"), fresh("listed")
    good(gcloud.submit(container(plain, "print('hello')")))
    good(gcloud.submit(tuned(job, maxTrials=1)))
    last = fresh("last")
    good(gcloud.submit(container(last, "print('hello')")))
    found, token = [], ""
    while len(found) < 3:
        page = good(gcloud.list(token, size=1))
        found += [row["jobId"] for row in page["jobs"]]
        token = page.get("nextPageToken", "")
    assert found == [last, job, plain]
    for body in (tuned(job), container(job, "print()"), tuned(plain)):
        assert gcloud.submit(body).status == 409
    assert (
        good(gcloud.call("GET", JOBS, "jobs.list", query=f"&filter=jobId:{job}"))["jobs"][0]["jobId"] == job
    )
    for name in (plain, job, last):
        ended(gcloud, name)


def test_cancel_labels_and_an_earlier_job(gcloud: AiPlatform, fresh: Name) -> None:
    job = fresh("cancelled")
    made = good(gcloud.submit(tuned(job, SLEEP)))
    changed = good(gcloud.update(job, {"team": "vision"}, made["etag"]))
    assert changed["labels"] == {"team": "vision"}
    assert gcloud.update(job, {"team": "other"}, made["etag"]).status == 400
    assert good(gcloud.cancel(job)) == {}
    assert ended(gcloud, job)["state"] == "CANCELLED"
    assert gcloud.cancel(job).status == 400
    missing = gcloud.submit(tuned(fresh("resumed"), resumePreviousJobId="nobody"))
    assert "training_input.hyperparameters.resume_previous_job_id" in missing.violations
    resumed = fresh("resumed")
    good(gcloud.submit(tuned(resumed, maxTrials=1, resumePreviousJobId=job)))
    assert ended(gcloud, resumed)["state"] == "SUCCEEDED"

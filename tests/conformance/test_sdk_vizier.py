"""The real SDK's Vizier client over REST, unmodified, against a live server: ask and tell."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.live import PARENT, LiveServer, until

Unique = Callable[[str], str]
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "tuning.md"
HIGH = {"accuracy": "MAXIMIZE"}


def _has_vizier() -> bool:
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", "import vizier"], check=False).returncode == 0


pytestmark = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.skipif(not _has_vizier(), reason="google-vizier is not in .venv-sdk: make sdk"),
]


@pytest.fixture
def study(sdk: Sdk, server: LiveServer, unique: Unique) -> str:
    return sdk("studies.create", server, name=unique("study"), metrics=HIGH)


def test_fifteen_trials_are_suggested_measured_and_completed(
    sdk: Sdk, server: LiveServer, study: str
) -> None:
    told = sdk("studies.tune", server, study=study, trials=15)
    assert [trial["uid"] for trial in told] == list(range(1, 16))
    for trial in told:
        assert trial["status"] == "COMPLETED"
        assert trial["worker"] == "worker-0"
        assert trial["stops"] == [False] * 3
        assert [one["steps"] for one in trial["measurements"]] == [1, 2, 3]
        assert trial["completed"] == trial["final"]
        assert trial["final"]["steps"] == 4
        point = trial["parameters"]
        assert 1e-4 <= point["lr"] <= 1
        assert point["layers"] in range(1, 9)
        assert point["batch"] in (16, 32, 64)
        assert point["optimizer"] in ("adam", "sgd")
    assert len({str(trial["parameters"]) for trial in told}) == 15
    best = max(told, key=lambda trial: trial["final"]["metrics"]["accuracy"])
    (optimal,) = sdk("studies.optimal", server, study=study)
    assert optimal["uid"] == best["uid"]
    assert optimal["final"] == best["final"]
    assert sdk("studies.trials", server, study=study) == list(range(1, 16))
    assert sdk("studies.pages", server, study=study, size=6) == [
        [str(number) for number in range(first, min(first + 6, 16))] for first in (1, 7, 13)
    ]


def test_a_study_is_found_by_id_by_name_and_in_the_list_until_it_is_deleted(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    name = unique("found")
    study = sdk("studies.create", server, name=name, metrics=HIGH, algorithm="RANDOM_SEARCH")
    assert sdk("studies.create", server, name=name, metrics=HIGH) == study, "create_or_load loads it"
    assert sdk("studies.lookup", server, name=name) == study
    assert sdk("studies.from_uid", server, uid=study.rpartition("/")[2]) == name
    assert name in sdk("studies.names", server)
    again = {"displayName": name, "studySpec": server.get(f"/v1/{study}")["studySpec"]}
    assert server.request("POST", f"{PARENT}/studies", again).status == 409
    assert sdk("studies.state", server, study=study) == "ACTIVE"
    assert sdk("studies.config", server, study=study) == {
        "metrics": {"accuracy": "MAXIMIZE"},
        "algorithm": "RANDOM_SEARCH",
        "parameters": ["lr", "layers", "batch", "optimizer"],
    }
    sdk("studies.delete", server, study=study)
    assert name not in sdk("studies.names", server)
    for call, given in (("lookup", {"name": name}), ("state", {"study": study})):
        with pytest.raises(SdkError) as refused:
            sdk(f"studies.{call}", server, **given)
        assert refused.value.type == "NotFound"
    assert sdk("studies.create", server, name=name, metrics=HIGH) != study


def test_a_client_that_asks_again_gets_its_open_trials_and_others_get_new_ones(
    sdk: Sdk, server: LiveServer, study: str
) -> None:
    (first,) = sdk("studies.suggest", server, study=study, worker="a")
    assert first["status"] == "ACTIVE"
    assert sdk("studies.suggest", server, study=study, worker="a") == [first]
    (other,) = sdk("studies.suggest", server, study=study, worker="b")
    assert other["uid"] != first["uid"]
    more = sdk("studies.suggest", server, study=study, worker="a", count=3)
    assert more[0] == first
    assert len({trial["uid"] for trial in [*more, other]}) == 4
    sdk("studies.complete", server, study=study, uid=first["uid"], value={"accuracy": 0.5})
    assert first["uid"] not in [t["uid"] for t in sdk("studies.suggest", server, study=study, worker="a")]
    assert len(sdk("studies.suggest", server, study=study, worker="", count=2)) == 2


def test_a_server_that_is_killed_between_suggest_and_complete_issues_the_same_trial_again(
    mortal: LiveServer, sdk: Sdk, unique: Unique
) -> None:
    study = sdk("studies.create", mortal, name=unique("killed"), metrics=HIGH)
    trials = sdk("studies.suggest", mortal, study=study, worker="a", count=2)
    sdk("studies.measure", mortal, study=study, uid=1, value={"accuracy": 0.25}, steps=7, elapsed=2.5)
    mortal.kill()
    mortal.start()
    again = sdk("studies.suggest", mortal, study=study, worker="a", count=2)
    assert [trial["parameters"] for trial in again] == [trial["parameters"] for trial in trials]
    assert again[0]["measurements"] == [{"steps": 7, "elapsed": 2, "metrics": {"accuracy": 0.25}}]
    assert again[1] == trials[1]
    done = sdk("studies.complete", mortal, study=study, uid=1)
    mortal.kill()
    mortal.start()
    assert done["final"]["metrics"] == {"accuracy": 0.25}
    assert sdk("studies.trial", mortal, study=study, uid=1) == done
    (left,) = sdk("studies.suggest", mortal, study=study, worker="a")
    assert left == trials[1]


def test_a_trial_is_completed_once_with_its_last_measurement_or_as_infeasible(
    sdk: Sdk, server: LiveServer, study: str
) -> None:
    sdk("studies.suggest", server, study=study, worker="a", count=4)
    for step, value in ((1, 0.3), (2, 0.9), (3, 0.6)):
        sdk("studies.measure", server, study=study, uid=1, value={"accuracy": value}, steps=step)
    done = sdk("studies.complete", server, study=study, uid=1)
    assert done["final"] == {"steps": 3, "elapsed": 0, "metrics": {"accuracy": 0.6}}
    with pytest.raises(SdkError) as refused:
        sdk("studies.complete", server, study=study, uid=1, value={"accuracy": 1.0})
    assert refused.value.code == 400
    assert "completed already" in refused.value.text
    reason = sdk("studies.complete", server, study=study, uid=2, reason="out of memory")
    assert (reason["status"], reason["infeasible"]) == ("COMPLETED", "out of memory")
    nothing = sdk("studies.complete", server, study=study, uid=3)
    assert "without a measurement" in nothing["infeasible"]
    with pytest.raises(SdkError) as missing:
        sdk("studies.complete", server, study=study, uid=4, value={"loss": 1.0})
    assert list(missing.value.violations) == ["final_measurement.metrics"]
    assert sdk("studies.complete", server, study=study, uid=4, value={"accuracy": 0.0})["final"][
        "metrics"
    ] == {"accuracy": 0.0}


def test_a_value_that_is_no_number_makes_its_trial_infeasible(
    sdk: Sdk, server: LiveServer, study: str
) -> None:
    sdk("studies.suggest", server, study=study, worker="a")
    answer = server.post(
        f"/v1/{study}/trials/1:complete",
        {"finalMeasurement": {"metrics": [{"metricId": "accuracy", "value": "NaN"}]}},
    )
    assert answer["state"] == "INFEASIBLE"
    assert "accuracy was nan" in answer["infeasibleReason"]
    assert sdk("studies.optimal", server, study=study) == []


def test_the_number_of_a_deleted_trial_is_never_given_again(sdk: Sdk, server: LiveServer, study: str) -> None:
    sdk("studies.suggest", server, study=study, worker="a", count=3)
    sdk("studies.delete_trial", server, study=study, uid=3)
    sdk("studies.delete_trial", server, study=study, uid=1)
    assert sdk("studies.trials", server, study=study) == [2]
    assert [t["uid"] for t in sdk("studies.suggest", server, study=study, worker="b")] == [4]
    with pytest.raises(SdkError) as refused:
        sdk("studies.trial", server, study=study, uid=3)
    assert refused.value.type == "NotFound"


def test_a_trial_of_ones_own_is_suggested_first_and_must_fit(
    sdk: Sdk, server: LiveServer, study: str
) -> None:
    point = {"lr": 0.01, "layers": 2, "batch": 32, "optimizer": "sgd"}
    assert sdk("studies.create_trial", server, study=study, parameters=point) == f"{study}/trials/1 REQUESTED"
    (trial,) = sdk("studies.suggest", server, study=study, worker="a")
    assert (trial["uid"], trial["parameters"]) == (1, point)
    with pytest.raises(SdkError) as refused:
        sdk("studies.create_trial", server, study=study, parameters=point | {"lr": 7, "momentum": 0.9})
    assert refused.value.violations == {
        "parameters.lr": "must not be 7.0: it is a number from 0.0001 to 1.",
        "parameters.momentum": "is no parameter.",
    }


def test_a_stopped_trial_should_stop_and_counts_with_its_last_measurement(
    sdk: Sdk, server: LiveServer, study: str
) -> None:
    sdk("studies.suggest", server, study=study, worker="a")
    sdk("studies.measure", server, study=study, uid=1, value={"accuracy": 0.5}, steps=1)
    assert sdk("studies.should_stop", server, study=study, uid=1) is False
    assert sdk("studies.stop_trial", server, trial=f"{study}/trials/1") == "STOPPING"
    assert sdk("studies.should_stop", server, study=study, uid=1) is True
    assert sdk("studies.complete", server, study=study, uid=1)["final"]["metrics"] == {"accuracy": 0.5}


def test_several_objectives_have_a_pareto_front(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    goals = {"accuracy": "MAXIMIZE", "cost": "MINIMIZE"}
    study = sdk("studies.create", server, name=unique("pareto"), metrics=goals)
    sdk("studies.suggest", server, study=study, worker="a", count=4)
    for uid, (accuracy, cost) in enumerate([(0.9, 5.0), (0.8, 1.0), (0.7, 3.0), (0.95, 9.0)], 1):
        sdk("studies.complete", server, study=study, uid=uid, value={"accuracy": accuracy, "cost": cost})
    assert [trial["uid"] for trial in sdk("studies.optimal", server, study=study)] == [1, 2, 4]


def test_early_stopping_is_asked_for_and_answered(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    study = sdk("studies.create", server, name=unique("stops"), metrics=HIGH, stopping=True)
    assert "decayCurveStoppingSpec" in server.get(f"/v1/{study}")["studySpec"]
    told = sdk("studies.tune", server, study=study, trials=1)
    assert told[0]["stops"] == [False] * 3


def test_a_beta_client_gets_operations_of_its_own_types(sdk: Sdk, server: LiveServer, study: str) -> None:
    assert sdk("studies.suggest_as_beta", server, study=study) == {
        "trials": [f"{study}/trials/1"],
        "client": "beta",
        "stop": False,
    }


def test_an_operation_can_be_got_again(server: LiveServer, sdk: Sdk, study: str) -> None:
    operation = server.post(f"/v1/{study}/trials:suggest", {"suggestionCount": 1, "clientId": "a"})
    assert operation["done"] is True
    assert operation["response"]["studyState"] == "ACTIVE"
    for root in ("v1", "v1beta1", "ui"):
        assert server.get(f"/{root}/{operation['name']}") == operation
    check = server.post(f"/v1/{study}/trials/1:checkTrialEarlyStoppingState")
    assert server.get(f"/v1/{check['name']}") == check
    assert server.request("GET", f"/v1/{study}/operations/1").status == 404


def test_a_study_ends_after_its_last_trial(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    study = server.post(
        f"{PARENT}/studies",
        {
            "displayName": unique("grid"),
            "studySpec": {
                "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
                "parameters": [{"parameterId": "n", "integerValueSpec": {"minValue": 1, "maxValue": 3}}],
                "studyStoppingConfig": {"maxNumTrials": 2},
            },
        },
    )["name"]
    assert len(sdk("studies.suggest", server, study=study, worker="a", count=5)) == 2
    assert sdk("studies.suggest", server, study=study, worker="b") == []
    for uid in (1, 2):
        sdk("studies.complete", server, study=study, uid=uid, value={"accuracy": 0.5})
    assert sdk("studies.suggest", server, study=study, worker="a") == []
    until(lambda: sdk("studies.state", server, study=study) == "COMPLETED")


def test_the_program_of_the_guide_does_what_it_says(sdk: Sdk, server: LiveServer) -> None:
    section = GUIDE.read_text().partition("## Ask and tell")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (best,) = sdk("studies.page", server, block=block)
    assert best in range(1, 16)

"""The real SDK's HyperparameterTuningJob over REST, unmodified, against a live server."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.sdk_session import PYTHON, Sdk, SdkError
from tests.live import IMAGE, LiveServer

Unique = Callable[[str], str]

pytestmark = [
    pytest.mark.needs_sdk,
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="google-cloud-aiplatform is not in .venv-sdk: make sdk"),
]
PROGRAM = """
import argparse, time
from trainshed import report
parser = argparse.ArgumentParser()
for name in ("lr", "momentum", "warmup", "dropout"):
    parser.add_argument(f"--{name}", type=float)
for name in ("layers", "width", "batch"):
    parser.add_argument(f"--{name}", type=int)
parser.add_argument("--optimizer", choices=["sgd", "adam"])
args = parser.parse_args()
assert (args.momentum is not None) == (args.optimizer == "sgd"), args
assert (args.width is not None) == (args.layers == 2), args
assert (args.warmup is not None) == (args.batch == 64), args
report.step(1, accuracy=0.9)
time.sleep(2.5)
report.step(2, accuracy=0.5)
"""


def python(source: str) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": IMAGE, "command": ["python", "-c", source], "args": []},
    }


SLEEP = python("import time; time.sleep(600)")


@pytest.mark.parametrize(("selection", "value"), [("best", 0.9), ("last", 0.5)])
def test_every_kind_of_parameter_and_trials_read_back(
    sdk: Sdk, server: LiveServer, unique: Unique, selection: str, value: float
) -> None:
    done = sdk(
        "tuning.run",
        server,
        name=unique("sdk"),
        pools=[python(PROGRAM)],
        trials=4,
        parallel=4,
        search_algorithm="random",
        measurement_selection=selection,
        labels={"team": "vision"},
    )
    assert done["state"] == "JOB_STATE_SUCCEEDED", done
    assert done["labels"] == {"team": "vision"}
    assert [trial["id"] for trial in done["trials"]] == ["1", "2", "3", "4"]
    for trial in done["trials"]:
        point = trial["parameters"]
        assert trial["state"] == "SUCCEEDED", trial
        assert trial["final"] == {"accuracy": value}
        assert [item["accuracy"] for item in trial["measurements"]][-1] == 0.5
        assert trial["seconds"] > 2
        assert "/customJobs/" in trial["job"]
        assert ("momentum" in point) == (point["optimizer"] == "sgd")
        assert ("width" in point) == (point["layers"] == 2.0)
        assert ("warmup" in point) == (point["batch"] == 64.0)
    by_id = {row["parameter_id"]: row for row in done["spec"]["parameters"]}
    assert by_id["lr"]["scale_type"] == "UNIT_LOG_SCALE"
    [below] = by_id["optimizer"]["conditional_parameter_specs"]
    assert below["parent_categorical_values"]["values"] == ["sgd"]
    assert below["parameter_spec"]["parameter_id"] == "momentum"
    assert done["spec"]["algorithm"] == "RANDOM_SEARCH"


def test_a_study_whose_trials_fail_raises_with_its_reason(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("tuning.run", server, name=unique("fails"), pools=[python("raise SystemExit(7)")])
    assert caught.value.type == "RuntimeError"
    assert "None of them succeeded" in caught.value.text


def test_list_get_cancel_and_delete(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    name = unique("life")
    made = sdk("tuning.submit", server, name=name, pools=[SLEEP])
    assert sdk("tuning.get", server, name=made["resource_name"])["display_name"] == name
    cancelled = sdk("tuning.cancel", server, name=made["resource_name"])
    assert cancelled["state"] == "JOB_STATE_CANCELLED"
    [[listed, trials]] = sdk("tuning.find", server, filter=f'display_name="{name}"')
    assert listed == name and trials in (0, 2)  # none where the cancel came before the first suggestion
    sdk("tuning.delete", server, name=made["resource_name"])
    assert sdk("tuning.find", server, filter=f'display_name="{name}"') == []


def test_every_violation_is_in_the_exception(sdk: Sdk, server: LiveServer, unique: Unique) -> None:
    with pytest.raises(SdkError) as caught:
        sdk("tuning.submit", server, name=unique("grid"), pools=[SLEEP], search_algorithm="grid", trials=0)
    assert caught.value.code == 400
    assert {"max_trial_count", "study_spec.parameters[0].double_value_spec"} <= set(caught.value.violations)


def test_the_generated_client_reads_back_the_stopping_rules_it_sent(
    sdk: Sdk, server: LiveServer, unique: Unique
) -> None:
    read = sdk("tuning.with_stopping", server, name=unique("rules"), pools=[SLEEP])
    assert "max_step_count: 10" in read["spec"]
    assert "max_num_trials" in read["spec"]
    sdk("tuning.cancel", server, name=read["name"])

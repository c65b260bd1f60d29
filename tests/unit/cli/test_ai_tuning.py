"""`trainshed ai hp-tuning-jobs create`: flags and file, as the tuning job that is sent."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainshed.cli.ai.given import Key
from trainshed.cli.ai.tuning.words import EXAMPLE, TuningWords
from trainshed.cli.failure import CommandFailed
from trainshed.yaml_document import read_document

NOW = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)
PRINTED = Path(__file__).parents[2] / "acceptance" / "seed_004" / "hp_config.yaml"


def body(text: str, **given: Any) -> Any:
    fields, _ = read_document("hp.yaml", text)
    return TuningWords(**given).body("hp.yaml", fields, ("p", "r"), NOW)


def test_the_printed_file_has_its_counts_moved_to_where_the_api_has_them():
    sent = body(PRINTED.read_text(), display_name="hp-tuning")
    assert (sent["maxTrialCount"], sent["parallelTrialCount"]) == (20, 4)
    assert set(sent["studySpec"]) == {"metrics", "parameters", "algorithm"}
    assert sent["studySpec"]["parameters"][0]["scaleType"] == "UNIT_LOG_SCALE"
    assert sent["displayName"] == "hp-tuning"


def test_a_scale_inside_the_value_spec_is_moved_beside_it_at_any_depth():
    sent = body(
        """
        study_spec:
          metrics: [{metricId: m, goal: MINIMIZE}]
          parameters:
          - parameterId: kind
            categoricalValueSpec: {values: [a]}
            conditionalParameterSpecs:
            - parentCategoricalValues: {values: [a]}
              parameterSpec:
                parameterId: lr
                double_value_spec: {min_value: 1, maxValue: 2, scale_type: UNIT_LOG_SCALE}
        trialJobSpec: {workerPoolSpecs: []}
        """
    )
    [kind] = sent["studySpec"]["parameters"]
    lr = kind["conditionalParameterSpecs"][0]["parameterSpec"]
    assert lr["scaleType"] == "UNIT_LOG_SCALE"
    assert lr["double_value_spec"] == {"min_value": 1, "maxValue": 2}
    assert "scaleType" not in kind


def test_a_count_at_the_top_wins_over_one_inside_and_a_flag_over_both():
    text = f"{EXAMPLE}\n".replace("studySpec:\n", "studySpec:\n  maxTrialCount: 3\n")
    assert body(text)["maxTrialCount"] == 20
    assert body(text, max_trial_count=7, parallel_trial_count=2)["maxTrialCount"] == 7


def test_an_absent_count_is_one_and_an_absent_name_is_made_up():
    sent = body("studySpec: {metrics: []}\ntrialJobSpec: {workerPoolSpecs: []}")
    assert (sent["maxTrialCount"], sent["parallelTrialCount"]) == (1, 1)
    assert sent["displayName"] == "hp-tuning-20260131-120005"


def test_flags_reach_the_study_and_the_template():
    sent = body(
        EXAMPLE,
        algorithm="grid-search",
        network="n",
        service_account="a@b",
        enable_web_access=True,
        labels=("a=b,c=d",),
        kms=Key(key="k", keyring="ring"),
    )
    assert sent["studySpec"]["algorithm"] == "GRID_SEARCH"
    template = sent["trialJobSpec"]
    assert (template["network"], template["serviceAccount"], template["enableWebAccess"]) == (
        "n",
        "a@b",
        True,
    )
    assert sent["labels"] == {"a": "b", "c": "d"}
    assert sent["encryptionSpec"] == {"kmsKeyName": "projects/p/locations/r/keyRings/ring/cryptoKeys/k"}


@pytest.mark.parametrize("text", ["trialJobSpec: {}", "studySpec: {}", "studySpec: 3\ntrialJobSpec: {}"])
def test_a_file_without_its_two_parts_is_refused_with_an_example(text: str):
    with pytest.raises(CommandFailed) as refused:
        body(text)
    assert "has no" in refused.value.message
    assert "parallelTrialCount: 4" in refused.value.details

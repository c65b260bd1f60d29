"""Whatever is sent to the older API is understood or refused with violations; nothing else ever happens."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire.bodies import OFFER, any_json, names
from trainshed.core.errors import Invalid
from trainshed.core.jobs.job import MAX_REPLICAS
from trainshed.dialects.ai_platform.filter import parse_training_filter
from trainshed.dialects.ai_platform.job import parse_labels, parse_training_job
from trainshed.dialects.ai_platform.schema import TrainingJobBody

NAMES = names(TrainingJobBody)
WORDS = (
    "CUSTOM",
    "PREMIUM_1",
    "BASIC_TPU",
    "cloud_tpu",
    "standard",
    "2.0",
    "trainer.task",
    "gs://b/x",
    "60s",
)
JSON = any_json(NAMES, *WORDS, "1", "-1", "TPU_V2", "NVIDIA_TESLA_T4", "DOUBLE", "MAXIMIZE", widest=6)


@given(st.dictionaries(NAMES, JSON, max_size=6))
@settings(max_examples=200)
def test_any_json_is_understood_or_refused(body: dict[str, Any]) -> None:
    good = {"region": "r", "masterConfig": {"imageUri": "i"}}
    for one in (body, {"jobId": "j", "trainingInput": body}, {"jobId": "j", "trainingInput": good | body}):
        try:
            draft = parse_training_job(one, OFFER)
        except Invalid as error:
            assert error.violations
            assert all(violation.description for violation in error.violations)
            assert len(error.message) < 5000
        else:
            assert draft.spec.pools and draft.spec.pools[0].replicas == 1
            assert all(pool.replicas <= MAX_REPLICAS for pool in draft.spec.pools)
            json.dumps(draft.training_input, allow_nan=False)
        try:
            parse_labels(one)
        except Invalid as error:
            assert error.violations


@given(
    st.lists(
        st.sampled_from(["jobId", "state", ":", "=", "labels.a", "AND", "(", ")", "PREPARING", "-", "x*"])
    )
)
@settings(max_examples=200)
def test_any_filter_is_understood_or_refused(words: list[str]) -> None:
    for text in ("".join(words), " ".join(words)):
        try:
            parse_training_filter(text)
        except Invalid as error:
            assert "display_name" not in error.message

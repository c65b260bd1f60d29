"""Images that each can run, but not in one job."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.wire.bodies import OFFER, a_body, a_pool
from trainshed.core.errors import Invalid
from trainshed.dialects.ai_platform.job import parse_training_job
from trainshed.wire.custom_job import parse_custom_job

ASKED: list[tuple[str, ...]] = []


def refuse(images: Sequence[str]) -> str | None:
    ASKED.append(tuple(images))
    return "These do not go together." if "box" in images else None


MIXED = replace(OFFER, refuse_together=refuse)


def pool(image: str) -> dict[str, Any]:
    return a_pool(containerSpec={"imageUri": image})


def violations(body: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        parse_custom_job(body, MIXED)
    return {one.field: one.description for one in caught.value.violations}


def test_images_that_cannot_be_in_one_job_are_refused_with_the_backends_sentence():
    ASKED.clear()
    assert violations(a_body(pool("a"), {}, pool("box"))) == {
        "job_spec.worker_pool_specs": "These do not go together."
    }
    assert ASKED == [("a", "box")]


def test_one_image_goes_together_with_itself_and_nobody_is_asked():
    ASKED.clear()
    parse_custom_job(a_body(pool("box"), pool("box")), MIXED)
    assert ASKED == []


def test_an_image_that_cannot_run_at_all_is_told_alone():
    told = violations(a_body(pool("refused"), pool("box")))
    assert list(told) == ["job_spec.worker_pool_specs[0].container_spec.image_uri"]


def test_jobs_of_the_older_api_are_held_to_it_too():
    given = {
        "region": "us-central1",
        "masterType": "n1-standard-4",
        "masterConfig": {"imageUri": "a"},
        "workerType": "n1-standard-4",
        "workerCount": 1,
        "workerConfig": {"imageUri": "box"},
    }
    with pytest.raises(Invalid) as caught:
        parse_training_job({"jobId": "j", "trainingInput": given}, MIXED)
    assert [one.description for one in caught.value.violations] == ["These do not go together."]

"""jobSpec.workingDirectory: a place in the job's code, told back only where given."""

import pytest

from tests.unit.wire.bodies import OFFER, a_body, a_job, faults
from trainshed.wire.custom_job import parse_custom_job, render_custom_job

CODE = "0" * 64


def test_a_place_in_the_code_is_kept_and_told_back() -> None:
    body = a_body(code=CODE, workingDirectory="experiments/one")
    assert parse_custom_job(body, OFFER).spec.working_directory == "experiments/one"
    assert render_custom_job(a_job(body))["jobSpec"]["workingDirectory"] == "experiments/one"
    assert "workingDirectory" not in render_custom_job(a_job(a_body(code=CODE)))["jobSpec"]


@pytest.mark.parametrize("place", ["/etc", "../other", "a//b", ".git", "a\0b"])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    assert list(faults(a_body(code=CODE, workingDirectory=place))) == ["job_spec.working_directory"]


def test_without_code_there_is_no_place_in_it() -> None:
    assert list(faults(a_body(workingDirectory="experiments"))) == ["job_spec.working_directory"]

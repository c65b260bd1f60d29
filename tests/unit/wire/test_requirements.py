"""jobSpec.requirements: understood, told back only where given, every wrong line named."""

from tests.unit.wire.bodies import OFFER, a_body, a_job, faults
from trainshed.wire.custom_job import parse_custom_job, render_custom_job


def test_lines_are_kept_in_one_order_without_comments_and_told_back() -> None:
    body = a_body(requirements=["six", "numpy>=2  # for speed", "", "six"])
    assert parse_custom_job(body, OFFER).spec.requirements == ("numpy>=2", "six")
    assert render_custom_job(a_job(body))["jobSpec"]["requirements"] == ["numpy>=2", "six"]


def test_clients_that_never_asked_for_it_never_meet_it() -> None:
    assert "requirements" not in render_custom_job(a_job(a_body()))["jobSpec"]


def test_every_wrong_line_is_named_by_its_place() -> None:
    found = faults(a_body(requirements=["six", "-r more.txt", "numpy", "./local"]))
    assert list(found) == ["job_spec.requirements[1]", "job_spec.requirements[3]"]


def test_something_else_than_texts_is_refused() -> None:
    assert list(faults(a_body(requirements="six"))) == ["job_spec.requirements"]

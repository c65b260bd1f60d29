"""The page of a job names what it asks first."""

import pytest

from trainshed.console.first_questions import first_questions

JOB = "/v1/projects/p/locations/l/customJobs/7"
PAGE = [f"{JOB}?view=trainshed", f"{JOB}:status?view=trainshed"]


@pytest.mark.parametrize(
    ("address", "questions"),
    [
        ("", []),
        ("jobs", []),
        ("studies/p/l/7", []),
        ("jobs/-/-/7", []),
        ("jobs/p/l", []),
        ("jobs/p/l/7", PAGE),
        ("jobs/p/l/7/spec", PAGE),
        ("jobs/p/l/7/logs", [*PAGE, f"{JOB}:lines?line=-300&count=300"]),
        ("jobs/p/l/7/graphs", [*PAGE, f"{JOB}:graphs?points=720"]),
    ],
)
def test_the_address_of_a_job_asks_for_it_and_for_what_its_tab_shows(address: str, questions: list[str]):
    assert first_questions(address, has_query=False) == questions


def test_with_a_query_the_tab_asks_by_itself():
    assert first_questions("jobs/p/l/7/logs", has_query=True) == PAGE


def test_what_somebody_typed_stays_inside_the_path():
    assert first_questions('jobs/p/l/7?x="><script>', has_query=False)[0] == (
        "/v1/projects/p/locations/l/customJobs/7%3Fx%3D%22%3E%3Cscript%3E?view=trainshed"
    )

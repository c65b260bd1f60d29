"""How long a job's right to buckets lasts, and what its programs and people are told of it."""

import json
from dataclasses import replace

from tests.builders import a_job, at
from trainshed.core.jobs.access import GRACE, HIDDEN, bucket_env, lasts_until, masked, told_env
from trainshed.core.jobs.job import JobState, Status

TOKEN = "job.1794777072957917925." + "q" * 43


def test_a_right_lasts_while_the_job_does_and_a_minute_longer() -> None:
    job = a_job()
    for state in JobState:
        found = replace(job, status=Status(state=state, ended_at=at(5)))
        assert lasts_until(found) == (at(5) + GRACE if state.is_final else None)


def test_a_job_that_ended_at_no_known_time_has_ended_when_it_was_last_written() -> None:
    job = replace(a_job(), status=Status(state=JobState.FAILED, updated_at=at(7)))
    assert lasts_until(job) == at(7) + GRACE


def test_every_client_is_told_the_address_with_the_token() -> None:
    env = bucket_env("http://127.0.0.1:8080", TOKEN, "p1")
    keyed = f"http://127.0.0.1:8080/t/{TOKEN}"
    assert env["STORAGE_EMULATOR_HOST"] == keyed
    assert json.loads(env["GOOGLE_SERVICE_ACCOUNT_KEY"])["gcs_base_url"] == keyed
    assert env["CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"] == "http://127.0.0.1:8080/"
    assert env["CLOUDSDK_AUTH_ACCESS_TOKEN"] == TOKEN


def test_people_are_told_the_names_and_not_what_carries_the_token() -> None:
    told = told_env("p1")
    assert told.keys() == bucket_env("a", TOKEN, "p1").keys()
    secret = {name for name, value in bucket_env("", TOKEN, "p1").items() if TOKEN in value}
    assert len(secret) == 3
    assert all(told[name] == HIDDEN for name in secret)
    assert told["CLOUDSDK_CORE_PROJECT"] == "p1"


def test_a_token_in_an_error_message_is_masked() -> None:
    text = f"403 POST http://127.0.0.1:8080/t/{TOKEN}/upload/storage/v1/b/x: no"
    assert (
        masked(text) == "403 POST http://127.0.0.1:8080/t/job.1794777072957917925.…/upload/storage/v1/b/x: no"
    )
    assert masked(f"{TOKEN} {TOKEN}").count("…") == 2
    assert masked("a job.well.done is left alone") == "a job.well.done is left alone"

"""Which variables are secrets, and what is shown instead of them."""

from dataclasses import replace

import pytest

from tests.builders import a_job, admitted
from trainshed.core.errors import Unavailable
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.jobs.launch import Launch
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.secret import MASK, all_secrets, is_secret_name, masked, shown_env, with_secrets


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "hf_token", "TOKEN", "GITHUB_TOKEN_2", "AWS_SESSION_TOKEN", "CLIENT_SECRET"),
        *("DB_PASSWORD", "PGPASSWORD", "DB_PASSWD", "KEY_PASSPHRASE", "STORE_CREDENTIALS", "SOME_CREDENTIAL"),
        *("WANDB_API_KEY", "OPENAI_APIKEY", "AWS_SECRET_ACCESS_KEY", "SSH_PRIVATE_KEY", "DJANGO_SECRET_KEY"),
    ],
)
def test_a_name_that_ends_in_a_secrets_word_is_a_secret(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("TOKENIZERS_PARALLELISM", "MAX_TOKENS", "TOKEN_LIMIT", "HF_TOKEN_PATH", "SECRET_NAME", "KEY"),
        *("SORT_KEY", "PUBLIC_KEY", "AWS_ACCESS_KEY_ID", "GOOGLE_APPLICATION_CREDENTIALS", "PASSES", "_", ""),
        *("PAD_TOKEN", "EOS_TOKEN", "AWS_SHARED_CREDENTIALS_FILE", "PASSWORD_FILE", "2"),
    ],
)
def test_a_name_that_only_contains_such_a_word_is_none(name: str):
    assert not is_secret_name(name)


def test_an_older_jobs_values_are_shown_as_masks_and_can_be_used_again():
    pool = Pool(replicas=1, env=(("HF_TOKEN", "clear"), ("MINE", MASK), ("LR", "0.1")))
    assert shown_env(pool) == (("HF_TOKEN", MASK), ("MINE", MASK), ("LR", "0.1"))
    assert all_secrets(JobSpec(pools=(pool,)), {0: {"MINE": "kept"}}) == {
        0: {"HF_TOKEN": "clear", "MINE": "kept"}
    }


def test_a_launch_gets_the_values_and_the_names_of_its_secrets():
    pool = Pool(replicas=1, env=(("HF_TOKEN", "clear"), ("MINE", MASK), ("LR", "0.1")))
    launch = _launch(dict(pool.env))
    ready = with_secrets(launch, pool, {"MINE": "kept"})
    assert ready.env == {"HF_TOKEN": "clear", "MINE": "kept", "LR": "0.1"}
    assert ready.secrets == {"HF_TOKEN", "MINE"}
    assert with_secrets(replace(launch, secrets=frozenset({"OURS"})), pool, {"MINE": "kept"}).secrets == {
        *("HF_TOKEN", "MINE", "OURS")
    }


def test_no_program_is_given_a_mask_as_its_secret():
    pool = Pool(replicas=1, env=(("MINE", MASK),))
    with pytest.raises(Unavailable, match="secret MINE is lost"):
        with_secrets(_launch(dict(pool.env)), pool, {})


def test_a_request_that_is_echoed_has_masks_in_each_list_of_variables():
    sent = {
        "workerPoolSpecs": [
            {"containerSpec": {"env": [{"name": "HF_TOKEN", "value": "x"}, {"name": "LR", "value": "1"}]}},
            {"pythonPackageSpec": {"env": [{"name": "MINE", "value": "y", "secret": True}, "odd"]}},
        ],
        "env": "odd",
    }
    assert masked(sent) == {
        "workerPoolSpecs": [
            {"containerSpec": {"env": [{"name": "HF_TOKEN", "value": MASK}, {"name": "LR", "value": "1"}]}},
            {"pythonPackageSpec": {"env": [{"name": "MINE", "value": MASK}, "odd"]}},
        ],
        "env": "odd",
    }


def _launch(env: dict[str, str]) -> Launch:
    return replace(Launches(admitted(a_job())).of(Replica(pool=0, index=0)), env=env)

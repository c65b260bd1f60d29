"""References to named secrets among the variables of a job: how they are told, shown and replaced."""

from dataclasses import replace

import pytest

from tests.builders import a_job, admitted
from trainshed.core.jobs.job import JobSpec, Pool
from trainshed.core.jobs.launching import Launches
from trainshed.core.jobs.named_secret import reference_of, references
from trainshed.core.jobs.replica import Replica
from trainshed.core.jobs.secret import (
    MASK,
    all_secrets,
    env_with_files,
    masked,
    secret_names,
    shown_env,
    with_secrets,
)

ENV = (("HF_TOKEN", "secret://hf"), ("API_KEY", MASK), ("EPOCHS", "3"), ("DB", "secret://db.password"))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("secret://hf", "hf"),
        ("secret://Hub_1.token-2", "Hub_1.token-2"),
        ("secret-file://key.json", "key.json"),
        ("secret-file://a/b", ""),
        ("secret://", ""),
        ("secret://a/b", ""),
        ("secret://.hidden", ""),
        (f"secret://{'a' * 201}", ""),
        ("xsecret://hf", ""),
        ("secret://hf\n", ""),
        ("hf", ""),
    ],
)
def test_a_reference_is_the_scheme_and_a_name(value: str, name: str) -> None:
    assert reference_of(value) == name


def test_references_are_shown_and_stay_hidden_in_files_of_runs() -> None:
    pool = Pool(env=ENV)
    assert references(pool.env) == {"HF_TOKEN": "hf", "DB": "db.password"}
    assert shown_env(pool) == ENV
    assert secret_names(pool) == {"HF_TOKEN", "API_KEY", "DB"}  # whose values no file of a run may have
    assert all_secrets(JobSpec(pools=(pool,)), {}) == {0: {}}


def test_a_document_keeps_its_references_and_hides_values() -> None:
    env = [{"name": "HF_TOKEN", "value": "secret://hf"}, {"name": "API_KEY", "value": "x"}]
    assert masked({"env": env}) == {"env": [env[0], {"name": "API_KEY", "value": MASK}]}


def test_a_file_has_the_value_and_the_variable_its_path_wherever_it_is_put() -> None:
    pool = Pool(env=(("KEY", "secret-file://key.json"), ("TOKEN", "secret://hf"), ("LR", "1")))
    assert references(pool.env) == {"KEY": "key.json", "TOKEN": "hf"}
    assert shown_env(pool) == pool.env
    launch = replace(Launches(admitted(a_job())).of(Replica(pool=0, index=0)), env=dict(pool.env))
    ready = with_secrets(launch, pool, {"KEY": "qqq", "TOKEN": "sss"})
    assert ready.secret_files == {"key.json": "qqq"}
    assert "qqq" not in repr(ready)
    assert ready.secrets == {"TOKEN"}
    assert env_with_files(ready, "/there") == {
        **{"TRAINSHED_SECRETS": "/there", "KEY": "/there/key.json", "TOKEN": "sss", "LR": "1"}
    }
    assert env_with_files(launch, "/there") == dict(pool.env)

"""Job files that somebody pastes: YAML and JSON become the body of a create, faults say where they are."""

import pytest

from trainshed.core.errors import Invalid
from trainshed.wire.job_text import parse_job_text

CONFIG = b"""
# as gcloud's --config takes it
worker_pool_specs:
- machine_spec: {machine_type: n1-standard-4}
  replica_count: 1
  container_spec:
    image_uri: trainshed/python:3
    command: [python, -c, "print('yes')"]
    env:
    - {name: snake_name, value: yes}
"""


def test_a_config_of_gcloud_becomes_a_job_with_names_in_camel_case():
    assert parse_job_text(CONFIG) == {
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": 1,
                    "containerSpec": {
                        "imageUri": "trainshed/python:3",
                        "command": ["python", "-c", "print('yes')"],
                        "env": [{"name": "snake_name", "value": "yes"}],
                    },
                }
            ]
        }
    }


def test_a_whole_job_keeps_the_names_of_its_labels():
    job = {"displayName": "a", "labels": {"run_name": "x"}, "jobSpec": {"workerPoolSpecs": []}}
    text = b'{"display_name": "a", "labels": {"run_name": "x"}, "job_spec": {"workerPoolSpecs": []}}'
    assert parse_job_text(text) == job


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"a: 1\na: 2\n", "the text:2: a is here a second time"),
        (b"a: [1, 2\nb: 3\n", "the text:2"),
        (b"just words", "does not hold a job"),
        (b"", "is empty"),
        (b"a: &a [*a]", "contains itself"),
        (b"\xff\xfe\xfa", "is not YAML"),
        (b"[" * 200_000, "nested more than"),
    ],
)
def test_a_text_that_is_no_job_file_is_refused_with_its_line(text: bytes, words: str):
    with pytest.raises(Invalid) as refusal:
        parse_job_text(text)
    assert words in " ".join(violation.description for violation in refusal.value.violations)

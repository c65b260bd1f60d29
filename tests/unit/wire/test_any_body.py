"""Whatever is sent: it is understood or refused with violations, and nothing else ever happens."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire.bodies import OFFER, a_body, a_job, a_pool, any_json, names, parsed
from trainshed.core.errors import Invalid
from trainshed.core.jobs.secret import is_secret_name
from trainshed.wire import job_schema
from trainshed.wire.custom_job import parse_custom_job, parse_job_file, render_custom_job

NAMES = names(job_schema.CustomJob)
JSON = any_json(NAMES, "1", "n1-standard-4", "3600s", "NVIDIA_TESLA_T4", "-1s", "trainer.task")


@given(st.dictionaries(NAMES, JSON, max_size=5))
@settings(max_examples=200)
def test_any_json_is_understood_or_refused(body: dict[str, Any]) -> None:
    for one in (body, {"displayName": "x", "jobSpec": body}, parse_job_file(body)):
        try:
            parse_custom_job(one, OFFER)
        except Invalid as error:
            assert error.violations
            assert all(violation.description for violation in error.violations)
            assert len(error.message) < 5000


def _is_shown(name: str) -> bool:
    """Whether it can be the name of a variable whose value is in answers: that of a secret is not."""
    return bool(name) and "=" not in name and name.isprintable() and not is_secret_name(name)


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
POOLS = st.builds(
    lambda count, args, env, machine: a_pool(
        replicaCount=count,
        machineSpec=machine,
        containerSpec={
            "imageUri": "i",
            "args": args,
            "env": [{"name": n, "value": v} for n, v in env.items()],
        },
    ),
    st.integers(1, 1000),
    st.lists(WORDS, max_size=4),
    st.dictionaries(WORDS.filter(_is_shown), WORDS, max_size=3),
    st.sampled_from(
        [
            {"machineType": "n1-highmem-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 4},
            {"machineType": "a2-highgpu-8g"},
            {"machineType": "e2-micro", "tpuTopology": "2x2"},
        ]
    ),
) | st.just({})


@given(st.lists(POOLS, min_size=1, max_size=10).filter(any), st.booleans())
def test_what_is_understood_survives_being_answered_and_sent_again(pools: list[Any], ints: bool) -> None:
    job = a_job(a_body(*pools))
    assert parsed(render_custom_job(job, enum_ints=ints)).spec == job.spec

import pytest

from tests.unit.wire.bodies import a_body, a_job, a_pool
from trainshed.core.errors import Invalid
from trainshed.wire.custom_job import render_custom_job
from trainshed.wire.read_mask import apply_mask, parse_mask

ANSWER = render_custom_job(a_job(a_body(a_pool(), {}, a_pool(replicaCount="2"))))


@pytest.mark.parametrize("mask", ["", "*", " ", "name,*"])
def test_no_mask_keeps_everything(mask: str) -> None:
    assert apply_mask(parse_mask(mask), ANSWER) == ANSWER


@pytest.mark.parametrize(
    "mask", ["name,displayName", "display_name, name,", "name,displayName,name,error,labels"]
)
def test_only_what_is_named_is_kept(mask: str) -> None:
    assert apply_mask(parse_mask(mask), ANSWER) == {"name": ANSWER["name"], "displayName": "mine"}


def test_a_mask_reaches_into_messages_and_lists() -> None:
    mask = parse_mask("jobSpec.workerPoolSpecs.replicaCount,job_spec.scheduling")
    assert apply_mask(mask, ANSWER) == {
        "jobSpec": {
            "workerPoolSpecs": [{"replicaCount": "1"}, {}, {"replicaCount": "2"}],
            "scheduling": {"timeout": "604800s"},
        }
    }


@pytest.mark.parametrize("mask", ["jobSpec,jobSpec.scheduling", "jobSpec.scheduling,jobSpec"])
def test_the_wider_of_two_names_wins(mask: str) -> None:
    assert apply_mask(parse_mask(mask), ANSWER) == {"jobSpec": ANSWER["jobSpec"]}


@pytest.mark.parametrize(
    "mask", ["nmae", "name,jobSpec.x", "name.x", "jobSpec..scheduling", "a b", "name;state"]
)
def test_unknown_names_are_refused(mask: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_mask(mask)
    assert caught.value.violations[0].field == "read_mask"


@pytest.mark.parametrize("depth", [100, 1500, 2045])
def test_a_mask_that_goes_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(Invalid, match="does not exist"):
        parse_mask("labels" + ".a" * depth)

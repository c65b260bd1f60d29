"""Labels by Google's rules, and the one more that is taken."""

import pytest

from trainshed.core.errors import Invalid
from trainshed.core.jobs.launch import QUEUE_LABEL
from trainshed.wire.faults import Faults
from trainshed.wire.labels import check_labels


def check(queue: str) -> None:
    faults = Faults("job")
    check_labels({QUEUE_LABEL: queue, "team": "vision"}, "labels", faults)
    faults.settle()


@pytest.mark.parametrize("queue", ["team-a", "gpus.team-a", "7", "a" * 63])
def test_the_label_that_names_a_queue_of_kueue_is_taken(queue: str):
    check(queue)


@pytest.mark.parametrize("queue", ["", "Team", "a_b", "-a", "a.", "a" * 64, "a b"])
def test_a_queue_that_kueue_cannot_have_is_refused_and_what_may_stand_there_is_said(queue: str):
    with pytest.raises(Invalid) as refused:
        check(queue)
    [violation] = refused.value.violations
    assert QUEUE_LABEL in violation.field
    assert "is no name of a queue" in violation.description
    assert "lowercase letters, digits, dashes and dots" in violation.description

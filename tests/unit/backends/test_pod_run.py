"""What a run as a pod makes of its record and its pod."""

import pytest

from trainshed.backends.cluster.pod_state import state_of
from trainshed.backends.cluster.run import PodRun
from trainshed.backends.machine.init_record import parse_record
from trainshed.core.names import ReplicaName, RunKey

ENDED = 1_700_000_000  # seconds; 2023-11-14T22:13:20Z


def a_run(words: str, deletion: str, grace: int = 0) -> PodRun:
    run = PodRun(RunKey(ReplicaName("1", 0, 0, 0), 0), "/none", "pod")
    run.record = parse_record(f"init b 1\n{words}exit 3 {ENDED}{'0' * 9}\n".encode())
    times = {"deletionTimestamp": deletion, "deletionGracePeriodSeconds": grace} if deletion else {}
    run.state = state_of({"metadata": {"uid": "u", **times}})
    return run


@pytest.mark.parametrize(
    ("words", "deletion", "grace", "by_itself"),
    [
        ("unasked\n", "2023-11-14T22:13:24Z", 0, True),
        ("unasked\n", "2023-11-14T22:13:54Z", 30, True),
        ("unasked\n", "2023-11-14T22:13:22Z", 0, False),  # at about the same time
        ("unasked\n", "2023-11-14T22:13:24Z", 30, False),  # long before
        ("", "2023-11-14T22:13:24Z", 0, False),  # its machine's clock may be wrong: it was asked
    ],
)
def test_a_program_has_ended_by_itself_if_that_was_well_before_its_pod_was_deleted(
    words: str, deletion: str, grace: int, by_itself: bool
):
    assert a_run(words, deletion, grace).ended_by_itself is by_itself


def test_where_nobody_deleted_its_pod_there_is_nothing_to_compare():
    assert not a_run("unasked\n", "").ended_by_itself

"""How the pods of an attempt are grouped: for a queue of Kueue, for the scheduler's own groups, or not."""

from dataclasses import replace
from typing import Any

from tests.unit.backends.test_cluster_pod import FRAME, LAUNCH
from trainshed.backends.cluster.grouping import (
    ALONE,
    MANAGED,
    Grouping,
    group_name,
    grouping_of,
    render_pod_group,
    unmanaged_note,
)
from trainshed.backends.cluster.pod import render_pod
from trainshed.core.names import ReplicaName

QUEUED = Grouping(name="ts-0a1b2c3d-179-2", queue="team-a", count=3)
GANG = Grouping(name="ts-0a1b2c3d-179-2", count=3)


def pod(grouping: Grouping) -> dict[str, Any]:
    return render_pod(LAUNCH, replace(FRAME, grouping=grouping))


def test_a_pod_that_waits_in_a_queue_of_kueue_names_queue_group_and_size_of_the_group():
    queued, alone = pod(QUEUED), pod(ALONE)
    more = {
        "kueue.x-k8s.io/queue-name": "team-a",
        "kueue.x-k8s.io/pod-group-name": "ts-0a1b2c3d-179-2",
    }
    assert queued["metadata"]["labels"] == alone["metadata"]["labels"] | more
    assert queued["metadata"]["annotations"] == alone["metadata"]["annotations"] | {
        "kueue.x-k8s.io/pod-group-total-count": "3"
    }


def test_a_pod_that_waits_in_a_queue_is_meant_for_no_node_and_equal_ones_are_one_role():
    assert "affinity" not in pod(QUEUED)["spec"] and "schedulingGroup" not in pod(QUEUED)["spec"]
    other = replace(LAUNCH, placement=replace(LAUNCH.placement, node="n2", index=1))
    same = render_pod(other, replace(FRAME, grouping=QUEUED))["spec"]
    shape = ("affinity", "nodeSelector", "tolerations", "priority", "initContainers")
    assert [same.get(name) for name in shape] == [pod(QUEUED)["spec"].get(name) for name in shape]


def test_a_pod_of_a_pod_group_refers_to_it_and_differs_in_nothing_else():
    grouped, alone = pod(GANG), pod(ALONE)
    assert grouped["spec"] == alone["spec"] | {"schedulingGroup": {"podGroupName": "ts-0a1b2c3d-179-2"}}
    assert grouped["metadata"]["labels"] == alone["metadata"]["labels"] | {
        "trainshed.dev/pod-group": "ts-0a1b2c3d-179-2"
    }
    assert grouped["metadata"]["annotations"] == alone["metadata"]["annotations"]


def test_a_pod_group_places_all_pods_of_the_attempt_or_none():
    assert render_pod_group(GANG, {"a": "b"}) == {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "ts-0a1b2c3d-179-2", "labels": {"a": "b"}},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }


def test_each_attempt_is_a_group_of_its_own_whose_name_fits_into_a_label():
    names = [group_name("ts-0a1b2c3d-179", ReplicaName("179", attempt, 0, 1)) for attempt in (0, 1)]
    assert names == ["ts-0a1b2c3d-179-0", "ts-0a1b2c3d-179-1"]
    long = [group_name(f"ts-0a1b2c3d-{'9' * 52}", ReplicaName("9" * 52, attempt, 0, 1)) for attempt in (0, 1)]
    assert len(set(long)) == 2 and all(len(name) <= 63 for name in long)


def test_the_group_of_a_pod_that_is_there_is_read_from_its_labels():
    assert grouping_of(pod(QUEUED)) == replace(QUEUED, count=1)
    assert grouping_of(pod(GANG)) == replace(GANG, count=1)
    assert grouping_of(pod(ALONE)) == ALONE == grouping_of({})


def test_a_pod_that_kueue_let_pass_is_noted():
    assert "did not take its pod into queue team-a" in unmanaged_note(QUEUED, pod(QUEUED))
    managed = {"metadata": {"labels": {MANAGED: "true"}}}
    assert unmanaged_note(QUEUED, managed) == unmanaged_note(GANG, pod(GANG)) == ""

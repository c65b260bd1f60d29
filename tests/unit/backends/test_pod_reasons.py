"""Why a pod does not start: the table from what Kubernetes says to a typed reason and a remedy."""

from datetime import timedelta
from typing import Any

import pytest

from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.pod_reasons import PodEvent, hindered, obstacle_of
from trainshed.core.errors import Hindered, Unavailable
from trainshed.core.event import Reason
from trainshed.core.obstacle import PATIENCE, Obstacle


def unplaced(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"spec": {}, "status": {"phase": "Pending", "conditions": [condition]}}


PLACED: dict[str, Any] = {"spec": {"nodeName": "n1"}, "status": {"phase": "Pending"}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}


def found(pod: dict[str, Any], state: dict[str, Any] | None = None, *events: PodEvent) -> Obstacle:
    obstacle = obstacle_of(pod, state or {}, events)
    assert obstacle is not None
    return obstacle


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("0/2 nodes are available: 2 Insufficient cpu.", ["Of 2 nodes", "2 lack free cpu"]),
        (
            "0/3 nodes are available: 1 Insufficient memory, 1 Insufficient nvidia.com/gpu, "
            "1 node(s) had taint {team: a}, that the pod didn't tolerate.",
            ["1 lacks free memory", "1 lacks free nvidia.com/gpu", "1 has the taint {team: a}"],
        ),
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {team: a}, 1 node(s) were "
            "unschedulable, 2 node(s) didn't match Pod's node affinity/selector. preemption: "
            "0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
            [
                "1 has the taint {team: a}",
                "1 has been cordoned",
                "2 nodes are not meant by its node affinity",
            ],
        ),
        (
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            ["3 lack free nvidia.com/gpu."],
        ),
        ("0/1 nodes are available: 1 Too many pods.", ["Of its only node", "as many pods as allowed"]),
        (
            'persistentvolumeclaim "data" not found',
            ['cannot place it: persistentvolumeclaim "data" not found'],
        ),
    ],
)
def test_a_pod_that_fits_nowhere_says_how_many_nodes_are_in_the_way_for_what(said: str, words: list[str]):
    obstacle = found(unplaced(said))
    assert obstacle.reason is Reason.UNSCHEDULABLE
    assert all(word in obstacle.message for word in words), obstacle.message
    assert "preemption" not in obstacle.message and obstacle.remedy
    assert obstacle.patience == PATIENCE[Reason.UNSCHEDULABLE]


def test_what_takes_a_taint_away_is_said():
    obstacle = found(unplaced("0/1 nodes are available: 1 node(s) had taint {dedicated: gpu}, that the pod."))
    assert "kubectl taint nodes NODE dedicated-" in obstacle.remedy


def test_an_autoscaler_that_adds_nodes_is_waited_for_and_one_that_cannot_is_quoted():
    pod = unplaced("0/2 nodes are available: 2 Insufficient cpu.")
    cannot = PodEvent("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
    adds = PodEvent("TriggeredScaleUp", "pod triggered scale-up: [{group 1->2 (max: 3)}]")
    assert found(pod, None, cannot, adds).reason is Reason.SCALING_UP
    stuck = found(pod, None, adds, cannot)
    assert stuck.reason is Reason.UNSCHEDULABLE and "max node group size reached" in stuck.message


def test_a_pod_nobody_has_looked_at_is_starting():
    assert found({"spec": {}, "status": {}}).reason is Reason.STARTING
    assert found({}).message == "Kubernetes has not placed it yet."


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_that_cannot_be_pulled_has_the_registrys_words(reason: str):
    waiting = {"reason": reason, "message": "manifest unknown"}
    obstacle = found(PLACED, {"waiting": waiting})
    assert obstacle.reason is Reason.IMAGE_UNAVAILABLE and "manifest unknown" in obstacle.message


def test_while_a_node_backs_off_the_words_of_the_pull_that_failed_are_kept():
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "a"'}
    failed = PodEvent("Failed", 'Failed to pull image "a": manifest unknown')
    assert (
        "manifest unknown" in found(PLACED, {"waiting": waiting}, failed, PodEvent("Failed", "Error")).message
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ('secret "token" not found', "Secret token is not there"),
        ('configmap "values" not found', "ConfigMap values is not there"),
        ("couldn't find key password in Secret lab/token", "Secret lab/token has no key password"),
    ],
)
def test_a_secret_or_config_map_that_is_not_there_is_named(words: str, says: str):
    waiting = {"reason": "CreateContainerConfigError", "message": words}
    obstacle = found(PLACED, {"waiting": waiting})
    assert obstacle.reason is Reason.CONFIG_MISSING and obstacle.message.startswith(says)
    mounted = PodEvent("FailedMount", f'MountVolume.SetUp failed for volume "v" : {words}')
    assert found(PLACED, CREATING, mounted).reason is Reason.CONFIG_MISSING


def test_a_volume_that_cannot_be_mounted_is_a_reason_until_the_image_is_pulled():
    failed = PodEvent("FailedMount", "mount failed: exit status 32, mount.nfs: Connection refused")
    obstacle = found(PLACED, CREATING, failed)
    assert obstacle.reason is Reason.MOUNT_FAILED and "Connection refused" in obstacle.message
    assert found(PLACED, CREATING, failed, PodEvent("Pulling", "Pulling image")).reason is Reason.STARTING


def test_any_other_reason_of_a_container_is_quoted():
    waiting = {"reason": "CreateContainerConfigError", "message": "image will run as root"}
    obstacle = found(PLACED, {"waiting": waiting})
    assert obstacle.reason is Reason.LAUNCH_FAILED and "image will run as root" in obstacle.message


@pytest.mark.parametrize("state", [{"running": {}}, {"terminated": {"exitCode": 0}}])
def test_what_runs_or_has_run_waits_for_nothing(state: dict[str, Any]):
    assert obstacle_of(PLACED, state) is None


@pytest.mark.parametrize(
    ("status", "words", "reason"),
    [
        (403, 'pods "a" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=1', "QUOTA_EXCEEDED"),
        (403, 'pods "a" is forbidden: failed quota: q: must specify limits.cpu', "QUOTA_EXCEEDED"),
        (400, 'admission webhook "w.example" denied the request: no', "CREATION_REFUSED"),
        (500, 'Internal error occurred: failed calling webhook "w.example": refused', "CREATION_REFUSED"),
        (403, 'pods "a" is forbidden: violates PodSecurity "restricted"', "CREATION_REFUSED"),
        (403, 'User "u" cannot create resource "pods" in API group ""', "CREATION_REFUSED"),
        (422, 'Pod "a" is invalid: spec', "CREATION_REFUSED"),
    ],
)
def test_a_pod_that_is_refused_is_hindered_by_a_typed_reason_in_the_clusters_words(
    status: int, words: str, reason: str
):
    error = hindered(ApiFault(status, "Forbidden", words), "The pod cannot be created")
    assert isinstance(error, Hindered)
    assert error.obstacle.reason == reason and words in error.message and error.obstacle.remedy


@pytest.mark.parametrize(
    "fault",
    [
        ApiFault(0, "", "cannot be reached"),
        ApiFault(409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q": it was modified'),
    ],
)
def test_what_may_go_well_a_moment_later_hinders_nothing_for_good(fault: ApiFault):
    error = hindered(fault, "The pod cannot be created")
    assert isinstance(error, Unavailable) and not isinstance(error, Hindered)


def test_patience_is_what_the_caller_says():
    patience = {Reason.UNSCHEDULABLE: timedelta(seconds=5)}
    obstacle = obstacle_of(unplaced("0/1 nodes are available: 1 Insufficient cpu."), {}, (), patience)
    assert obstacle is not None and obstacle.patience == timedelta(seconds=5)

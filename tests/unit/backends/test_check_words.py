"""What the doctor says of a cluster: answers of its API to a grade, a sentence and the command that mends."""

from typing import Any

import pytest

from trainshed.backends.cluster import check_words as words
from trainshed.backends.cluster.api import ApiFault
from trainshed.backends.cluster.check_words import RightsHolder
from trainshed.backends.cluster.checks import trial_pod
from trainshed.backends.cluster.images import PULLED
from trainshed.backends.cluster.pod_template import PodTemplate
from trainshed.backends.cluster.rights import RIGHTS, Reach, Right
from trainshed.core.checkup import Finding, Grade

WHO = RightsHolder("ml", "lab:trainshed")


def node(name: str, *, ready: str = "True", architecture: str = "arm64", gpus: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "nodeInfo": {"architecture": architecture},
            "allocatable": {"cpu": "4", **({"nvidia.com/gpu": gpus} if gpus else {})},
        },
    }


@pytest.mark.parametrize(
    ("text", "grade"),
    [("v1.20.2", "ok"), ("v1.37.0-gke.1", "ok"), ("v1.19.16", "missing"), ("v2.0.0", "ok"), ("odd", "ok")],
)
def test_a_cluster_older_than_1_20_is_too_old(text: str, grade: str):
    assert words.version({"gitVersion": text}).grade == grade


def test_a_right_in_the_namespace_is_granted_by_a_role_there():
    finding = words.right(RIGHTS[0], {"watch", "patch"}, WHO)
    assert finding.grade is Grade.MISSING
    assert finding.sentence == "it may not patch, watch pods in namespace ml"
    assert finding.remedy == (
        "kubectl -n ml create role trainshed-pods --verb=patch,watch --resource=pods && "
        "kubectl -n ml create rolebinding trainshed-pods --role=trainshed-pods --serviceaccount=lab:trainshed"
    )


def test_a_right_in_the_whole_cluster_is_granted_by_a_cluster_role():
    wanted = Right(resource="nodes", verbs=("list",), reach=Reach.CLUSTER)
    finding = words.right(wanted, {"list"}, RightsHolder("ml"))
    assert finding.remedy == (
        "kubectl create clusterrole trainshed-nodes --verb=list --resource=nodes && "
        "kubectl create clusterrolebinding trainshed-nodes --clusterrole=trainshed-nodes --user=YOUR-USER"
    )


def test_a_right_that_a_server_does_without_is_a_warning_and_says_what_is_worse():
    [leases] = [row for row in RIGHTS if row.resource == "leases"]
    finding = words.right(leases, {"list", "watch"}, WHO)
    assert finding.grade is Grade.WARNING
    assert finding.sentence.endswith("a lost node is noticed after 40 seconds instead of 15")
    assert "-n kube-node-lease" in finding.remedy and "leases.coordination.k8s.io" in finding.remedy


def test_a_missing_namespace_and_a_refused_pod_are_told_apart():
    absent = words.admission(ApiFault(404, "NotFound", 'namespaces "ml" not found'), "ml")
    assert (absent.grade, absent.remedy) == (Grade.MISSING, "kubectl create namespace ml")
    quota = words.admission(ApiFault(403, "Forbidden", "exceeded quota: small"), "ml")
    assert quota.grade is Grade.MISSING and "exceeded quota: small" in quota.sentence
    right = 'pods is forbidden: User "x" cannot create resource "pods" in API group ""'
    assert words.admission(ApiFault(403, "Forbidden", right), "ml").grade is Grade.WARNING
    assert words.admission(None, "ml").grade is Grade.OK


def test_nodes_must_be_ready_and_have_the_processor_of_the_server():
    assert words.nodes([node("a"), node("b")], "aarch64").grade is Grade.OK
    some = words.nodes([node("a"), node("b", architecture="amd64")], "aarch64")
    assert some.grade is Grade.WARNING and some.sentence.startswith("1 of 2 nodes")
    other = words.nodes([node("a", architecture="amd64")], "aarch64")
    assert other.grade is Grade.MISSING and "all nodes are amd64, and the server is arm64" in other.sentence
    assert words.nodes([node("a", ready="False")], "aarch64").grade is Grade.MISSING


def test_gpus_are_counted():
    assert words.gpus([node("a", gpus="8"), node("b", gpus="4"), node("c")]).sentence == "12 on 2 nodes"
    assert words.gpus([node("a")]).sentence == "none: no node offers nvidia.com/gpu"


def test_a_storage_class_must_be_there_or_be_the_default():
    fast = {"metadata": {"name": "fast"}}
    own = {
        "metadata": {"name": "own", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    }
    assert words.storage([fast, own], "default").sentence == "storage class own"
    assert words.storage([fast], "fast").grade is Grade.OK
    assert words.storage([fast], "slow").sentence == "there is no storage class slow: there are fast"
    assert words.storage([fast], "default").grade is Grade.MISSING


def test_names_are_served_by_kube_dns_or_nobody_knows():
    assert words.names([{"metadata": {"name": "kube-dns"}}]).grade is Grade.OK
    assert words.names([]).grade is Grade.WARNING


def test_credentials_that_are_refused_are_no_network_that_is_down():
    assert "renew the credentials" in words.unreachable(ApiFault(401, "Unauthorized", "who?")).remedy
    assert "kubectl cluster-info" in words.unreachable(ApiFault(0, "", "no route")).remedy


def local_queue(active: str, message: str = "") -> dict[str, Any]:
    condition = {"type": "Active", "status": active, "message": message}
    return {
        "metadata": {"name": "team-a"},
        "spec": {"clusterQueue": "all"},
        "status": {"conditions": [condition]},
    }


def test_a_queue_of_kueue_is_fit_where_it_is_active_and_makes_pods_wait():
    assert words.queue(local_queue("True"), True) == Finding(
        what="queue", grade=Grade.OK, sentence="LocalQueue team-a of ClusterQueue all is active"
    )
    passed = words.queue(local_queue("True"), False)
    assert passed.grade is Grade.WARNING and "managedJobsNamespaceSelector" in passed.remedy
    stopped = words.queue(local_queue("False", "Can't submit new workloads to clusterQueue"), True)
    assert stopped.grade is Grade.MISSING and "Can't submit new workloads" in stopped.sentence


def test_a_queue_that_is_not_there_and_a_kueue_that_is_not_there_are_missing():
    gone = words.unusable_queue("team-a", "ml", ApiFault(404, "NotFound", "not found"))
    assert gone.grade is Grade.MISSING and gone.remedy == "kubectl -n ml get localqueues"
    hidden = words.unusable_queue("team-a", "ml", ApiFault(403, "Forbidden", "cannot get resource"))
    assert hidden.grade is Grade.WARNING
    absent = words.no_kueue("team-a")
    assert absent.grade is Grade.MISSING and "not installed" in absent.sentence


def test_an_image_for_other_processors_than_the_nodes_is_told_with_both():
    for failure in ("", "no match for platform in manifest"):
        finding = words.pulled("a:1", failure, "arm64", {"amd64", "riscv64"})
        assert finding.grade is Grade.MISSING
        assert finding.sentence == (
            "a:1 is for amd64 and riscv64, and a node with arm64 is where pods of jobs go"
        )
        assert finding.remedy.endswith("--platform linux/arm64")


def test_an_image_is_pulled_or_it_is_told_why_not():
    assert words.pulled("a:1", "", "arm64", {"arm64"}).sentence == "a node with arm64 has pulled a:1"
    assert words.pulled("a:1", "", "", frozenset()).sentence == "a node has pulled a:1"
    failed = words.pulled("a:1", "unauthorized", "arm64", frozenset())
    assert failed.sentence == "a:1: unauthorized (a node with arm64 tried)"
    assert words.architecture([node("one"), node("two", architecture="amd64")], "two") == "amd64"
    assert words.architecture([node("one")], "") == ""


def test_the_pods_of_the_doctor_go_where_pods_of_jobs_go():
    template = PodTemplate(
        spec={
            "serviceAccountName": "trainer",
            "imagePullSecrets": [{"name": "registry"}],
            "tolerations": [{"key": "jobs", "operator": "Exists"}],
            "nodeSelector": {"disk": "fast"},
        },
        labels={"team": "vision"},
    ).for_machine("aarch64")
    pod = trial_pod("doctor", "a:1", template)
    expected = {
        "serviceAccountName": "trainer",
        "imagePullSecrets": [{"name": "registry"}],
        "tolerations": [{"key": "jobs", "operator": "Exists"}],
        "nodeSelector": {"disk": "fast", "kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"},
    }
    assert {name: pod["spec"][name] for name in expected} == expected
    assert pod["metadata"]["labels"] == {"team": "vision", PULLED: "doctor"}

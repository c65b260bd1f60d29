"""What administrators give to all pods of jobs, and which nodes take such pods."""

from pathlib import Path
from typing import Any

import pytest

from trainshed.assembly.pod_template import find_pod_template
from trainshed.backends.cluster.nodes import nodes_of
from trainshed.backends.cluster.pod_template import GPU, PodTemplate, TemplateFault, parse_template
from trainshed.settings.table import SettingsError

TEAM = {"key": "team", "value": "training", "effect": "NoSchedule"}
FOR_GPUS = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def node(*taints: dict[str, str], **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "n1", "labels": labels},
        "spec": {"taints": list(taints)},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "4", "memory": "8Gi", GPU: "2"},
        },
    }


@pytest.mark.parametrize(
    ("toleration", "is_taken"),
    [
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "value": "training"}, True),
        ({"key": "team", "operator": "Equal", "value": "training", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "team", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_tainted_node_takes_pods_that_tolerate_it(toleration: dict[str, str], is_taken: bool):
    template = PodTemplate({"tolerations": [toleration]})
    assert template.is_taken_by(node(TEAM)) is is_taken
    assert template.is_taken_by(node()) and not PodTemplate().is_taken_by(node(TEAM))


def test_only_nodes_with_the_labels_that_pods_select_count():
    template = PodTemplate({"nodeSelector": {"pool": "training"}})
    assert template.is_taken_by(node(pool="training"))
    assert not template.is_taken_by(node(pool="web")) and not template.is_taken_by(node())


def test_only_nodes_that_run_programs_of_the_servers_machine_count():
    template = PodTemplate({"nodeSelector": {"pool": "training"}}).for_machine("x86_64")
    fitting = {"pool": "training", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    assert template.is_taken_by(node(**fitting))
    assert not template.is_taken_by(node(**{**fitting, "kubernetes.io/arch": "arm64"}))
    assert not template.is_taken_by(node(**{**fitting, "kubernetes.io/os": "windows"}))
    pod = template.added_to({"metadata": {}, "spec": {}}, uses_gpus=False)
    assert pod["spec"]["nodeSelector"] == fitting


def test_a_node_that_is_kept_for_gpus_takes_only_replicas_with_some():
    [offered] = nodes_of([node(FOR_GPUS)], [], "ours")
    assert offered.only_gpus and offered.gpus == ("0", "1")
    assert nodes_of([node(FOR_GPUS, TEAM)], [], "ours") == ()
    [tolerated] = nodes_of(
        [node(FOR_GPUS)], [], "ours", PodTemplate({"tolerations": [{"operator": "Exists"}]})
    )
    assert not tolerated.only_gpus


def test_a_pod_has_all_of_the_template_and_its_own_labels():
    template = PodTemplate({"priorityClassName": "low"}, {"team": "a", "app": "theirs"}, {"note": "b"})
    pod = {"metadata": {"name": "p", "labels": {"app": "ours"}}, "spec": {"restartPolicy": "Never"}}
    made = template.added_to(pod, uses_gpus=True)
    assert made["metadata"] == {
        "name": "p",
        "labels": {"team": "a", "app": "ours"},
        "annotations": {"note": "b"},
    }
    assert made["spec"] == {
        "restartPolicy": "Never",
        "priorityClassName": "low",
        "tolerations": [{"key": GPU, "operator": "Exists"}],
    }
    assert PodTemplate().added_to(pod, uses_gpus=False) == pod


def test_all_that_is_wrong_with_a_template_is_told_at_once():
    with pytest.raises(TemplateFault) as unknown:
        parse_template({"kind": "Pod", "spec": {"containers": []}, "metadata": {"name": "x"}})
    for path in ("kind", "spec.containers", "metadata.name"):
        assert f"{path} is not known" in str(unknown.value)
    with pytest.raises(TemplateFault) as wrong:
        parse_template(
            {
                "metadata": {"labels": {"trainshed.dev/job": "1"}, "annotations": {"a": 1}},
                "spec": {"nodeSelector": [], "priorityClassName": 5, "tolerations": {"key": "x"}},
            }
        )
    for words in (
        "metadata.labels.trainshed.dev/job is the server's own",
        "metadata.annotations has to hold names and texts",
        "spec.nodeSelector has to hold",
        "spec.priorityClassName has to be a text, not 5",
        "spec.tolerations has to be a list",
    ):
        assert words in str(wrong.value)


def test_a_file_that_cannot_be_used_is_named_with_the_setting(tmp_path: Path):
    file = tmp_path / "pods.yaml"
    with pytest.raises(SettingsError, match=r"--pod-template: cannot read .*: No such file"):
        find_pod_template(file)
    file.write_text("spec: {tolerations: [")
    with pytest.raises(SettingsError, match="--pod-template: "):
        find_pod_template(file)
    file.write_text("spec: {hostNetwork: true}")
    with pytest.raises(SettingsError, match=r"spec\.hostNetwork is not known: it may have priorityClassName"):
        find_pod_template(file)
    file.write_text("spec: {serviceAccountName: trainer, imagePullSecrets: [{name: key}]}")
    template = find_pod_template(file)
    assert (template.account, template.pull_secrets) == ("trainer", ("key",))
    assert find_pod_template(None).account == "default"

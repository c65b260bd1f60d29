"""The chart of deploy/helm as Helm renders it: the file for kubectl is the same, and every value counts."""

from typing import Any

import pytest
import yaml

from scripts import chart
from trainshed import __version__
from trainshed.backends.cluster.rights import QUEUE_RIGHTS

pytestmark = pytest.mark.skipif(
    chart.words() is None, reason="Helm is not here: python -m scripts.chart fetch"
)


def objects(text: str) -> dict[tuple[str, str], Any]:
    return {(item["kind"], item["metadata"]["name"]): item for item in filter(None, yaml.safe_load_all(text))}


def rendered(*values: str) -> dict[tuple[str, str], Any]:
    words = [word for value in values for word in ("--set", value)]
    return objects(chart.render("trainshed", "lab", *words))


def test_the_file_for_kubectl_is_what_the_chart_renders():
    assert objects(chart.RENDERED.read_text()) == objects(chart.rendered_file()), "run `make chart`"


def test_the_chart_is_of_this_version():
    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == about["version"] == __version__


def test_the_server_has_no_more_than_it_needs():
    [pod] = [
        item["spec"]["template"]["spec"] for (kind, _), item in rendered().items() if kind == "Deployment"
    ]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_token_and_database_come_from_secrets():
    made = rendered("token.secret=word", "token.key=t", "database.secret=db", "database.key=u")
    pod = made["Deployment", "trainshed"]["spec"]["template"]["spec"]
    env = {row["name"]: row for row in pod["containers"][0]["env"]}
    assert env["TRAINSHED_DATABASE"]["valueFrom"] == {"secretKeyRef": {"name": "db", "key": "u"}}
    [token] = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "token"]
    assert token == {"secretName": "word", "items": [{"key": "t", "path": "token"}]}
    ports = [rule["ports"] for rule in made["NetworkPolicy", "trainshed"]["spec"]["egress"]]
    assert [{"port": 5432, "protocol": "TCP"}] in ports


def test_what_all_pods_of_jobs_have_is_a_file_of_the_server_which_starts_again_when_it_changes():
    made = rendered("jobs.pods.spec.priorityClassName=low")
    assert made["ConfigMap", "trainshed-pods-of-jobs"]["data"] == {
        "pods.yaml": "spec:\n  priorityClassName: low\n"
    }
    template = made["Deployment", "trainshed"]["spec"]["template"]
    env = {row["name"]: row.get("value") for row in template["spec"]["containers"][0]["env"]}
    assert env["TRAINSHED_POD_TEMPLATE"] == "/pods-of-jobs/pods.yaml"
    other = rendered("jobs.pods.spec.priorityClassName=high")["Deployment", "trainshed"]["spec"]["template"]
    assert other["metadata"]["annotations"] != template["metadata"]["annotations"]


def test_rights_on_jobs_are_given_in_the_namespace_of_jobs_alone():
    made = rendered("jobs.namespace=ml")
    assert made["Role", "trainshed-jobs"]["metadata"]["namespace"] == "ml"
    [subject] = made["RoleBinding", "trainshed-jobs"]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "trainshed", "namespace": "lab"}


def test_a_volume_can_be_chosen_or_brought():
    claim = rendered("volume.size=5Gi", "volume.storageClass=fast")["PersistentVolumeClaim", "trainshed-home"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"] == {"requests": {"storage": "5Gi"}}
    made = rendered("volume.existingClaim=mine")
    assert not any(kind == "PersistentVolumeClaim" for kind, _ in made)
    volumes = made["Deployment", "trainshed"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": "mine"}} in volumes


def test_place_image_and_service_are_as_chosen():
    made = rendered(
        "image.repository=registry.example/trainshed",
        "image.tag=sha256:abc",
        "imagePullSecrets[0].name=login",
        "nodeSelector.pool=small",
        "service.type=LoadBalancer",
        "allowedHosts={train.example}",
        "networkPolicy.enabled=false",
    )
    pod = made["Deployment", "trainshed"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example/trainshed@sha256:abc"
    assert pod["imagePullSecrets"] == [{"name": "login"}] and pod["nodeSelector"] == {"pool": "small"}
    env = {row["name"]: row.get("value", "") for row in pod["containers"][0]["env"]}
    assert env["TRAINSHED_ALLOWED_HOSTS"].split()[-1] == "train.example"
    assert made["Service", "trainshed"]["spec"]["type"] == "LoadBalancer"
    assert ("NetworkPolicy", "trainshed") not in made


@pytest.mark.parametrize(("value", "queue"), [("kueue.enabled=true", None), ("kueue.queue=team-a", "team-a")])
def test_rights_on_queues_are_given_only_where_queues_are_asked_for(value: str, queue: str | None):
    def kueue(made: dict[tuple[str, str], Any]) -> set[tuple[str, str]]:
        rules = [
            row for row in made["Role", "trainshed-jobs"]["rules"] if row["apiGroups"] == ["kueue.x-k8s.io"]
        ]
        return {(row["resources"][0], verb) for row in rules for verb in row["verbs"]}

    made = rendered(value)
    assert kueue(made) == {(right.resource, verb) for right in QUEUE_RIGHTS for verb in right.verbs}
    assert kueue(rendered()) == set()
    [container] = made["Deployment", "trainshed"]["spec"]["template"]["spec"]["containers"]
    env = {row["name"]: row.get("value") for row in container["env"]}
    assert env.get("TRAINSHED_KUEUE_QUEUE") == queue
